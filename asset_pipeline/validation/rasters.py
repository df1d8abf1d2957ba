"""A picture file inside a document: its true type against the declared one, then the gates of that type.

One table says which types a decoder may see. Drawings (EMF, WMF, SVG, PostScript) are known by name and
never reach one. What the declared type is worth is decided here as well: a picture whose bytes are of
another type than its package says is refused, since two readers would see two pictures.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.gif import check_gif
from asset_pipeline.validation.jpeg import check_jpeg
from asset_pipeline.validation.jpx import check_jpx
from asset_pipeline.validation.limits import check_encoded, check_pixels
from asset_pipeline.validation.png import check_png
from asset_pipeline.validation.signatures import sniff
from asset_pipeline.validation.tiff import check_tiff
from asset_pipeline.validation.webp import check_webp

_ALIASES = {
    **dict.fromkeys(("image/jpg", "image/pjpeg", "image/jpe"), "image/jpeg"),
    "image/x-png": "image/png",
    **dict.fromkeys(("image/tif", "image/x-tiff"), "image/tiff"),
    **dict.fromkeys(("image/x-bmp", "image/x-ms-bmp", "image/x-windows-bmp", "image/dib"), "image/bmp"),
    **dict.fromkeys(("image/jpx", "image/j2c", "image/jpm", "image/jpeg2000"), "image/jp2"),
    **dict.fromkeys(("image/x-emf", "image/emz", "image/x-emz"), "image/emf"),
    **dict.fromkeys(("image/x-wmf", "image/wmz", "image/x-wmz"), "image/wmf"),
    "image/svg": "image/svg+xml",
    **dict.fromkeys(("image/eps", "image/x-eps", "application/eps"), "application/postscript"),
}
DRAWINGS = frozenset(
    {"image/emf", "image/wmf", "image/svg+xml", "image/pict", "image/x-pict", "application/postscript"}
)
"""Types that are programs for drawing; a list of pixels is not what they are."""

_METAFILES = frozenset({"image/emf", "image/wmf"})
"""Programs read either under the name of the other, and writers mix them up."""

_PACKED = frozenset({"application/gzip"})
_UNSAID = frozenset({"application/octet-stream", "application/xml", "text/xml"})


@dataclass(frozen=True, slots=True)
class Raster:
    """A picture file that passed its gates: true type, size, and what its own reader found."""

    media_type: str
    width: int
    height: int
    facts: Any


def check_raster(data: bytes, declared: str | None, limits: Limits) -> Raster:
    """Everything that can be known without decoding. Raises Refusal with the exact reason.

    ``declared`` is the type that the package gives the file; None where it gives none.
    """
    if not data:
        raise Refusal(Reason.TRUNCATED_STREAM)
    check_encoded(len(data), limits)
    said, found = plain_type(declared), plain_type(sniff(data[:64]))
    if said in DRAWINGS and (found in (said, None, *_PACKED) or {said, found} == _METAFILES):
        raise Refusal(Reason.UNSUPPORTED_CODEC, "a drawing")
    if said is not None and said not in _UNSAID and said != found:
        raise Refusal(Reason.SIGNATURE_MISMATCH)
    if found in DRAWINGS:
        raise Refusal(Reason.UNSUPPORTED_CODEC, "a drawing")
    gate = _GATES.get(found or "")
    if found is None or gate is None:
        raise Refusal(Reason.MEDIA_TYPE_NOT_ALLOWED)
    facts = gate(data, limits)
    return Raster(found, facts.width, facts.height, facts)


def plain_type(media_type: str | None) -> str | None:
    """One spelling of a media type: small letters, no parameters, no old names."""
    if media_type is None:
        return None
    plain = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain) or None


@dataclass(slots=True)
class BmpFacts:
    """What the header of a bitmap says."""

    width: int
    height: int


def check_bmp(data: bytes, limits: Limits) -> BmpFacts:
    """Signature, dimensions, and rows where they are not compressed."""
    if data[:2] != b"BM":
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    if len(data) < 54:
        raise Refusal(Reason.TRUNCATED_STREAM)
    start, size = struct.unpack_from("<II", data, 10)
    if size < 40:
        raise Refusal(Reason.UNSUPPORTED_CODEC, "header")
    width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    check_pixels(width, abs(height), limits)
    if compression in (0, 3) and start + (width * bits + 31) // 32 * 4 * abs(height) > len(data):
        raise Refusal(Reason.TRUNCATED_STREAM)
    return BmpFacts(width, abs(height))


_GATES: dict[str, Callable[[bytes, Limits], Any]] = {
    "image/png": check_png,
    "image/jpeg": check_jpeg,
    "image/gif": check_gif,
    "image/webp": check_webp,
    "image/tiff": check_tiff,
    "image/bmp": check_bmp,
    "image/jp2": check_jpx,
}

PICTURES = frozenset(_GATES) | DRAWINGS
"""Every type of picture that is known by name, decodable or not."""
