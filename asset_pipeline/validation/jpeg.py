"""The markers of a JPEG, read without decoding: size, components, scans, metadata, where it ends.

One pass over the segments finds everything the gates need (SOF dimensions, scan count, bytes of
metadata) and what decides whether a JPEG describes itself (Adobe transform, ICC, EXIF orientation).
Entropy-coded data is not read here: a strict decode in ``extraction`` does that.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_dimensions, check_metadata, check_pixels
from asset_pipeline.validation.signatures import hides_a_file

SOS, EOI = 0xDA, 0xD9
_STANDALONE = frozenset({0x01, *range(0xD0, 0xD8)})
_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
SEQUENTIAL_FRAMES = frozenset({0xC0, 0xC1})
DECODABLE_FRAMES = SEQUENTIAL_FRAMES | {0xC2}
_AFTER_SCAN = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")


@dataclass(slots=True)
class JpegFacts:
    """What the markers say. ``end`` is the offset behind EOI, None when there is no EOI."""

    width: int = 0
    height: int = 0
    components: int = 0
    precision: int = 8
    frame: int = 0
    component_ids: bytes = b""
    scans: int = 0
    metadata_bytes: int = 0
    jfif: bool = False
    adobe_transform: int | None = None
    orientation: int = 1
    icc: bytes | None = None
    end: int | None = None
    _icc_parts: dict[int, bytes] = field(default_factory=dict)


class Segment(NamedTuple):
    """One marker segment: its body is ``start`` to ``end``; entropy-coded data of a scan goes on to ``scan_end``."""

    marker: int
    start: int
    end: int
    scan_end: int


def segments(data: bytes, *, behind_scans: bool = True) -> Iterator[Segment]:
    """The segments of ``data``, which begins with FF D8, up to EOI or to where the data is cut.

    Without ``behind_scans`` the first scan is the last segment, its entropy-coded data not looked through.
    """
    at = 2
    while (at := _next_marker(data, at)) >= 0:
        marker = data[at + 1]
        at += 2
        if marker == EOI:
            yield Segment(EOI, at, at, at)
            return
        if marker in _STANDALONE:
            continue
        if marker == 0xD8:
            raise Refusal(Reason.MALFORMED_STREAM, "a second start inside")
        if at + 2 > len(data):
            return
        length = struct.unpack_from(">H", data, at)[0]
        if length < 2:
            raise Refusal(Reason.MALFORMED_STREAM, "segment length")
        start, at = at + 2, at + length
        if at > len(data):
            return
        end = at
        if marker == SOS and not behind_scans:
            yield Segment(marker, start, end, end)
            return
        if marker == SOS:
            found = _AFTER_SCAN.search(data, at)
            at = found.start() if found else len(data)
        yield Segment(marker, start, end, at)


def read_jpeg(data: bytes) -> JpegFacts:
    """Walk the segments of ``data``, which begins with FF D8. Raises Refusal where they make no sense."""
    facts = JpegFacts()
    for segment in segments(data):
        if segment.marker == EOI:
            facts.end = segment.end
        elif segment.marker == SOS:
            facts.scans += 1
        else:
            _read_segment(facts, segment.marker, data[segment.start : segment.end])
    if facts._icc_parts:
        facts.icc = b"".join(part for _, part in sorted(facts._icc_parts.items()))
        facts._icc_parts.clear()
    return facts


def check_jpeg(data: bytes, limits: Limits) -> JpegFacts:
    """Signature, dimensions, scans, metadata and completeness, all before any decode."""
    if data[:2] != b"\xff\xd8":
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    facts = read_jpeg(data)
    if facts.frame:
        check_dimensions(facts.width, facts.height)
        check_pixels(facts.width, facts.height, limits)
    check_metadata(facts.metadata_bytes, limits)
    if facts.scans > limits.jpeg_scans:
        raise Refusal(Reason.FRAME_BUDGET_EXCEEDED)
    if not facts.frame or not facts.scans:
        raise Refusal(Reason.TRUNCATED_STREAM if facts.end is None else Reason.MALFORMED_STREAM)
    if facts.frame not in DECODABLE_FRAMES or facts.precision != 8 or facts.components not in (1, 3, 4):
        raise Refusal(Reason.UNSUPPORTED_CODEC)
    if facts.end is None:
        raise Refusal(Reason.TRUNCATED_STREAM)
    if hides_a_file(data[facts.end : facts.end + 4096]):
        raise Refusal(Reason.TRAILING_DATA)
    return facts


def _next_marker(data: bytes, at: int) -> int:
    """Offset of the next FF that begins a marker, or -1. Fill bytes (FF FF) are legal before one."""
    while 0 <= at < len(data) - 1:
        at = data.find(b"\xff", at)
        if at < 0 or at >= len(data) - 1:
            return -1
        if data[at + 1] not in (0x00, 0xFF):
            return at
        at += 1
    return -1


def _read_segment(facts: JpegFacts, marker: int, body: bytes) -> None:
    if marker in _FRAMES:
        if facts.frame or len(body) < 6:
            raise Refusal(Reason.MALFORMED_STREAM, "frame header")
        facts.frame = marker
        facts.precision, facts.height, facts.width, facts.components = struct.unpack_from(">BHHB", body)
        facts.component_ids = body[6::3][: facts.components]
    elif 0xE0 <= marker <= 0xEF or marker == 0xFE:
        facts.metadata_bytes += len(body) + 4
        if marker == 0xE0 and body[:5] == b"JFIF\0":
            facts.jfif = True
        elif marker == 0xEE and body[:5] == b"Adobe" and len(body) >= 12:
            facts.adobe_transform = body[11]
        elif marker == 0xE1 and body[:6] == b"Exif\0\0":
            facts.orientation = _orientation(body[6:])
        elif marker == 0xE2 and body[:12] == b"ICC_PROFILE\0" and len(body) > 14:
            facts._icc_parts.setdefault(body[12], body[14:])


def _orientation(exif: bytes) -> int:
    """EXIF orientation (1 to 8) of the first directory; 1 when absent or nonsense. Follows no loops."""
    order = {b"II": "<", b"MM": ">"}.get(exif[:2])
    if not order or len(exif) < 8:
        return 1
    start = struct.unpack_from(order + "I", exif, 4)[0]
    if start + 2 > len(exif):
        return 1
    count = min(struct.unpack_from(order + "H", exif, start)[0], 200)
    for index in range(count):
        at = start + 2 + 12 * index
        if at + 12 > len(exif):
            break
        tag, kind = struct.unpack_from(order + "HH", exif, at)
        if tag == 0x0112 and kind == 3:
            value: int = struct.unpack_from(order + "H", exif, at + 8)[0]
            return value if 1 <= value <= 8 else 1
    return 1
