"""Sample codes as arrays: rows of whole bytes in, ``(height, width, components)`` out, and back.

Codes are what the stream stores, before Decode and colour: uint8 for 1 to 8 bits, uint16 for 16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[Any]


def row_bytes(width: int, components: int, bits: int) -> int:
    """Bytes of one row, padded to a whole byte."""
    return (width * components * bits + 7) // 8


def unpack(data: bytes, width: int, height: int, components: int, bits: int) -> Codes:
    """Codes of exactly ``height`` rows; ``data`` holds at least that many."""
    length = row_bytes(width, components, bits)
    flat = np.frombuffer(data, np.uint8, height * length)
    if bits == 8:
        return flat.reshape(height, width, components)
    if bits == 16:
        return flat.view(">u2").astype(np.uint16).reshape(height, width, components)
    rows = flat.reshape(height, length)
    count = width * components
    if bits == 1:
        codes = np.unpackbits(rows, axis=1, count=count)
    else:
        per_byte = 8 // bits
        spread = np.empty((height, length, per_byte), np.uint8)
        for index in range(per_byte):
            spread[:, :, index] = (rows >> (8 - bits * (index + 1))) & ((1 << bits) - 1)
        codes = spread.reshape(height, -1)[:, :count]
    return codes.reshape(height, width, components)


def pack(codes: Codes, bits: int) -> NDArray[np.uint8]:
    """Rows of whole bytes, ``(height, row bytes)``: the reverse of ``unpack``."""
    height = codes.shape[0]
    flat = codes.reshape(height, -1)
    if bits == 8:
        return np.ascontiguousarray(flat, np.uint8)
    if bits == 16:
        return np.ascontiguousarray(flat.astype(">u2")).view(np.uint8).reshape(height, -1)
    if bits == 1:
        return np.packbits(flat.astype(np.uint8, copy=False), axis=1)
    per_byte = 8 // bits
    count = flat.shape[1]
    padded = np.zeros((height, -(-count // per_byte) * per_byte), np.uint8)
    padded[:, :count] = flat
    parts = padded.reshape(height, -1, per_byte)
    out = np.zeros(parts.shape[:2], np.uint8)
    for index in range(per_byte):
        out |= parts[:, :, index] << (8 - bits * (index + 1))
    return out


def to_eight(codes: Codes, bits: int) -> NDArray[np.uint8]:
    """Codes on the scale 0 to 255: exact for 1, 2, 4, 8 bits; the high byte of 16, as Pillow and PDFium do."""
    if bits == 8:
        return codes.astype(np.uint8, copy=False)
    if bits == 16:
        return (codes >> 8).astype(np.uint8)
    return codes * np.uint8(255 // ((1 << bits) - 1))
