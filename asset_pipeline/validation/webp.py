"""The chunks of a WebP, undecoded: canvas and bitstream sizes, frames, metadata, where it ends."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_frames, check_metadata, check_pixels


@dataclass(slots=True)
class WebpFacts:
    """What the chunks say. ``width`` and ``height`` are the canvas, or the bitstream's where there is none."""

    width: int = 0
    height: int = 0
    frames: int = 0
    metadata_bytes: int = 0
    icc: bytes | None = None
    oriented: bool = False


def check_webp(data: bytes, limits: Limits) -> WebpFacts:
    """Signature, sizes, frames, metadata, completeness, end. Raises Refusal."""
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    facts = WebpFacts()
    for name, start, stop in _chunks(data, min(end, len(data))):
        _read_chunk(facts, name, data, start, stop, limits)
    if end > len(data):
        raise Refusal(Reason.TRUNCATED_STREAM)
    if not facts.frames:
        raise Refusal(Reason.MALFORMED_STREAM, "no picture")
    if data[end:].strip(b"\0"):
        raise Refusal(Reason.TRAILING_DATA)
    return facts


def _chunks(data: bytes, end: int) -> Iterator[tuple[bytes, int, int]]:
    at = 12
    while at + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, at)
        stop = at + 8 + length
        yield name, at + 8, min(stop, end)
        if stop > end:
            raise Refusal(Reason.TRUNCATED_STREAM)
        at = stop + length % 2


def _read_chunk(facts: WebpFacts, name: bytes, data: bytes, start: int, stop: int, limits: Limits) -> None:
    if name == b"VP8X":
        if stop - start < 10:
            raise Refusal(Reason.TRUNCATED_STREAM)
        facts.width = int.from_bytes(data[start + 4 : start + 7], "little") + 1
        facts.height = int.from_bytes(data[start + 7 : start + 10], "little") + 1
        check_pixels(facts.width, facts.height, limits)
    elif name in (b"VP8 ", b"VP8L", b"ANMF"):
        facts.frames += 1
        check_frames(facts.frames, limits)
        width, height = _size(name, data[start : start + 16])
        check_pixels(width, height, limits)
        if not facts.width:
            facts.width, facts.height = width, height
        elif width > facts.width or height > facts.height:
            raise Refusal(Reason.INVALID_DIMENSIONS, "frame beyond the canvas")
    elif name != b"ALPH" and name != b"ANIM":
        facts.metadata_bytes += stop - start
        check_metadata(facts.metadata_bytes, limits)
        if name == b"ICCP":
            facts.icc = data[start:stop]
        facts.oriented |= name == b"EXIF"


def _size(name: bytes, head: bytes) -> tuple[int, int]:
    """Width and height that the beginning of a bitstream or frame states."""
    if len(head) < 10:
        raise Refusal(Reason.TRUNCATED_STREAM)
    if name == b"ANMF":
        if len(head) < 16:
            raise Refusal(Reason.TRUNCATED_STREAM)
        return int.from_bytes(head[6:9], "little") + 1, int.from_bytes(head[9:12], "little") + 1
    if name == b"VP8L":
        if head[0] != 0x2F:
            raise Refusal(Reason.MALFORMED_STREAM, "lossless header")
        packed = int.from_bytes(head[1:5], "little")
        return (packed & 0x3FFF) + 1, (packed >> 14 & 0x3FFF) + 1
    if head[3:6] != b"\x9d\x01\x2a":
        raise Refusal(Reason.MALFORMED_STREAM, "lossy header")
    width, height = struct.unpack_from("<HH", head, 6)
    return width & 0x3FFF, height & 0x3FFF
