"""PNG files, written here so that they are exact for every depth, quick and the same on every machine.

Flate data with PNG predictors already is the body of a PNG: it is wrapped, not compressed again. Other
samples are compressed at a low level: writing PNG is the larger part of extracting a picture.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.extraction.pdf.samples import Codes, pack

GRAY, RGB, PALETTE, GRAY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
_LEVEL = 1
_FILTER_UP = 2


def wrap_png(
    body: bytes,
    width: int,
    height: int,
    bits: int,
    colour: int,
    *,
    palette: NDArray[np.uint8] | None = None,
    alphas: bytes | None = None,
    transparent_gray: int | None = None,
    icc: bytes | None = None,
) -> bytes:
    """A PNG around ``body``, which is complete zlib data of filtered rows."""
    chunks = [_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0))]
    if icc is not None:
        chunks.append(_chunk(b"iCCP", b"ICC\0\0" + zlib.compress(icc, 6)))
    if palette is not None:
        chunks.append(_chunk(b"PLTE", palette.astype(np.uint8).tobytes()))
    if alphas is not None:
        chunks.append(_chunk(b"tRNS", alphas))
    if transparent_gray is not None:
        chunks.append(_chunk(b"tRNS", struct.pack(">H", transparent_gray)))
    return b"".join((b"\x89PNG\r\n\x1a\n", *chunks, _chunk(b"IDAT", body), _chunk(b"IEND", b"")))


def encode_png(
    codes: Codes,
    bits: int,
    *,
    palette: NDArray[np.uint8] | None = None,
    alphas: bytes | None = None,
    transparent_gray: int | None = None,
    icc: bytes | None = None,
) -> bytes:
    """A PNG of ``codes`` (height, width, channels): 1 gray or palette, 2 gray and alpha, 3 RGB, 4 RGBA."""
    height, width, channels = codes.shape
    colour = PALETTE if palette is not None else {1: GRAY, 2: GRAY_ALPHA, 3: RGB, 4: RGB_ALPHA}[channels]
    rows = pack(codes, bits)
    filtered = np.empty((height, rows.shape[1] + 1), np.uint8)
    if bits >= 8 and palette is None:
        filtered[:, 0] = _FILTER_UP
        filtered[0, 1:] = rows[0]
        np.subtract(rows[1:], rows[:-1], out=filtered[1:, 1:])
    else:
        filtered[:, 0] = 0
        filtered[:, 1:] = rows
    body = zlib.compress(filtered.data, _LEVEL)
    return wrap_png(
        body,
        width,
        height,
        bits,
        colour,
        palette=palette,
        alphas=alphas,
        transparent_gray=transparent_gray,
        icc=icc,
    )


def _chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(body, zlib.crc32(name)))
