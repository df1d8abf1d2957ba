"""A strict CCITT decoder (T.4 one- and two-dimensional, T.6) in plain Python.

It decides what counts: every row must be coded soundly and be there, else the picture is truncated or
malformed. Libraries fill bad rows with white and call that success. It is slow (a page of text at
300 dpi takes about a second), so ``ccitt`` lets libtiff decode and comes here for what libtiff cannot
do or complains about.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.fax_codes import BLACK, EXTENSION, HORIZONTAL, MODES, PASS, WHITE
from asset_pipeline.reasons import Reason

_BATCH = 256


@dataclass(frozen=True, slots=True)
class FaxParameters:
    """The DecodeParms of CCITTFaxDecode (PDF table 11), with defaults."""

    k: int = 0
    columns: int = 1728
    rows: int = 0
    byte_align: bool = False
    end_of_line: bool = False
    black_is_1: bool = False


class _Bits:
    """Bits of ``data`` from ``at``; zeros behind the end, which is noticed by ``over``."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes) -> None:
        self.data = data + bytes(8)
        self.end = len(data) * 8
        self.at = 0

    def look(self, count: int) -> int:
        """The next ``count`` bits (at most 24) without moving."""
        byte, shift = divmod(min(self.at, self.end), 8)
        return (int.from_bytes(self.data[byte : byte + 4], "big") >> (32 - shift - count)) & ((1 << count) - 1)


def decode_fax(data: bytes, parms: FaxParameters, rows: int) -> tuple[NDArray[np.uint8], bool]:
    """Rows that are soundly coded, 1 = black, at most ``rows``; and whether the data marks its end there.

    Raises Refusal (malformed) where a code does not exist or a run leaves the row.
    """
    bits = _Bits(data)
    columns = parms.columns
    parts: list[NDArray[np.uint8]] = []
    pending: list[list[int]] = []
    reference = [columns, columns, columns, columns]
    done = 0
    ended = False
    while done < rows:
        two_dimensional, ended = _begin_row(bits, parms, done)
        if ended or bits.at >= bits.end:
            break
        try:
            changes = _row_2d(bits, reference, columns) if two_dimensional else _row_1d(bits, columns)
        except Refusal:
            if bits.at >= bits.end - 13:
                break  # the data ends inside this row
            raise
        if bits.at > bits.end:
            break
        pending.append(changes)
        reference = [*changes, columns, columns, columns, columns]
        done += 1
        if len(pending) == _BATCH:
            parts.append(_paint(pending, columns))
            pending = []
    if pending:
        parts.append(_paint(pending, columns))
    if not parts:
        raise Refusal(Reason.TRUNCATED_STREAM)
    return np.concatenate(parts), ended


def _begin_row(bits: _Bits, parms: FaxParameters, done: int) -> tuple[bool, bool]:
    """Alignment, end-of-line codes and tag bit before a row: (row is two-dimensional, data has ended)."""
    # Some writers align the end-of-line code itself, so that the row behind it starts a byte.
    if parms.byte_align and done and not (parms.end_of_line and _meets_end_of_line(bits)):
        bits.at = (bits.at + 7) & ~7
    if parms.k < 0:
        return True, bits.look(24) == 0x001001
    ends = 0
    two_dimensional = False
    while True:
        start = bits.at
        while bits.look(12) == 0 and bits.at < bits.end:
            bits.at += 1
        if bits.look(12) != 1:
            if not ends:
                bits.at = start
            break
        bits.at += 12
        ends += 1
        if parms.k > 0:
            two_dimensional = not bits.look(1)
            bits.at += 1
        if ends > 1:
            return False, True
    if parms.k > 0 and not ends:
        two_dimensional = not bits.look(1)
        bits.at += 1
    return two_dimensional, False


def _meets_end_of_line(bits: _Bits) -> bool:
    """Whether nothing but fill lies before the next end-of-line code."""
    start = bits.at
    while bits.look(12) == 0 and bits.at < bits.end:
        bits.at += 1
    met = bits.look(12) == 1
    bits.at = start
    return met


def _run(bits: _Bits, black: int) -> int:
    table = BLACK if black else WHITE
    total = 0
    while True:
        entry = table[bits.look(13)]
        if entry is None:
            raise Refusal(Reason.MALFORMED_STREAM, "run")
        bits.at += entry[0]
        total += entry[1]
        if entry[1] < 64:
            return total


def _row_1d(bits: _Bits, columns: int) -> list[int]:
    changes: list[int] = []
    at = black = 0
    while at < columns:
        at += _run(bits, black)
        if at > columns:
            raise Refusal(Reason.MALFORMED_STREAM, "row")
        changes.append(at)
        black ^= 1
    return changes


def _row_2d(bits: _Bits, reference: list[int], columns: int) -> list[int]:
    changes: list[int] = []
    at, black, index = -1, 0, 0
    while at < columns:
        while reference[index] <= at and reference[index] < columns:
            index += 2
        entry = MODES[bits.look(7)]
        if entry is None or entry[1] == EXTENSION:
            raise Refusal(Reason.MALFORMED_STREAM, "mode")
        bits.at += entry[0]
        mode = entry[1]
        if mode == PASS:
            at = reference[index + 1]
        elif mode == HORIZONTAL:
            first = max(at, 0) + _run(bits, black)
            second = first + _run(bits, black ^ 1)
            if second > columns:
                raise Refusal(Reason.MALFORMED_STREAM, "row")
            changes += (first, second)
            at = second
        else:
            change = reference[index] + mode
            if change < max(at, 0) or change > columns or (change == at and at < columns and change != 0):
                raise Refusal(Reason.MALFORMED_STREAM, "row")
            changes.append(change)
            at = change
            black ^= 1
            index = index - 1 if index else 1
    return changes


def _paint(rows: list[list[int]], columns: int) -> NDArray[np.uint8]:
    """Changes of colour to samples: white up to the first change, black to the second, and so on."""
    width = columns + 1
    positions = np.fromiter((width * y + x for y, row in enumerate(rows) for x in row), np.int64)
    flips = np.bincount(positions, minlength=width * len(rows)).reshape(len(rows), width) & 1
    return (np.cumsum(flips, axis=1, dtype=np.uint32) & 1).astype(np.uint8)[:, :columns]
