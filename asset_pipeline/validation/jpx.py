"""The headers of a JPEG 2000 picture: JP2 boxes and the codestream's SIZ and tile parts, undecoded.

Every size that OpenJPEG would allocate for is read here first, because no library limit covers it.
Truncation is found by following the tile parts: decoders fill what is missing without a word.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_dimensions, check_metadata, check_pixels

MAX_COMPONENTS = 5
MAX_TILES = 65_535
_SUPERBOXES = (b"jp2h",)


@dataclass(slots=True)
class JpxFacts:
    """What the headers say. ``colour`` is the enumerated colour space, None when absent or ICC."""

    width: int = 0
    height: int = 0
    components: int = 0
    bits: int = 8
    signed: bool = False
    tiles: int = 0
    subsampled: bool = False
    raw: bool = False
    colour: int | None = None
    icc: bytes | None = None
    palette: bool = False
    alpha: int | None = None
    premultiplied: bool = False
    metadata_bytes: int = 0


def check_jpx(data: bytes, limits: Limits) -> JpxFacts:
    """Signature, dimensions of both headers, components, tiles and completeness."""
    facts = JpxFacts()
    if data[:4] == b"\xff\x4f\xff\x51":
        facts.raw = True
        start, end = 0, len(data)
    elif data[4:8] == b"jP  " and data[8:12] == b"\r\n\x87\n":
        start, end = _read_boxes(facts, data, limits)
    else:
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    check_metadata(facts.metadata_bytes, limits)
    _read_siz(facts, data, start, end, limits)
    _follow_tile_parts(facts, data, start, end)
    return facts


def _read_boxes(facts: JpxFacts, data: bytes, limits: Limits) -> tuple[int, int]:
    """Walk the boxes; (start, end) of the codestream."""
    pending = [(0, len(data))]
    found: tuple[int, int] | None = None
    seen = 0
    while pending:
        at, end = pending.pop()
        while at + 8 <= end:
            seen += 1
            if seen > 1000:
                raise Refusal(Reason.MALFORMED_STREAM, "boxes")
            length, kind = struct.unpack_from(">I4s", data, at)
            head = 8
            if length == 1:
                if at + 16 > end:
                    raise Refusal(Reason.TRUNCATED_STREAM)
                length = struct.unpack_from(">Q", data, at + 8)[0]
                head = 16
            if length == 0:
                length = end - at
            if length < head:
                raise Refusal(Reason.MALFORMED_STREAM, "box length")
            body, stop = at + head, at + length
            if kind == b"jp2c":
                if found is None:
                    found = (body, min(stop, len(data)))
            elif stop > end:
                raise Refusal(Reason.TRUNCATED_STREAM)
            elif kind in _SUPERBOXES:
                pending.append((body, stop))
            else:
                _read_box(facts, kind, data[body:stop], limits)
            at = stop
    if found is None:
        raise Refusal(Reason.TRUNCATED_STREAM, "no codestream")
    return found


def _read_box(facts: JpxFacts, kind: bytes, body: bytes, limits: Limits) -> None:
    if kind == b"ihdr" and len(body) >= 14:
        height, width = struct.unpack_from(">II", body)
        check_pixels(width, height, limits)
    elif kind == b"colr" and len(body) >= 3 and facts.colour is None and facts.icc is None:
        if body[0] == 1 and len(body) >= 7:
            facts.colour = struct.unpack_from(">I", body, 3)[0]
        elif body[0] in (2, 3):
            facts.icc = body[3:]
            facts.metadata_bytes += len(body)
    elif kind == b"pclr":
        facts.palette = True
    elif kind == b"cdef" and len(body) >= 2:
        for index in range(min(struct.unpack_from(">H", body)[0], (len(body) - 2) // 6)):
            channel, role, _ = struct.unpack_from(">HHH", body, 2 + 6 * index)
            if role in (1, 2):
                facts.alpha, facts.premultiplied = channel, role == 2
    elif kind in (b"xml ", b"uuid", b"uinf"):
        facts.metadata_bytes += len(body)


def _read_siz(facts: JpxFacts, data: bytes, start: int, end: int, limits: Limits) -> None:
    if data[start : start + 4] != b"\xff\x4f\xff\x51":
        raise Refusal(Reason.MALFORMED_STREAM, "codestream")
    if start + 42 > end:
        raise Refusal(Reason.TRUNCATED_STREAM)
    _, _, x1, y1, x0, y0, tw, th, tx, ty, count = struct.unpack_from(">HHIIIIIIIIH", data, start + 4)
    check_dimensions(x1 - x0, y1 - y0)
    # The reference grid is what decoders allocate for, so a far-away origin counts as well.
    check_pixels(x1, y1, limits)
    if not tw or not th or tx > x0 or ty > y0:
        raise Refusal(Reason.MALFORMED_STREAM, "tiles")
    facts.width, facts.height, facts.components = x1 - x0, y1 - y0, count
    facts.tiles = -(-(x1 - tx) // tw) * -(-(y1 - ty) // th)
    if facts.tiles > MAX_TILES:
        raise Refusal(Reason.MALFORMED_STREAM, "too many tiles")
    if not 0 < count <= MAX_COMPONENTS:
        raise Refusal(Reason.UNSUPPORTED_CODEC, "components")
    if start + 42 + 3 * count > end:
        raise Refusal(Reason.TRUNCATED_STREAM)
    for index in range(count):
        depth, dx, dy = struct.unpack_from(">BBB", data, start + 42 + 3 * index)
        if not dx or not dy:
            raise Refusal(Reason.MALFORMED_STREAM, "sampling")
        facts.subsampled |= dx != 1 or dy != 1
        if index == 0:
            facts.bits, facts.signed = (depth & 0x7F) + 1, bool(depth & 0x80)
    if facts.bits > 16:
        raise Refusal(Reason.UNSUPPORTED_CODEC, "depth")


def _follow_tile_parts(facts: JpxFacts, data: bytes, start: int, end: int) -> None:
    """Every tile has a part and every part lies within the data; a missing end marker alone is forgiven."""
    at = start + 2
    tiles: set[int] = set()
    while at + 4 <= end:
        marker = struct.unpack_from(">H", data, at)[0]
        if marker == 0xFFD9:
            break
        if marker < 0xFF00:
            raise Refusal(Reason.MALFORMED_STREAM, "marker")
        length = struct.unpack_from(">H", data, at + 2)[0]
        if marker != 0xFF90:
            if length < 2:
                raise Refusal(Reason.MALFORMED_STREAM, "marker length")
            at += 2 + length
            continue
        if at + 12 > end:
            raise Refusal(Reason.TRUNCATED_STREAM)
        tile, size = struct.unpack_from(">HI", data, at + 4)
        tiles.add(tile)
        if size == 0:
            if data.rfind(b"\xff\xd9", at, end) < 0:
                raise Refusal(Reason.TRUNCATED_STREAM)
            break
        if size < 14:
            raise Refusal(Reason.MALFORMED_STREAM, "tile part")
        if at + size > end:
            raise Refusal(Reason.TRUNCATED_STREAM)
        at += size
    if not tiles or len(tiles) < facts.tiles:
        raise Refusal(Reason.TRUNCATED_STREAM)
