"""One picture alone in a fresh PDF, decoded by PDFium without rendering a page.

PDFium knows every colour space and codec, but invents pixels for corrupt streams: nothing comes here
that was not checked before. Masks are left out, because PDFium's bitmap drops them. The traps, held in
one place: document, page and buffer stay referenced until the samples are copied, and are closed in
that order's reverse; PDFium is not thread-safe, a decoder process has one thread.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pikepdf
import pypdfium2
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.colour import Space
from asset_pipeline.reasons import Reason

_GRAFT_DEPTH = 24
_GRAFT_NODES = 20_000
_GRAFT_BYTES = 32 * 1024 * 1024


class _Graft:
    """Copies an object into another document by value, with bounds: no cycle or giant gets through."""

    def __init__(self, target: pikepdf.Pdf) -> None:
        self.target = target
        self.nodes = 0
        self.bytes = 0

    def copy(self, value: Any, depth: int = 0) -> Any:
        self.nodes += 1
        if depth > _GRAFT_DEPTH or self.nodes > _GRAFT_NODES:
            raise Refusal(Reason.STRUCTURE_TOO_DEEP, "colour space")
        if isinstance(value, pikepdf.Stream):
            data = value.read_raw_bytes()
            self.bytes += len(data)
            if self.bytes > _GRAFT_BYTES:
                raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED, "colour space")
            stream = pikepdf.Stream(self.target, data)
            for key in value.keys():  # noqa: SIM118 - a pikepdf object, not a dict
                if key != "/Length":
                    stream[key] = self.copy(value[key], depth + 1)
            return self.target.make_indirect(stream)
        if isinstance(value, pikepdf.Array):
            return pikepdf.Array([self.copy(item, depth + 1) for item in value])
        if isinstance(value, pikepdf.Dictionary):
            return pikepdf.Dictionary({key: self.copy(value[key], depth + 1) for key in value.keys()})  # noqa: SIM118
        if isinstance(value, pikepdf.Name):
            return pikepdf.Name(str(value))
        if isinstance(value, pikepdf.String):
            return pikepdf.String(bytes(value))
        return value


def colour_samples(
    rows: NDArray[np.uint8], width: int, height: int, bits: int, space: Space, decode: Any
) -> NDArray[np.uint8]:
    """sRGB or gray, uint8, of raw samples in ``space`` with the Decode array ``decode`` (None: default)."""
    with pikepdf.new() as target:
        image = _picture(target, rows.tobytes(), width, height)
        image.BitsPerComponent = bits
        image.ColorSpace = _Graft(target).copy(space.source)
        if decode is not None:
            image.Decode = pikepdf.Array([round(number, 6) for number in decode])
        return _decode(target, image)


def decode_stream(
    data: bytes,
    width: int,
    height: int,
    filter_name: str,
    *,
    space: Any = None,
    parms: Any = None,
    bits: int | None = 8,
) -> NDArray[np.uint8]:
    """What PDFium makes of one encoded stream: ``(height, width)`` gray or ``(height, width, 3)``, uint8."""
    with pikepdf.new() as target:
        image = _picture(target, data, width, height)
        image.Filter = pikepdf.Name("/" + filter_name)
        graft = _Graft(target)
        if parms is not None:
            image.DecodeParms = graft.copy(parms)
        if space is not None:
            image.ColorSpace = graft.copy(space)
        if bits is not None:
            image.BitsPerComponent = bits
        return _decode(target, image)


def _picture(target: pikepdf.Pdf, data: bytes, width: int, height: int) -> Any:
    image: Any = pikepdf.Stream(target, data)
    image.Type = pikepdf.Name.XObject
    image.Subtype = pikepdf.Name.Image
    image.Width = width
    image.Height = height
    return image


def _decode(target: pikepdf.Pdf, image: Any) -> NDArray[np.uint8]:
    page = target.add_blank_page(page_size=(10, 10))
    page.obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(I=target.make_indirect(image)))
    page.obj.Contents = pikepdf.Stream(target, b"q 10 0 0 10 0 0 cm /I Do Q")
    written = io.BytesIO()
    target.save(written, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)
    try:
        return _read_bitmap(written.getvalue())
    except pypdfium2.PdfiumError:
        raise Refusal(Reason.MALFORMED_STREAM) from None


def _read_bitmap(pdf: bytes) -> NDArray[np.uint8]:
    document = pypdfium2.PdfDocument(pdf)
    try:
        page = document[0]
        try:
            drawn = next(iter(page.get_objects(filter=[pypdfium2.raw.FPDF_PAGEOBJ_IMAGE])), None)
            if drawn is None:
                raise Refusal(Reason.MALFORMED_STREAM)
            bitmap = drawn.get_bitmap(render=False)
            bitmap.warn_on_close = False  # the samples are copied before it is closed
            try:
                samples: NDArray[np.uint8] = np.array(bitmap.to_numpy(), copy=True)
            finally:
                bitmap.close()
        finally:
            page.close()
    finally:
        document.close()
    if samples.ndim == 2:
        return samples
    return np.ascontiguousarray(samples[:, :, 2::-1])  # BGR, BGRx and BGRA to RGB
