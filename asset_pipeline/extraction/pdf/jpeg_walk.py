"""A walk through the Huffman codes of a JPEG, proving what libjpeg lets pass without a warning.

Every code is in its table, no block has a 65th coefficient, every restart interval holds its blocks and
nothing else, and the sum of the DC differences is one that 8-bit samples can have. Nothing is transformed
to pixels. It is Python, some twenty times slower than libjpeg, so ``jpeg`` asks for it only where the
data is small or where libjpeg's strict decode does not take the layout. Padding bits are not judged:
the standard wants ones, some cameras write zeros.
"""

from __future__ import annotations

import re

import numpy as np

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.jpeg_progressive import ProgressiveWalk, check_tail
from asset_pipeline.extraction.pdf.jpeg_tables import BAD, END, MOST_BLOCKS, Block, Tables, table_of
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jpeg import SOS, segments

_RESTART = re.compile(rb"\xff+[\xd0-\xd7]")
_PIECE = 1 << 14
_LONGEST_MCU = MOST_BLOCKS * 64 * 4
"""More bytes than one MCU can take: in each block 64 codes of 16 bits and their values of 15."""


def walk_scans(data: bytes) -> bool:
    """Walk all scans. Raises Refusal for what no encoder can have written; False where it cannot judge."""
    tables, seen = Tables(), set()
    progressive: ProgressiveWalk | None = None
    for marker, start, end, scan_end in segments(data):
        body = data[start:end]
        if marker != SOS:
            tables.read(marker, body)
            if marker == 0xC2:
                progressive = ProgressiveWalk(tables)
            continue
        blocks = tables.blocks(body)
        if blocks is None:
            return False
        names = tables.names(body)
        columns, rows = tables.grid(names)
        parts = _intervals(data[end:scan_end], columns * rows, tables.interval)
        if progressive is not None:
            if not progressive.walk(body, blocks, parts):
                return False
        elif any(number not in tables.codes for block in blocks for number in (block.dc, block.ac)):
            return False
        else:
            for wanted, coded in parts:
                _walk_interval(tables, blocks, wanted, coded)
        seen.update(names)
    if not seen or seen != set(tables.components):
        raise Refusal(Reason.TRUNCATED_STREAM)
    return True


def _intervals(coded: bytes, count: int, interval: int) -> list[tuple[int, bytes]]:
    """Restart intervals of a scan: MCUs in each, and its data without stuffing."""
    parts = _RESTART.split(coded)
    if len(parts) > 1 and not parts[-1]:
        parts.pop()  # a restart marker before the end marker
    if len(parts) != (-(-count // interval) if interval else 1):
        raise Refusal(Reason.MALFORMED_STREAM, "restart intervals")
    size = interval or count
    return [(min(size, count - size * index), part.replace(b"\xff\x00", b"\xff")) for index, part in enumerate(parts)]


def _walk_interval(tables: Tables, blocks: list[Block], wanted: int, coded: bytes) -> None:
    """Piece by piece, because the tables spread over all bit positions take 32 times the memory of the data."""
    sums = [0] * (1 + max(block.component for block in blocks))
    at, bits = 0, 8 * len(coded)
    while wanted:
        if at >= bits:
            raise Refusal(Reason.TRUNCATED_STREAM)
        first = at >> 3
        piece = coded[first : first + _PIECE + _LONGEST_MCU]
        stop = 8 * min(_PIECE, len(piece))
        try:
            done, position = _walk_piece(tables, blocks, wanted, piece, at & 7, stop, sums)
        except IndexError:  # an MCU that goes on behind the end
            raise Refusal(Reason.TRUNCATED_STREAM) from None
        wanted -= done
        at = 8 * first + position
    if at > bits:
        raise Refusal(Reason.TRUNCATED_STREAM)
    check_tail(coded, at)


def _walk_piece(
    tables: Tables, blocks: list[Block], wanted: int, piece: bytes, at: int, stop: int, sums: list[int]
) -> tuple[int, int]:
    """Walk whole MCUs that begin before bit ``stop``. Returns how many, and the bit behind them."""
    padded = np.frombuffer(piece + b"\xff" * 8, np.uint8).astype(np.uint32)
    wide = (padded[:-2] << 16) | (padded[1:-1] << 8) | padded[2:]
    windows = ((wide[:, None] >> np.arange(8, 0, -1, dtype=np.uint32)) & 0xFFFF).astype(np.uint16).ravel()
    spread = {}
    for number in {number for block in blocks for number in (block.dc, block.ac)}:
        table = table_of(tables.codes[number], number >= 16)
        spread[number] = (table.takes.take(windows).tobytes(), table.means.take(windows).tobytes())
    values = windows.data
    steps = [(*spread[block.dc], *spread[block.ac], block.component, block.most) for block in blocks]
    done = 0
    while done < wanted and at < stop:
        for dc_takes, size_of, takes, means, component, most in steps:
            size = size_of[at]
            at += dc_takes[at]
            if size:
                if size > 15:
                    raise _no_code(piece, at)
                value = values[at] >> (16 - size)
                at += size
                sums[component] += value if value >> (size - 1) else value - (1 << size) + 1
                if not -most <= sums[component] <= most:
                    raise Refusal(Reason.MALFORMED_STREAM, "a DC coefficient that no samples have")
            reached = 1
            while reached < 64:
                reached += means[at]
                at += takes[at]
            if 64 < reached < END:
                raise Refusal(Reason.MALFORMED_STREAM, "more than 64 coefficients")
            if reached >= BAD:
                raise _no_code(piece, at)
        done += 1
    return done, at


def _no_code(piece: bytes, at: int) -> Refusal:
    """What is wrong where bit ``at`` begins no code: data that is cut runs into the ones that pad it."""
    return Refusal(Reason.TRUNCATED_STREAM if at + 32 > 8 * len(piece) else Reason.MALFORMED_STREAM)
