"""What the header segments of a JPEG say to whoever reads its codes: Huffman tables, quantisers, layout.

Decoding belongs to libjpeg. This is for the walks that prove data sound (``jpeg_walk``, ``jpeg_progressive``)
and takes what the segments say; a segment that is short leaves things out, and the walk then judges nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_DC = 1024 + 32
"""Greatest |DC| of the transform of 8-bit samples, and a little for encoders that calculate roughly."""
MOST_BLOCKS = 10
"""Blocks in an MCU, by the standard."""
END, BAD = 128, 220


class Table(NamedTuple):
    """For each 16 bits: how many of them the code takes with its value's bits, what it stands for, its symbol.

    ``means`` of a DC table is the number of value bits, of an AC table the coefficients it goes forward:
    ``END`` at the end of a block, ``BAD`` for bits that are no code.
    """

    takes: NDArray[np.uint8]
    means: NDArray[np.uint8]
    lengths: NDArray[np.uint8]
    symbols: NDArray[np.uint8]


class Component(NamedTuple):
    """Sampling factors of a component and the number of its quantisation table."""

    across: int
    down: int
    quantiser: int


class Block(NamedTuple):
    """A block of an MCU: the numbers of its tables (AC from 16 on), its component, its greatest |DC| as quantised."""

    dc: int
    ac: int
    component: int
    most: float


@dataclass(slots=True)
class Tables:
    """What holds at some place of the JPEG."""

    quantisers: dict[int, int] = field(default_factory=dict)
    codes: dict[int, bytes] = field(default_factory=dict)
    components: dict[int, Component] = field(default_factory=dict)
    width: int = 0
    height: int = 0
    interval: int = 0

    def read(self, marker: int, body: bytes) -> None:
        """Take in a segment that is no scan."""
        if marker == 0xDB:
            self._read_quantisers(body)
        elif marker == 0xC4:
            self._read_codes(body)
        elif marker == 0xDD and len(body) >= 2:
            self.interval = struct.unpack_from(">H", body)[0]
        elif 0xC0 <= marker <= 0xC2:
            self._read_frame(body)

    def blocks(self, scan: bytes) -> list[Block] | None:
        """Blocks of one MCU of the scan with header ``scan``. None where they make no sense.

        One component alone is not interleaved: its MCU is one block.
        """
        count = scan[0] if scan else 0
        if not count or len(scan) < 4 + 2 * count or any(name not in self.components for name in self.names(scan)):
            return None
        blocks = []
        for index, name in enumerate(self.names(scan)):
            component, numbers = self.components[name], scan[2 + 2 * index]
            most = MOST_DC / max(1, self.quantisers.get(component.quantiser, 1)) + 1.5
            repeats = component.across * component.down if count > 1 else 1
            blocks += [Block(numbers >> 4, 16 + (numbers & 15), index, most)] * repeats
        return blocks if len(blocks) <= MOST_BLOCKS else None

    def names(self, scan: bytes) -> list[int]:
        """Identifiers of the components of a scan."""
        return list(scan[1 : 1 + 2 * scan[0] : 2])

    def grid(self, names: list[int]) -> tuple[int, int]:
        """MCUs across and down in a scan of the components ``names``."""
        across = max(component.across for component in self.components.values())
        down = max(component.down for component in self.components.values())
        if len(names) > 1:
            return -(-self.width // (8 * across)), -(-self.height // (8 * down))
        alone = self.components[names[0]]
        columns, rows = -(-self.width * alone.across // across), -(-self.height * alone.down // down)
        return -(-columns // 8), -(-rows // 8)

    def _read_frame(self, body: bytes) -> None:
        self.height, self.width, count = struct.unpack_from(">HHB", body, 1)
        for at in range(6, 6 + 3 * count, 3):
            if at + 3 > len(body) or not (1 <= body[at + 1] >> 4 <= 4 and 1 <= body[at + 1] & 15 <= 4):
                self.components.clear()
                return
            self.components[body[at]] = Component(body[at + 1] >> 4, body[at + 1] & 15, body[at + 2])

    def _read_quantisers(self, body: bytes) -> None:
        at = 0
        while at < len(body):
            wide = 2 if body[at] >> 4 else 1
            self.quantisers[body[at] & 15] = int.from_bytes(body[at + 1 : at + 1 + wide], "big")
            at += 1 + 64 * wide

    def _read_codes(self, body: bytes) -> None:
        at = 0
        while at + 17 <= len(body):
            behind = at + 17 + sum(body[at + 1 : at + 17])
            if behind > len(body):
                return
            self.codes[body[at] & 31] = body[at + 1 : behind]
            at = behind


@lru_cache(maxsize=32)
def table_of(codes: bytes, ac: bool) -> Table:
    """The table of a DHT entry (16 counts, then symbols), spread over all 16-bit windows."""
    table = Table(*(np.full(1 << 16, value, np.uint8) for value in (0, BAD, 0, 255)))
    at, index = 0, 16
    for length in range(1, 17):
        for _ in range(codes[length - 1]):
            symbol, behind = codes[index], at + (1 << (16 - length))
            run, size = symbol >> 4, symbol & 15
            table.lengths[at:behind] = length
            table.symbols[at:behind] = symbol
            table.takes[at:behind] = length + size if ac else length
            table.means[at:behind] = symbol if not ac else run + 1 if size else 16 if run == 15 else END
            at, index = behind, index + 1
    return table
