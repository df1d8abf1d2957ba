"""The segment headers of an embedded JBIG2 stream, undecoded: page size, and whether all data is there.

PDFium decodes JBIG2 but paints what it can of a short stream, so sizes and lengths are checked here
first. Embedded streams have no file header; globals come in a stream of their own (PDF 7.4.7).
"""

from __future__ import annotations

import struct

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_pixels

_PAGE, _END_OF_PAGE, _END_OF_FILE = 48, 49, 51
_GENERIC = frozenset({36, 38, 39})
_REGIONS = frozenset({4, 6, 7, 20, 22, 23, 36, 38, 39, 40, 42, 43})
_UNKNOWN = 0xFFFFFFFF
MAX_SEGMENTS = 100_000
_SHORTEST_HEADER = 11


def check_jbig2(data: bytes, limits: Limits, *, globals_: bool = False) -> None:
    """Follow all segments; a picture has a page of allowed size, and a region on it or an end that leaves it blank."""
    if not data:
        raise Refusal(Reason.TRUNCATED_STREAM)
    if data.startswith(b"\x97JB2"):
        raise Refusal(Reason.SIGNATURE_MISMATCH, "a JBIG2 file, not an embedded stream")
    at = segments = 0
    page = region = ended = False
    while at < len(data):
        if region and len(data) - at < _SHORTEST_HEADER:
            break  # padding behind the last segment
        segments += 1
        if segments > MAX_SEGMENTS:
            raise Refusal(Reason.MALFORMED_STREAM, "segments")
        kind, body, length = _read_header(data, at)
        if kind in (_END_OF_PAGE, _END_OF_FILE):
            ended = True
            break
        if length == _UNKNOWN:
            if kind not in _GENERIC:
                raise Refusal(Reason.MALFORMED_STREAM, "length")
            region = True
            _check_region(data, body, limits)
            break
        if body + length > len(data):
            raise Refusal(Reason.TRUNCATED_STREAM)
        if kind == _PAGE:
            page = True
            _check_page(data, body, length, limits)
        elif kind in _REGIONS:
            region = True
            _check_region(data, body, limits)
        at = body + length
    if not globals_ and not (page and (region or ended)):
        raise Refusal(Reason.TRUNCATED_STREAM if page or not segments else Reason.MALFORMED_STREAM)


def _read_header(data: bytes, at: int) -> tuple[int, int, int]:
    """(segment type, offset of its data, length of its data) of the header at ``at`` (T.88 7.2)."""
    try:
        number, flags, count = struct.unpack_from(">IBB", data, at)
        at += 5
        referred = count >> 5
        if referred == 7:
            referred = struct.unpack_from(">I", data, at)[0] & 0x1FFFFFFF
            at += 4 + (referred + 8) // 8
        elif referred > 4:
            raise Refusal(Reason.MALFORMED_STREAM, "references")
        else:
            at += 1
        at += referred * (1 if number <= 256 else 2 if number <= 65536 else 4)
        at += 4 if flags & 0x40 else 1
        length = struct.unpack_from(">I", data, at)[0]
    except struct.error:
        raise Refusal(Reason.TRUNCATED_STREAM) from None
    return flags & 0x3F, at + 4, length


def _check_page(data: bytes, body: int, length: int, limits: Limits) -> None:
    if length < 19:
        raise Refusal(Reason.MALFORMED_STREAM, "page")
    width, height = struct.unpack_from(">II", data, body)
    if height == _UNKNOWN:  # striped: the height comes in at the end of each stripe
        height = 1
    check_pixels(width, height, limits)


def _check_region(data: bytes, body: int, limits: Limits) -> None:
    if body + 17 > len(data):
        raise Refusal(Reason.TRUNCATED_STREAM)
    width, height = struct.unpack_from(">II", data, body)
    if width and height:
        check_pixels(width, height, limits)
