"""A picture opened: all gates passed, nothing decoded yet; then its sample codes, strictly checked.

The one place that knows every codec. ``Opened.codes`` raises ``Refusal`` for data that is short or does
not decode, so whoever holds codes holds real ones. Masks are opened the same way as pictures.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.ccitt import decode_ccitt, read_fax_parameters
from asset_pipeline.extraction.pdf.colour import BY_COMPONENTS, GRAY, Space, for_components, read_space
from asset_pipeline.extraction.pdf.fax import FaxParameters
from asset_pipeline.extraction.pdf.isolate import decode_stream
from asset_pipeline.extraction.pdf.jpeg import decode_jpeg
from asset_pipeline.extraction.pdf.jpx import decode_jpx
from asset_pipeline.extraction.pdf.samples import Codes, row_bytes, unpack
from asset_pipeline.extraction.pdf.streams import Stored, expand_samples, is_empty, open_stream
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jbig2 import check_jbig2
from asset_pipeline.validation.jpeg import JpegFacts, check_jpeg
from asset_pipeline.validation.jpx import JpxFacts, check_jpx
from asset_pipeline.validation.limits import check_expanded, check_pixels

_LEADING = 32


@dataclass(slots=True)
class Opened:
    """A picture that passed the gates. ``width`` and ``height`` are those of its data.

    ``wraps`` is known once decoded: the Flate data is exactly the body of a PNG of this geometry.
    """

    image: Any
    width: int
    height: int
    bits: int
    space: Space
    stencil: bool
    stored: Stored
    limits: Limits
    jpeg: JpegFacts | None = None
    jpx: JpxFacts | None = None
    fax: FaxParameters | None = None
    jpx_mode: str = ""
    wraps: bool = False
    _codes: Codes | None = field(default=None, repr=False)

    @property
    def codec(self) -> str | None:
        """Name of the codec, None for raw samples."""
        return self.stored.codec.name if self.stored.codec else None

    @property
    def components(self) -> int:
        """Sample codes a pixel."""
        return 1 if self.stencil else self.space.components

    def codes(self) -> Codes:
        """Sample codes ``(height, width, components)``, decoded once."""
        if self._codes is None:
            self._codes = _decode(self)
        return self._codes


def open_picture(image: Any, limits: Limits, *, mask: bool = False, space: Space | None = None) -> Opened:
    """Gate the picture in ``image``: dictionary, chain, codec header. A ``mask`` is gray or a stencil.

    ``space`` counts instead of the one that the dictionary names, and has as many components.
    """
    width, height = whole_number(image, "/Width", "/W"), whole_number(image, "/Height", "/H")
    check_pixels(width, height, limits)
    stencil = image.get("/ImageMask", image.get("/IM")) is True
    stored = open_stream(image, limits)
    codec = stored.codec.name if stored.codec else None
    declared = image.get("/ColorSpace", image.get("/CS"))
    if space is not None:
        pass
    elif stencil or (mask and declared is None):
        space = GRAY
    elif declared is not None:
        space = read_space(declared, limits)
    elif codec in ("JPXDecode", "DCTDecode", "CCITTFaxDecode", "JBIG2Decode"):
        space = GRAY
    else:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE)
    opened = Opened(image, width, height, _bits(image, codec, stencil), space, stencil, stored, limits)
    if codec == "DCTDecode":
        _gate_jpeg(opened, declared is None, limits)
    elif codec == "JPXDecode":
        _gate_jpx(opened, declared is None, limits)
    elif codec == "CCITTFaxDecode" and stored.codec is not None:
        opened.fax = read_fax_parameters(stored.codec, height, limits)
    elif codec == "JBIG2Decode":
        check_jbig2(stored.data, limits)
        if (shared := _jbig2_globals(opened, limits)) is not None:
            check_jbig2(shared, limits, globals_=True)
    check_expanded(row_bytes(opened.width, opened.components, opened.bits) * opened.height, limits)
    if codec in ("CCITTFaxDecode", "JBIG2Decode") and opened.space.components != 1:
        opened.space = for_components(opened.space, 1)
    return opened


def _gate_jpeg(opened: Opened, undeclared: bool, limits: Limits) -> None:
    start = opened.stored.data[:_LEADING].lstrip(b"\0\t\n\x0c\r ")
    if len(start) < _LEADING and start.startswith(b"\xff\xd8"):  # white space before the start belongs to nobody
        opened.stored = replace(opened.stored, data=opened.stored.data.lstrip(b"\0\t\n\x0c\r "))
    facts = check_jpeg(opened.stored.data, limits)
    opened.jpeg = facts
    opened.width, opened.height, opened.bits = facts.width, facts.height, 8
    if opened.stencil:
        raise Refusal(Reason.UNSUPPORTED_CODEC, "a stencil of JPEG")
    if undeclared:
        opened.space = BY_COMPONENTS[facts.components]
    opened.space = for_components(opened.space, facts.components)


def _gate_jpx(opened: Opened, undeclared: bool, limits: Limits) -> None:
    facts = check_jpx(opened.stored.data, limits)
    opened.jpx = facts
    opened.width, opened.height, opened.bits = facts.width, facts.height, facts.bits
    if undeclared:
        colours = facts.components - (1 if facts.alpha is not None or facts.components in (2, 5) else 0)
        opened.space = BY_COMPONENTS.get(3 if facts.palette else colours, GRAY)


def _decode(opened: Opened) -> Codes:
    stored = opened.stored
    width, height = opened.width, opened.height
    if stored.codec is None:
        return _decode_raw(opened)
    if opened.jpeg is not None:
        transform = stored.codec.number("/ColorTransform", -1)
        return decode_jpeg(stored.data, opened.jpeg, None if transform < 0 else transform)
    if opened.jpx is not None:
        codes, opened.jpx_mode = decode_jpx(stored.data)
        return codes
    if stored.codec.name == "CCITTFaxDecode":
        if opened.fax is None:
            raise Refusal(Reason.UNSUPPORTED_CODEC)
        return decode_ccitt(stored.data, opened.fax, width, height)
    return _decode_jbig2(opened)


def _decode_raw(opened: Opened) -> Codes:
    wanted = row_bytes(opened.width, opened.components, opened.bits) * opened.height
    declared = opened.stored.predictor
    if declared is None:
        out = expand_samples(opened.stored, wanted, opened.limits)
        data = out.data
    else:
        natural = replace(declared, columns=opened.width, colours=opened.components, bits=opened.bits)
        most = max(declared.stored_size(wanted), natural.stored_size(wanted))
        out = expand_samples(opened.stored, most, opened.limits)
        # Some producers leave Columns out: where only the picture's own geometry fits, to the byte, it is right.
        fits = len(out.data) == natural.stored_size(wanted) and natural.is_sound(out.data)
        predictor = natural if fits and not declared.is_sound(out.data[: declared.stored_size(wanted)]) else declared
        data = predictor.undo(out.data[: predictor.stored_size(wanted)], wanted)
        opened.wraps = predictor == natural and out.clean and fits
    if len(data) < wanted:
        raise Refusal(out.fault or Reason.TRUNCATED_STREAM)
    return unpack(data, opened.width, opened.height, opened.components, opened.bits)


def _decode_jbig2(opened: Opened) -> Codes:
    parms = opened.stored.codec.parms if opened.stored.codec else None
    shown = decode_stream(
        opened.stored.data,
        opened.width,
        opened.height,
        "JBIG2Decode",
        space=pikepdf.Name.DeviceGray,
        parms=parms,
        bits=1,
    )
    if shown.shape[:2] != (opened.height, opened.width):
        raise Refusal(Reason.MALFORMED_STREAM)
    gray = shown if shown.ndim == 2 else shown[:, :, 0]
    samples: Codes = (gray >> 7).reshape(opened.height, opened.width, 1)
    return samples


def _jbig2_globals(opened: Opened, limits: Limits) -> bytes | None:
    parms = opened.stored.codec.parms if opened.stored.codec else None
    shared = parms.get("/JBIG2Globals") if parms is not None else None
    if not isinstance(shared, pikepdf.Stream) or is_empty(shared):
        return None
    stored = open_stream(shared, limits)
    if stored.codec is not None:
        raise Refusal(Reason.MALFORMED_STREAM, "globals")
    return expand_samples(stored, limits.encoded_bytes, limits).data


def whole_number(image: Any, key: str, short: str) -> int:
    """The integer under ``key`` or its inline abbreviation; 0 when absent or not a number."""
    value = image.get(key, image.get(short))
    if isinstance(value, bool) or value is None:
        return 0
    try:
        return int(value)
    except (TypeError, ValueError, ArithmeticError):
        return 0


def _bits(image: Any, codec: str | None, stencil: bool) -> int:
    if stencil or codec in ("CCITTFaxDecode", "JBIG2Decode"):
        return 1
    if codec in ("DCTDecode", "JPXDecode"):
        return 8
    value = image.get("/BitsPerComponent", image.get("/BPC"))
    if value is None:
        return 8
    if value not in (1, 2, 4, 8, 16):
        raise Refusal(Reason.MALFORMED_STREAM, "bits")
    return int(value)
