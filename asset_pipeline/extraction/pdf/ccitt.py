"""CCITT pictures: libtiff for the common Group 4, the strict decoder for everything else.

libtiff paints bad rows white and tells nobody. So its rows are encoded again: the code is canonical, and
the same bits prove that every row was sound and there. Other bits, and the strict decoder decides (forty
times slower). A missing end marker is fine. Rows of the parameters and Height of the picture may differ: Height rows
must be there.
"""

from __future__ import annotations

import io
import struct

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.fax import FaxParameters, decode_fax
from asset_pipeline.extraction.pdf.streams import Layer
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_dimensions, check_pixels

_END_BITS = 24
"""Length of the end-of-block marker that libtiff writes behind the last row."""


def read_fax_parameters(layer: Layer, height: int, limits: Limits) -> FaxParameters:
    """Parameters, gated: the decoder's own size counts, not only the dictionary's."""
    columns = layer.number("/Columns", 1728)
    rows = layer.number("/Rows", 0)
    check_dimensions(columns, max(rows, 1))
    check_pixels(columns, max(rows, height), limits)
    return FaxParameters(
        k=layer.number("/K", 0),
        columns=columns,
        rows=rows,
        byte_align=layer.truth("/EncodedByteAlign"),
        end_of_line=layer.truth("/EndOfLine"),
        black_is_1=layer.truth("/BlackIs1"),
    )


def decode_ccitt(data: bytes, parms: FaxParameters, width: int, height: int) -> NDArray[np.uint8]:
    """Samples 0 and 1 as PDF defines them (0 is black unless BlackIs1), ``(height, width, 1)``."""
    if width > parms.columns:
        raise Refusal(Reason.TRUNCATED_STREAM, "columns")
    black = None
    if parms.k < 0 and not parms.byte_align:
        black = _decode_in_libtiff(data, parms.columns, height)
    if black is None:
        black, _ = decode_fax(data, parms, height)
        if black.shape[0] < height:
            raise Refusal(Reason.TRUNCATED_STREAM)
    black = black[:, :width]
    samples = black if parms.black_is_1 else black ^ 1
    return np.ascontiguousarray(samples).reshape(height, width, 1)


def _decode_in_libtiff(data: bytes, columns: int, height: int) -> NDArray[np.uint8] | None:
    """Group 4 rows, 1 = black, or None where encoding them again does not give the same bits."""
    try:
        with Image.open(io.BytesIO(_as_tiff(data, columns, height)), formats=("TIFF",)) as picture:
            picture.load()
            again = io.BytesIO()
            picture.save(again, "TIFF", compression="group4", strip_size=2**30)
            packed = picture.tobytes()
    except (OSError, ValueError, SyntaxError):
        return None
    if not _same_bits(_strip_of(again), data):
        return None
    rows = np.frombuffer(packed, np.uint8).reshape(height, -1)
    return np.unpackbits(rows, axis=1, count=columns)


def _strip_of(tiff: io.BytesIO) -> bytes:
    with Image.open(tiff, formats=("TIFF",)) as picture:
        offset, size = picture.tag_v2[273][0], picture.tag_v2[279][0]  # type: ignore[attr-defined]
    return tiff.getvalue()[offset : offset + size]


def _same_bits(canonical: bytes, data: bytes) -> bool:
    """Whether ``data`` begins with the rows of ``canonical``, whose end marker it may lack."""
    count = len(canonical) * 8
    last = canonical[-1] if canonical else 0
    if not last:
        return False
    count -= (last & -last).bit_length() - 1 + _END_BITS
    whole, rest = divmod(count, 8)
    if count <= 0 or canonical[:whole] != data[:whole]:
        return False
    return not rest or (len(data) > whole and (canonical[whole] ^ data[whole]) >> (8 - rest) == 0)


def _as_tiff(data: bytes, columns: int, height: int) -> bytes:
    """One strip of Group 4 data in a minimal TIFF, whose bits come back as coded: 1 is black."""
    entries = (
        (256, 4, columns),
        (257, 4, height),
        (258, 3, 1),
        (259, 3, 4),
        (262, 3, 1),
        (266, 3, 1),
        (273, 4, 8 + 2 + 12 * 10 + 4),
        (277, 3, 1),
        (278, 4, height),
        (279, 4, len(data)),
    )
    body = b"".join(
        struct.pack("<HHI", tag, kind, 1) + (struct.pack("<HH", value, 0) if kind == 3 else struct.pack("<I", value))
        for tag, kind, value in entries
    )
    return b"II*\0" + struct.pack("<IH", 8, len(entries)) + body + bytes(4) + data
