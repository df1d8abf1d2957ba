"""Predictors (PDF 7.4.4.4): PNG filters and TIFF differencing, undone exactly for every depth.

PNG filters work on bytes, so Pillow undoes them in C: the filtered rows are handed to it as the body of
a PNG whose pixels are as wide as the filter's step, whatever the samples mean. That is fifty times
faster than Python and needs no recompression.
"""

from __future__ import annotations

import io
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.reasons import Reason

_MODES = {1: 0, 2: 4, 3: 2, 4: 6}
"""Bytes a step -> PNG colour type with 8-bit samples of that many channels."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """Kind (2 TIFF, 10 and more PNG) and the geometry that the parameters declare."""

    kind: int
    colours: int
    bits: int
    columns: int

    @property
    def row_bytes(self) -> int:
        """Bytes of one row without the filter byte."""
        return (self.columns * self.colours * self.bits + 7) // 8

    def stored_size(self, wanted: int) -> int:
        """Bytes that must come out of the filter for ``wanted`` bytes of samples."""
        if self.kind < 10:
            return wanted
        rows = -(-wanted // self.row_bytes)
        return wanted + rows

    def is_sound(self, data: bytes) -> bool:
        """Whether every row in ``data`` begins with a filter that exists."""
        return self.kind < 10 or max(data[:: self.row_bytes + 1], default=0) <= 4

    def undo(self, data: bytes, wanted: int | None = None) -> bytes:
        """Samples without the predictor, at most ``wanted`` bytes; a last row may be cut."""
        if self.kind < 10:
            return _undo_tiff(data, self)[:wanted]
        return _undo_png(data, self)[:wanted]


def read_predictor(parms: Any) -> Predictor | None:
    """The predictor in ``parms``, None for none. Raises Refusal for geometry that cannot be."""
    if parms is None:
        return None
    values = []
    for key, default in (("/Predictor", 1), ("/Colors", 1), ("/BitsPerComponent", 8), ("/Columns", 1)):
        value = parms.get(key)
        values.append(int(value) if isinstance(value, int) else default)
    kind, colours, bits, columns = values
    if kind < 2:
        return None
    if kind not in (2, *range(10, 16)) or not 0 < colours <= 32 or bits not in (1, 2, 4, 8, 16):
        raise Refusal(Reason.MALFORMED_STREAM, "predictor")
    if not 0 < columns <= 2**24:
        raise Refusal(Reason.MALFORMED_STREAM, "predictor columns")
    return Predictor(kind, colours, bits, columns)


def _undo_png(data: bytes, predictor: Predictor) -> bytes:
    step = max(1, predictor.colours * predictor.bits // 8)
    if predictor.colours * predictor.bits % 8 and predictor.colours * predictor.bits > 8:
        step += 1
    length = predictor.row_bytes
    rows, rest = divmod(len(data), length + 1)
    if rest > 1:  # a cut row: complete it for the filter, cut the output again
        data = data + bytes(length + 1 - rest)
        rows += 1
    if not rows:
        return b""
    table = np.frombuffer(data, np.uint8, rows * (length + 1)).reshape(rows, length + 1)
    if not predictor.is_sound(data):
        raise Refusal(Reason.MALFORMED_STREAM, "filter type")
    out = _undo_in_pillow(table, length, step) if step in _MODES else _undo_in_numpy(table, length, step)
    return out[: len(out) - (length + 1 - rest)] if rest > 1 else out


def _undo_in_pillow(table: Any, length: int, step: int) -> bytes:
    rows = table.shape[0]
    width = -(-length // step)
    padding = width * step - length
    body = table if not padding else np.pad(table, ((0, 0), (0, padding)))
    stored = zlib.compress(np.ascontiguousarray(body).data, 0)
    header = struct.pack(">IIBBBBB", width, rows, 8, _MODES[step], 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(part, zlib.crc32(name)))
        for name, part in ((b"IHDR", header), (b"IDAT", stored), (b"IEND", b""))
    )
    del stored, body
    with Image.open(io.BytesIO(png), formats=("PNG",)) as picture:
        samples = picture.tobytes()
    if not padding:
        return samples
    return np.frombuffer(samples, np.uint8).reshape(rows, width * step)[:, :length].tobytes()


def _undo_in_numpy(table: Any, length: int, step: int) -> bytes:
    """For steps that no 8-bit PNG has (6, 8 and more bytes): row by row, pixel by pixel where it must."""
    width = -(-length // step)
    before: Any = np.zeros((width, step), np.uint8)
    out = np.empty((table.shape[0], width * step), np.uint8)
    for index, line in enumerate(table):
        kind = int(line[0])
        row: Any = np.zeros(width * step, np.uint8)
        row[:length] = line[1:]
        row = row.reshape(width, step)
        if kind == 1:
            row = np.cumsum(row, axis=0, dtype=np.uint8)
        elif kind == 2:
            row = row + before
        elif kind == 3:
            left = np.zeros(step, np.int32)
            for x in range(width):
                left = (row[x] + (left + before[x]) // 2) & 0xFF
                row[x] = left
        elif kind == 4:
            _undo_paeth(row, before)
        out[index] = row.reshape(-1)
        before = row
    return out[:, :length].tobytes()


def _undo_paeth(row: Any, before: Any) -> None:
    step = row.shape[1]
    left = np.zeros(step, np.int32)
    corner = np.zeros(step, np.int32)
    for x in range(row.shape[0]):
        above = before[x].astype(np.int32)
        guess = left + above - corner
        by_left, by_above, by_corner = abs(guess - left), abs(guess - above), abs(guess - corner)
        best = np.where(
            (by_left <= by_above) & (by_left <= by_corner), left, np.where(by_above <= by_corner, above, corner)
        )
        left = (row[x] + best) & 0xFF
        row[x] = left
        corner = above


def _undo_tiff(data: bytes, predictor: Predictor) -> bytes:
    length = predictor.row_bytes
    rows = -(-len(data) // length)
    if not rows:
        return b""
    full = np.frombuffer(data + bytes(rows * length - len(data)), np.uint8).reshape(rows, length)
    columns, colours, bits = predictor.columns, predictor.colours, predictor.bits
    if bits == 8:
        out = np.cumsum(full.reshape(rows, columns, colours), axis=1, dtype=np.uint8).tobytes()
    elif bits == 16:
        wide = full.reshape(-1).view(">u2").reshape(rows, columns, colours)
        out = np.cumsum(wide, axis=1, dtype=np.uint16).astype(">u2").tobytes()
    else:
        flags = np.unpackbits(full, axis=1)[:, : columns * colours * bits].reshape(rows, columns, colours, bits)
        weights = (1 << np.arange(bits - 1, -1, -1)).astype(np.uint8)
        codes = np.cumsum((flags * weights).sum(axis=3, dtype=np.uint8), axis=1, dtype=np.uint8) & ((1 << bits) - 1)
        back = (codes[..., None] >> np.arange(bits - 1, -1, -1, dtype=np.uint8)) & 1
        packed = np.zeros((rows, length * 8), np.uint8)
        packed[:, : columns * colours * bits] = back.reshape(rows, -1)
        out = np.packbits(packed, axis=1).tobytes()
    return out[: len(data)]
