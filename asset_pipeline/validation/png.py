"""The chunks of a PNG, read before any raster is allocated: size, frames, metadata, checksums, where it ends.

Image data is only counted here, in small pieces, against what the header promises: short data is
truncated, longer data is a bomb or hides something. Turning it into pixels belongs in ``extraction``.
Bytes behind the end are refused whatever they are: a picture that was saved over a larger one keeps
the cropped part of the old one there.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_expanded, check_frames, check_metadata, check_pixels

SIGNATURE = b"\x89PNG\r\n\x1a\n"
PALETTE = 3
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
_PASSES = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
_STRUCTURE = frozenset({b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"acTL", b"fcTL", b"fdAT"})
_MOST_CHUNKS = 100_000
_PIECE = 64 * 1024


@dataclass(slots=True)
class PngFacts:
    """What the chunks say. ``icc`` is the profile, expanded; ``oriented``: there is EXIF, which may turn it."""

    width: int = 0
    height: int = 0
    bits: int = 8
    colour: int = 0
    interlaced: bool = False
    frames: int = 0
    metadata_bytes: int = 0
    icc: bytes | None = None
    oriented: bool = False

    @property
    def channels(self) -> int:
        """Samples a pixel; one for a palette."""
        return _CHANNELS[self.colour]


def check_png(data: bytes, limits: Limits) -> PngFacts:
    """Signature, dimensions, checksums, frames, metadata, amount of image data, end. Raises Refusal."""
    if not data.startswith(SIGNATURE):
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    facts, counter, palette = PngFacts(), _Counter(), False
    for name, start, end in _chunks(data):
        if not facts.width:
            if name != b"IHDR":
                raise Refusal(Reason.MALFORMED_STREAM, "no header")
            _read_header(facts, data[start:end], limits)
        elif name == b"IHDR":
            raise Refusal(Reason.MALFORMED_STREAM, "a second header")
        elif name == b"IDAT":
            counter.feed(memoryview(data)[start:end], _expected_bytes(facts))
        elif name == b"PLTE":
            palette = 0 < end - start <= 768 and (end - start) % 3 == 0
        elif name in (b"acTL", b"fcTL"):
            _count_frames(facts, name, data[start:end], limits)
        elif name == b"IEND":
            counter.finish(_expected_bytes(facts))
            if facts.colour == PALETTE and not palette:
                raise Refusal(Reason.MALFORMED_STREAM, "palette")
            if data[end + 4 :].strip(b"\0"):
                raise Refusal(Reason.TRAILING_DATA)
            return facts
        elif name not in _STRUCTURE:
            _read_metadata(facts, name, data[start:end], limits)
    raise Refusal(Reason.TRUNCATED_STREAM)


def _chunks(data: bytes) -> Iterator[tuple[bytes, int, int]]:
    """(name, start, end) of each chunk whose checksum is right; ends where the data does."""
    at = len(SIGNATURE)
    for _ in range(_MOST_CHUNKS):
        if at + 12 > len(data):
            return
        length, name = struct.unpack_from(">I4s", data, at)
        if not name.isalpha():
            raise Refusal(Reason.MALFORMED_STREAM, "chunk name")
        start, end = at + 8, at + 8 + length
        if name != b"IHDR" and end + 4 > len(data):
            return
        # The header is handed on first: a size over the limit is told before whatever else is wrong.
        yield name, start, min(end, len(data))
        if end + 4 > len(data):
            return
        if zlib.crc32(memoryview(data)[at + 4 : end]) != struct.unpack_from(">I", data, end)[0]:
            raise Refusal(Reason.MALFORMED_STREAM, "checksum")
        at = end + 4
    raise Refusal(Reason.MALFORMED_STREAM, "too many chunks")


def _read_header(facts: PngFacts, body: bytes, limits: Limits) -> None:
    if len(body) != 13:
        raise Refusal(Reason.MALFORMED_STREAM if len(body) > 13 else Reason.TRUNCATED_STREAM, "header")
    width, height, bits, colour, compression, filtering, interlace = struct.unpack(">IIBBBBB", body)
    check_pixels(width, height, limits)
    if bits not in _DEPTHS.get(colour, ()) or compression or filtering or interlace > 1:
        raise Refusal(Reason.MALFORMED_STREAM, "header")
    facts.width, facts.height, facts.bits, facts.colour = width, height, bits, colour
    facts.interlaced = interlace == 1
    check_expanded(_expected_bytes(facts), limits)


def _expected_bytes(facts: PngFacts) -> int:
    """Bytes of all filtered rows, which the header fixes."""
    width, height, bits = facts.width, facts.height, facts.bits * facts.channels
    if not facts.interlaced:
        return height * (1 + (width * bits + 7) // 8)
    total = 0
    for left, top, across, down in _PASSES:
        columns, rows = -(-max(0, width - left) // across), -(-max(0, height - top) // down)
        total += rows * (1 + (columns * bits + 7) // 8) if columns else 0
    return total


def _count_frames(facts: PngFacts, name: bytes, body: bytes, limits: Limits) -> None:
    if name == b"acTL":
        if len(body) < 8:
            raise Refusal(Reason.MALFORMED_STREAM, "frames")
        check_frames(struct.unpack_from(">I", body)[0], limits)
    else:
        facts.frames += 1
        check_frames(facts.frames, limits)


def _read_metadata(facts: PngFacts, name: bytes, body: bytes, limits: Limits) -> None:
    """Counts what a chunk says beside the picture, expanded; never expands more than may be there."""
    left = limits.metadata_bytes - facts.metadata_bytes
    packed = _packed_at(name, body)
    facts.metadata_bytes += len(body) + 12
    check_metadata(facts.metadata_bytes, limits)
    if packed is not None:
        text = _inflate(body[packed:], left + 1)
        facts.metadata_bytes += len(text)
        check_metadata(facts.metadata_bytes, limits)
        if name == b"iCCP":
            facts.icc = text or None
    if name == b"eXIf":
        facts.oriented = True


def _packed_at(name: bytes, body: bytes) -> int | None:
    """Where the compressed text of a chunk begins; None where there is none."""
    keyword = body.find(b"\0")
    if keyword < 0 or name not in (b"iCCP", b"zTXt", b"iTXt"):
        return None
    if name != b"iTXt":
        return keyword + 2
    if body[keyword + 1 : keyword + 2] != b"\1":
        return None
    language = body.find(b"\0", keyword + 3)
    translated = body.find(b"\0", language + 1) if language >= 0 else -1
    return translated + 1 if translated >= 0 else None


def _inflate(data: bytes, most: int) -> bytes:
    """What comes out before a fault, at most ``most`` bytes: the text of a chunk is not the picture."""
    try:
        return zlib.decompressobj().decompress(data, most)
    except zlib.error:
        return b""


class _Counter:
    """Counts image data without keeping it."""

    def __init__(self) -> None:
        self._inflater = zlib.decompressobj()
        self._count = 0

    def feed(self, data: memoryview, expected: int) -> None:
        """Count what ``data`` expands to; refuses as soon as it is more than ``expected``."""
        for at in range(0, len(data), _PIECE):
            pending: bytes | memoryview = data[at : at + _PIECE]
            if self._inflater.eof:
                self._refuse_hidden(bytes(pending))
                continue
            try:
                while pending and not self._inflater.eof:
                    self._count += len(self._inflater.decompress(pending, _PIECE))
                    if self._count > expected:
                        raise Refusal(Reason.MALFORMED_STREAM, "more data than pixels")
                    pending = self._inflater.unconsumed_tail
            except zlib.error:
                raise Refusal(Reason.MALFORMED_STREAM) from None
            self._refuse_hidden(self._inflater.unused_data)

    @staticmethod
    def _refuse_hidden(behind: bytes) -> None:
        if behind.strip(b"\0"):
            raise Refusal(Reason.TRAILING_DATA, "behind the image data")

    def finish(self, expected: int) -> None:
        """All rows are there and the data ends where it should."""
        if self._count < expected or not self._inflater.eof:
            raise Refusal(Reason.TRUNCATED_STREAM)
