"""The directories of a TIFF, undecoded: size, frames, where the samples lie, metadata.

Every offset and count that libtiff would follow or allocate for is checked here first. The chain of
directories is followed only as far as the policy allows frames, and never in a circle.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_expanded, check_frames, check_metadata, check_pixels
from asset_pipeline.validation.signatures import hides_a_file

_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4}
_WHOLE = {1: "B", 3: "H", 4: "I"}
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _PHOTOMETRIC = 256, 257, 258, 259, 262
_STRIPS, _SAMPLES, _ROWS, _STRIP_BYTES, _PLANES = 273, 277, 278, 279, 284
_TILE_WIDTH, _TILE_HEIGHT, _TILES, _TILE_BYTES = 322, 323, 324, 325
_ICC = 34675
_STRUCTURE = frozenset(
    {*range(254, 270), *range(273, 300), *range(301, 305), *range(317, 348), 512, 513, 514, 529, 530}
)
_MOST_SAMPLES = 8
_MOST_ENTRIES = 1_000

Entry = tuple[int, int, int]
"""Type, count and where the values lie."""


@dataclass(slots=True)
class TiffFacts:
    """What the first directory says."""

    width: int = 0
    height: int = 0
    samples: int = 1
    bits: int = 1
    photometric: int = 0
    frames: int = 0
    metadata_bytes: int = 0
    icc: bytes | None = None
    _seen: set[int] = field(default_factory=set)


def check_tiff(data: bytes, limits: Limits) -> TiffFacts:
    """Signature, dimensions, strips or tiles, frames, metadata. Raises Refusal."""
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(data[:4])
    if order is None:
        if data[:4] in (b"II+\0", b"MM\0+"):
            raise Refusal(Reason.UNSUPPORTED_CODEC, "BigTIFF")
        raise Refusal(Reason.SIGNATURE_MISMATCH if data else Reason.TRUNCATED_STREAM)
    reader = _Reader(data, order)
    facts = TiffFacts()
    at = reader.number("I", 4)
    if not at:
        raise Refusal(Reason.MALFORMED_STREAM, "no directory")
    end = 0
    while at:
        if at in facts._seen:
            raise Refusal(Reason.STRUCTURE_LOOP)
        facts._seen.add(at)
        facts.frames += 1
        check_frames(facts.frames, limits)
        entries, following = reader.directory(at)
        if facts.frames == 1:
            end = max(_check_first(facts, reader, entries, limits), following)
        at = reader.number("I", following - 4)
    if hides_a_file(data[end : end + 4096]):
        raise Refusal(Reason.TRAILING_DATA)
    return facts


class _Reader:
    """Numbers at offsets; whatever lies behind the end of the data is truncated."""

    def __init__(self, data: bytes, order: str) -> None:
        self.data = data
        self._order = order

    def number(self, kind: str, at: int) -> int:
        try:
            value: int = struct.unpack_from(self._order + kind, self.data, at)[0]
        except struct.error:
            raise Refusal(Reason.TRUNCATED_STREAM) from None
        return value

    def directory(self, at: int) -> tuple[dict[int, Entry], int]:
        """Entries by tag, the first of each counts; and the offset behind the directory."""
        count = self.number("H", at)
        if not 0 < count <= _MOST_ENTRIES:
            raise Refusal(Reason.MALFORMED_STREAM, "directory")
        entries: dict[int, Entry] = {}
        for index in range(count):
            start = at + 2 + 12 * index
            tag, kind = self.number("H", start), self.number("H", start + 2)
            many = self.number("I", start + 4)
            length = many * _SIZES.get(kind, 1)
            entries.setdefault(tag, (kind, many, start + 8 if length <= 4 else self.number("I", start + 8)))
        return entries, at + 2 + 12 * count + 4

    def values(self, entry: Entry | None, most: int) -> list[int]:
        """Whole numbers of an entry; empty where there is none. ``most`` is how many make sense."""
        if entry is None:
            return []
        kind, count, at = entry
        letter = _WHOLE.get(kind)
        if letter is None or count > most:
            raise Refusal(Reason.MALFORMED_STREAM, "values")
        try:
            return list(struct.unpack_from(f"{self._order}{count}{letter}", self.data, at))
        except struct.error:
            raise Refusal(Reason.TRUNCATED_STREAM) from None


def _check_first(facts: TiffFacts, reader: _Reader, entries: dict[int, Entry], limits: Limits) -> int:
    """Check the first directory; the offset behind the last byte that it uses."""

    def one(tag: int, default: int) -> int:
        return next(iter(reader.values(entries.get(tag), 1)), default)

    facts.width, facts.height = one(_WIDTH, 0), one(_HEIGHT, 0)
    check_pixels(facts.width, facts.height, limits)
    facts.samples, facts.photometric = one(_SAMPLES, 1), one(_PHOTOMETRIC, 0)
    if not 0 < facts.samples <= _MOST_SAMPLES:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "samples")
    facts.bits = max(reader.values(entries.get(_BITS), _MOST_SAMPLES), default=1)
    if facts.bits not in (1, 2, 4, 8, 16):
        raise Refusal(Reason.UNSUPPORTED_CODEC, "depth")
    check_expanded(facts.height * ((facts.width * facts.samples * facts.bits + 7) // 8), limits)
    end = _check_metadata(facts, reader.data, entries, limits)
    planes = facts.samples if one(_PLANES, 1) == 2 else 1
    if _TILES in entries:
        across, down = one(_TILE_WIDTH, 0), one(_TILE_HEIGHT, 0)
        check_pixels(across, down, limits)
        pieces = -(-facts.width // across) * -(-facts.height // down) * planes
        return max(end, _check_pieces(reader, entries, _TILES, _TILE_BYTES, pieces))
    rows = min(one(_ROWS, facts.height) or facts.height, facts.height)
    return max(end, _check_pieces(reader, entries, _STRIPS, _STRIP_BYTES, -(-facts.height // rows) * planes))


def _check_pieces(reader: _Reader, entries: dict[int, Entry], where: int, lengths: int, pieces: int) -> int:
    offsets, counts = reader.values(entries.get(where), pieces), reader.values(entries.get(lengths), pieces)
    if len(offsets) != pieces or len(counts) != pieces:
        raise Refusal(Reason.MALFORMED_STREAM, "strips or tiles")
    end = max(offset + count for offset, count in zip(offsets, counts, strict=True))
    if end > len(reader.data):
        raise Refusal(Reason.TRUNCATED_STREAM)
    return end


def _check_metadata(facts: TiffFacts, data: bytes, entries: dict[int, Entry], limits: Limits) -> int:
    """Count what the entries hold beside the picture; the offset behind the last value."""
    end = 0
    for tag, (kind, count, at) in entries.items():
        length = count * _SIZES.get(kind, 1)
        if tag not in _STRUCTURE:
            facts.metadata_bytes += length
            check_metadata(facts.metadata_bytes, limits)
        if tag not in (_STRIPS, _STRIP_BYTES, _TILES, _TILE_BYTES) and at + length > len(data):
            raise Refusal(Reason.TRUNCATED_STREAM)
        end = max(end, at + length)
        if tag == _ICC:
            facts.icc = data[at : at + length]
    return min(end, len(data))
