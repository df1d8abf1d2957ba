"""A second opinion on the default engine: pypdf's own parser and decoders behind the same interface.

Independent on purpose, so that comparing the two means something: it shares the rows, the gates and no
reading code. It sees less: page contents and forms, no patterns, annotations, hidden layers or clips;
displays are the picture as stored, neither turned nor cropped; stencils keep no colour. JPEG and JPEG
2000 keep the document's own bytes, the rest is PNG (TIFF for CMYK) of what pypdf decodes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

import pypdf
from PIL import Image
from pypdf.errors import DependencyError, PyPdfError
from pypdf.generic import StreamObject

from asset_pipeline import account
from asset_pipeline.errors import Refusal
from asset_pipeline.extraction import answering
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.pypdf_walk import Drawn, Frame, box_of, is_name, plain, walk_page
from asset_pipeline.extraction.rows import Found, Gallery, placement_row, plain_text
from asset_pipeline.extraction.withheld import WithheldFiles
from asset_pipeline.extraction.written import write_file
from asset_pipeline.model import LARGEST_DEPTH, Extraction, Flag, Kind, Page, Picture, Source
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import HEAD, PDF, judge, read_signature
from asset_pipeline.validation.jpeg import check_jpeg
from asset_pipeline.validation.jpx import check_jpx
from asset_pipeline.validation.limits import check_encoded, check_filters, check_pixels

REVISION = 2

_PASS_THROUGH = {"DCTDecode": ("image/jpeg", "jpg"), "JPXDecode": ("image/jp2", "jp2")}
_BITS = {"1": 1, "I;16": 16, "I": 16, "I;16B": 16}

Encrypted = Literal["none", "owner_only", "user"]


class PypdfEngine:
    """Reads PDF documents with pypdf and Pillow."""

    name = "pypdf"

    def version(self) -> str:
        """Revision of this engine and the versions of every library that can change a byte."""
        return f"{self.name}/{REVISION}+pypdf-{version('pypdf')}+pillow-{version('pillow')}"

    def inspect(self, request: Request) -> Inspection:
        """Open the document and count its pages."""
        return answering.inspect(request, _open, _source)

    def extract(self, request: Request) -> Extraction:
        """Read the requested pages."""
        return answering.extract(self, request, _open, _source, _read_pages)


@dataclass(frozen=True, slots=True)
class _Document:
    reader: pypdf.PdfReader
    pages: int
    encrypted: Encrypted


@contextmanager
def _open(request: Request) -> Iterator[_Document]:
    with request.document.open("rb") as file:
        signature = read_signature(file.read(HEAD), request.media_type)
        refused = judge(request.source_bytes, signature, request.media_type, {PDF})
        if refused is not None:
            raise Refusal(refused)
        try:
            reader = pypdf.PdfReader(file, strict=False)
            encrypted = _unlock(reader, request.password)
            pages = len(reader.pages)
        except Refusal:
            raise
        except MemoryError:
            raise
        except DependencyError:  # the optional library for AES is not there
            raise Refusal(Reason.ENCRYPTED) from None
        except Exception:  # noqa: BLE001 - pypdf raises whatever a broken document makes it stumble over
            raise Refusal(Reason.MALFORMED_DOCUMENT) from None
        if pages == 0:
            raise Refusal(Reason.MALFORMED_DOCUMENT)
        if pages > request.policy.limits.pages:
            raise Refusal(Reason.PAGE_BUDGET_EXCEEDED)
        Image.MAX_IMAGE_PIXELS = request.policy.limits.pixels
        yield _Document(reader, pages, encrypted)


def _unlock(reader: pypdf.PdfReader, password: str | None) -> Encrypted:
    if not reader.is_encrypted:
        return "none"
    if reader.decrypt(""):
        return "owner_only"
    if password is not None and reader.decrypt(password):
        return "user"
    raise Refusal(Reason.ENCRYPTED)


def _source(request: Request, document: _Document | None = None, refusal: Refusal | None = None) -> Source:
    closed: Encrypted | None = "user" if refusal is not None and refusal.reason is Reason.ENCRYPTED else None
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=document.pages if document else None,
        encrypted=document.encrypted if document else closed,
    )


def _read_pages(document: _Document, request: Request, gallery: Gallery, withheld: WithheldFiles) -> list[Page]:
    numbers = answering.requested(request, document.pages)
    return [_read_page(document, number, request, gallery, withheld) for number in numbers]


def _read_page(document: _Document, number: int, request: Request, gallery: Gallery, withheld: WithheldFiles) -> Page:
    try:
        page = document.reader.pages[number - 1]
        found = walk_page(page, document.reader, request.policy.limits)
        label, frame = document.reader.page_labels[number - 1], Frame.of(page)
    except Exception as error:  # noqa: BLE001 - the border of a page: no other page may suffer from it
        return Page(page=number, drawn=None, reason=_reason(error))
    rows = [
        placement_row(
            _found(drawn, order, frame, request),
            gallery,
            page=number,
            pages=document.pages,
            user_unit=frame.user_unit,
            policy=request.policy,
        )
        for order, drawn in enumerate(found, start=1)
    ]
    for order, drawn in enumerate(found):
        withheld.add(number, rows[order], drawn.object_id or (number, order), partial(_stored_bytes, drawn.image))
    return account.count(Page(page=number, label=plain_text(label), drawn=0, placements=rows))


def _stored_bytes(image: StreamObject) -> bytes:
    return bytes(image._data)  # decrypted, not decoded; pypdf has no public word for it


def _reason(error: Exception) -> Reason:
    """pypdf raises whatever a broken document makes it stumble over."""
    if isinstance(error, Refusal):
        return error.reason
    if isinstance(error, MemoryError):
        return Reason.MEMORY_EXCEEDED
    if isinstance(error, RecursionError):
        return Reason.STRUCTURE_TOO_DEEP
    if isinstance(error, (NotImplementedError, DependencyError)):
        return Reason.UNSUPPORTED_CODEC
    return Reason.MALFORMED_STREAM


def _found(drawn: Drawn, order: int, frame: Frame, request: Request) -> Found:
    image = drawn.image
    reason: Reason | None = None
    original: Picture | None = None
    display: Picture | None = None
    try:
        original, display = _read_picture(image, request)
    except Exception as error:  # noqa: BLE001 - the border of a picture: no other picture may suffer from it
        reason = _reason(error)
    bbox = box_of(drawn.matrix)
    visible = frame.visible(bbox)
    stencil = plain(image.get("/ImageMask")) == True  # noqa: E712 - pypdf's own boolean
    a, b, c, d, _, _ = drawn.matrix
    flags = {Flag.NOT_VISIBLE} if visible == 0 else set()
    if a * d - b * c < 0:
        flags.add(Flag.MIRRORED)
    return Found(
        kind=Kind.INLINE if drawn.inline else Kind.STENCIL if stencil else Kind.RASTER,
        order=order,
        object_id=drawn.object_id,
        width=_whole(image, "/Width"),
        height=_whole(image, "/Height"),
        filter=_filters(image),
        colour_space=_colour_space(image),
        bits=_depth(image),
        matrix=drawn.matrix,
        bbox=bbox,
        display_bbox=frame.as_displayed(bbox),
        visible=visible,
        shown=visible > 0,
        flags=frozenset(flags),
        original=original,
        display=display,
        reason=reason,
    )


def _read_picture(image: StreamObject, request: Request) -> tuple[Picture, Picture]:
    """Original and display of ``image``, written to the folder. Gates come before any decoder."""
    limits = request.policy.limits
    _gate(image, limits)
    mask = plain(image.get("/SMask"))
    if isinstance(mask, StreamObject):
        _gate(mask, limits)
    last = (_filters(image) or [""])[-1]
    if last not in _PASS_THROUGH:
        decoded = image.decode_as_image()
        return _store(decoded, "original", request), _store(_shown(decoded), "display", request)
    data = image.get_data()
    describes_itself = not any(key in image for key in ("/SMask", "/Mask", "/Decode"))
    facts: Any = check_jpeg(data, limits) if last == "DCTDecode" else check_jpx(data, limits)
    decoded = image.decode_as_image()
    decoded.load()
    media_type, extension = _PASS_THROUGH[last]
    stored = Image.open(io.BytesIO(data), formats=["JPEG", "JPEG2000"])
    original = _write(data, media_type, extension, stored, "original", request)
    if describes_itself and last == "DCTDecode" and facts.components in (1, 3):
        return original, original.model_copy(update={"renditions": ["display"]})
    return original, _store(_shown(decoded), "display", request)


def _gate(image: StreamObject, limits: Limits) -> None:
    check_pixels(_whole(image, "/Width"), _whole(image, "/Height"), limits)
    check_encoded(len(image._data), limits)
    check_filters(len(_filters(image)), limits)


def _shown(image: Image.Image) -> Image.Image:
    """Gray or RGB, with alpha only where some pixel is not opaque."""
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        image = image.convert("RGBA")
        opaque = image.getchannel("A").histogram()[255] == image.width * image.height
        return image.convert("RGB") if opaque else image
    return image if image.mode in ("1", "L", "RGB") else image.convert("RGB")


def _store(image: Image.Image, rendition: str, request: Request) -> Picture:
    file = io.BytesIO()
    if image.mode in ("CMYK", "LAB", "YCbCr"):
        image.save(file, "TIFF", compression="tiff_adobe_deflate")
        return _write(file.getvalue(), "image/tiff", "tif", image, rendition, request, decoded=True)
    image.save(file, "PNG")
    return _write(file.getvalue(), "image/png", "png", image, rendition, request, decoded=True)


def _write(
    data: bytes,
    media_type: str,
    extension: str,
    image: Image.Image,
    rendition: Any,
    request: Request,
    *,
    decoded: bool = False,
) -> Picture:
    digest = hashlib.sha256(data).hexdigest()
    name = f"{digest}.{extension}"
    write_file(request.out / name, data)
    return Picture(
        sha256=digest,
        file=name,
        renditions=[rendition],
        media_type=media_type,
        bytes=len(data),
        width=image.width,
        height=image.height,
        bits=_BITS.get(image.mode, 8),
        mode=image.mode,
        has_alpha=image.mode in ("RGBA", "LA", "PA"),
        icc=None,
        pixel_sha256=hashlib.sha256(image.tobytes()).hexdigest() if decoded or request.pixels else None,
        phash=None,
    )


def _whole(image: StreamObject, key: str) -> int:
    try:
        return int(plain(image.get(key, 0)))
    except (TypeError, ValueError, PyPdfError):
        return 0


def _depth(image: StreamObject) -> int | None:
    bits = _whole(image, "/BitsPerComponent")
    return bits if bits and abs(bits) <= LARGEST_DEPTH else None


def _filters(image: StreamObject) -> list[str]:
    value = plain(image.get("/Filter"))
    names = value if isinstance(value, list) else [value]
    return [str(name)[1:] for name in map(plain, names) if is_name(name)]


def _colour_space(image: StreamObject) -> str | None:
    value = plain(image.get("/ColorSpace"))
    first = plain(value[0]) if isinstance(value, list) and value else value
    return str(first)[1:] if is_name(first) else None
