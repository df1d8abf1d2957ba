"""The blocks of a GIF, undecoded: canvas, frames, comments, where it ends.

Bytes behind the end are refused whatever they are: a GIF that is a script as well opens its comment in
the header and ends it there.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_frames, check_metadata, check_pixels

_EXTENSION, _IMAGE, _END = 0x21, 0x2C, 0x3B
_GRAPHIC_CONTROL = 0xF9


@dataclass(slots=True)
class GifFacts:
    """What the blocks say; ``width`` and ``height`` are the canvas."""

    width: int = 0
    height: int = 0
    frames: int = 0
    metadata_bytes: int = 0


def check_gif(data: bytes, limits: Limits) -> GifFacts:
    """Signature, canvas and frame sizes, frames, comments, completeness, end. Raises Refusal."""
    if data[:6] not in (b"GIF87a", b"GIF89a"):
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    if len(data) < 13:
        raise Refusal(Reason.TRUNCATED_STREAM)
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    check_pixels(width, height, limits)
    facts = GifFacts(width, height)
    at = 13 + _colours(flags)
    while at < len(data):
        kind = data[at]
        if kind == _END:
            if not facts.frames:
                raise Refusal(Reason.MALFORMED_STREAM, "no frame")
            if data[at + 1 :].strip(b"\0"):
                raise Refusal(Reason.TRAILING_DATA)
            return facts
        if kind == _IMAGE:
            at = _read_frame(facts, data, at + 1, limits)
        elif kind == _EXTENSION and at + 1 < len(data):
            began, label = at, data[at + 1]
            at = _skip_blocks(data, at + 2)
            if label != _GRAPHIC_CONTROL:
                facts.metadata_bytes += at - began
                check_metadata(facts.metadata_bytes, limits)
        else:
            raise Refusal(Reason.MALFORMED_STREAM, "block")
    raise Refusal(Reason.TRUNCATED_STREAM)


def _colours(flags: int) -> int:
    """Bytes of the colour table that ``flags`` announce."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _read_frame(facts: GifFacts, data: bytes, at: int, limits: Limits) -> int:
    if at + 10 > len(data):
        raise Refusal(Reason.TRUNCATED_STREAM)
    left, top, width, height, flags = struct.unpack_from("<HHHHB", data, at)
    check_pixels(width, height, limits)
    if left + width > facts.width or top + height > facts.height:
        # Decoders enlarge the canvas for such a frame; the header's size would no longer hold.
        raise Refusal(Reason.INVALID_DIMENSIONS, "frame beyond the canvas")
    facts.frames += 1
    check_frames(facts.frames, limits)
    return _skip_blocks(data, at + 9 + _colours(flags) + 1)


def _skip_blocks(data: bytes, at: int) -> int:
    """Offset behind a chain of sub-blocks."""
    while at < len(data):
        length = data[at]
        at += 1 + length
        if not length:
            return at
    raise Refusal(Reason.TRUNCATED_STREAM)
