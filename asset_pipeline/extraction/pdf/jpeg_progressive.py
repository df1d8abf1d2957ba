"""The scans of a progressive JPEG, walked as ``jpeg_walk`` walks sequential ones; see there for what is proved.

Only for sampling that libjpeg's strict decode does not take, where nothing else tells whether data is missing:
bit by bit and slow. A later scan refines coefficients that an earlier one found, so which are not zero is kept
as one number a block.
"""

from __future__ import annotations

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.jpeg_tables import Block, Table, Tables, table_of
from asset_pipeline.reasons import Reason

_NO_CODE = 0


class _Bits:
    """Bits of one restart interval. Behind its end there are ones, and not many of them are given out."""

    def __init__(self, coded: bytes) -> None:
        self._coded = coded + b"\xff" * 8
        self._end = 8 * len(coded)
        self.at = 0

    def take(self, count: int) -> int:
        """The next ``count`` bits, at most 16."""
        value = self._window() >> (16 - count)
        self.at += count
        if self.at > self._end:
            raise Refusal(Reason.TRUNCATED_STREAM)
        return value

    def symbol(self, table: Table) -> int:
        """The next Huffman code."""
        window = self._window()
        length = int(table.lengths[window])
        if length == _NO_CODE:
            raise Refusal(Reason.TRUNCATED_STREAM if self.at + 16 > self._end else Reason.MALFORMED_STREAM)
        self.take(length)
        return int(table.symbols[window])

    def _window(self) -> int:
        first = self.at >> 3
        return int.from_bytes(self._coded[first : first + 3], "big") >> (8 - (self.at & 7)) & 0xFFFF


class ProgressiveWalk:
    """State over the scans: for each component, which coefficients of its blocks are not zero."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._found: dict[int, dict[int, int]] = {name: {} for name in tables.components}
        self._begun: set[int] = set()

    def walk(self, scan: bytes, blocks: list[Block], parts: list[tuple[int, bytes]]) -> bool:
        """Walk one scan. False where it cannot be judged."""
        first, last, high, low = scan[-3], scan[-2], scan[-1] >> 4, scan[-1] & 15
        names = self._tables.names(scan)
        if first == 0:
            if last != 0 or low > 13 or (not high and any(block.dc not in self._tables.codes for block in blocks)):
                return False
            self._begun.update(names)
            for wanted, coded in parts:
                self._walk_dc(_Bits(coded), coded, blocks * wanted, high, low)
            return True
        number = blocks[0].ac
        if (
            len(names) != 1
            or not first <= last <= 63
            or number not in self._tables.codes
            or names[0] not in self._begun
        ):
            return False
        table, found, block = table_of(self._tables.codes[number], True), self._found[names[0]], 0
        for wanted, coded in parts:
            bits, run = _Bits(coded), 0
            for index in range(block, block + wanted):
                step = _refine if high else _find
                found[index], run = step(bits, table, found.get(index, 0), run, first, last)
            if run:
                raise Refusal(Reason.MALFORMED_STREAM, "an end of more blocks than there are")
            check_tail(coded, bits.at)
            block += wanted
        return True

    def _walk_dc(self, bits: _Bits, coded: bytes, blocks: list[Block], high: int, low: int) -> None:
        sums: dict[int, int] = {}
        for block in blocks:
            if high:
                bits.take(1)
                continue
            size = bits.symbol(table_of(self._tables.codes[block.dc], False))
            if size > 15:
                raise Refusal(Reason.MALFORMED_STREAM, "a DC difference")
            value = bits.take(size)
            if size and not value >> (size - 1):
                value -= (1 << size) - 1
            sums[block.component] = sums.get(block.component, 0) + value
            if abs(sums[block.component]) - 1 > block.most / (1 << low):
                raise Refusal(Reason.MALFORMED_STREAM, "a DC coefficient that no samples have")
        check_tail(coded, bits.at)


def check_tail(coded: bytes, at: int) -> None:
    """Nothing is behind the last block, at bit ``at``, but fill bytes and the zeros that scanners write."""
    tail = coded[(at + 7) >> 3 :].rstrip(b"\xff").strip(b"\0")
    if len(tail) > 1:  # one byte: flushed by an encoder that was at a byte's edge already
        raise Refusal(Reason.MALFORMED_STREAM, "data behind the last block")


def _find(bits: _Bits, table: Table, found: int, run: int, first: int, last: int) -> tuple[int, int]:
    """A block of a first AC scan: the coefficients now known, and how many more blocks have none."""
    if run:
        return found, run - 1
    at = first
    while at <= last:
        symbol = bits.symbol(table)
        zeros, size = symbol >> 4, symbol & 15
        if not size and zeros < 15:
            return found, (1 << zeros) + bits.take(zeros) - 1
        at += zeros
        if size:
            bits.take(size)
            if at > last:
                raise Refusal(Reason.MALFORMED_STREAM, "a coefficient behind the last")
            found |= 1 << at
        at += 1
    if at > last + 1:
        raise Refusal(Reason.MALFORMED_STREAM, "zeros behind the last coefficient")
    return found, 0


def _refine(bits: _Bits, table: Table, found: int, run: int, first: int, last: int) -> tuple[int, int]:
    """A block of a refining AC scan: a bit for each coefficient known before, and new ones between them."""
    at, known = first, found
    while not run and at <= last:
        symbol = bits.symbol(table)
        zeros, size = symbol >> 4, symbol & 15
        if size > 1:
            raise Refusal(Reason.MALFORMED_STREAM, "a new coefficient of more than one bit")
        if not size and zeros < 15:
            run = (1 << zeros) + bits.take(zeros)
            break
        if size:
            bits.take(1)
        while at <= last:
            if known >> at & 1:
                bits.take(1)
            elif zeros:
                zeros -= 1
            else:
                break
            at += 1
        if size:
            if at > last:
                raise Refusal(Reason.MALFORMED_STREAM, "a coefficient behind the last")
            found |= 1 << at
        at += 1
    if run:
        for _ in range((known >> at & ((1 << (last + 1 - at)) - 1)).bit_count() if at <= last else 0):
            bits.take(1)
        run -= 1
    return found, run
