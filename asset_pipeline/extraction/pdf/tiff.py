"""TIFF files for samples that PNG cannot hold: CMYK, Lab and any number of inks, 8 or 16 bits, Deflate.

One strip, little-endian, no dates or program names: the same samples are the same bytes. How spaces map:
CMYK and four inks are *separated* (readers open them as CMYK); Lab is CIELab with the codes of a and b
offset by 128, its Range in the description; two inks are gray with one extra sample, three are RGB, five
and six CMYK with extra samples (Pillow opens these and leaves the extra ones out); more are *separated*
with that many inks, which fewer readers open.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.extraction.pdf.samples import Codes

_SHORT, _LONG, _ASCII, _UNDEFINED = 3, 4, 2, 7
_MIN_IS_BLACK, _RGB, _SEPARATED, _CIELAB = 1, 2, 5, 8
_LEVEL = 1


def encode_tiff(codes: Codes, bits: int, family: str, *, icc: bytes | None = None, description: str = "") -> bytes:
    """A TIFF of ``codes`` (height, width, components) of 8 or 16 bits; ``family`` as in ``colour.Space``."""
    height, width, count = codes.shape
    photometric, extra = _layout(family, count)
    strip = zlib.compress(stored_samples(codes, bits, family).data, _LEVEL)
    tags: list[tuple[int, int, list[int] | bytes]] = [
        (256, _LONG, [width]),
        (257, _LONG, [height]),
        (258, _SHORT, [bits] * count),
        (259, _SHORT, [8]),
        (262, _SHORT, [photometric]),
        (273, _LONG, [8]),
        (277, _SHORT, [count]),
        (278, _LONG, [height]),
        (279, _LONG, [len(strip)]),
        (284, _SHORT, [1]),
    ]
    if description:
        tags.append((270, _ASCII, description.encode("ascii", "replace") + b"\0"))
    if photometric == _SEPARATED and count > 4 and not extra:
        tags += [(332, _SHORT, [2]), (334, _SHORT, [count])]
    if extra:
        tags.append((338, _SHORT, [0] * extra))
    if icc is not None:
        tags.append((34675, _UNDEFINED, icc))
    return _assemble(strip, sorted(tags))


def stored_samples(codes: Codes, bits: int, family: str) -> NDArray[np.uint8]:
    """The samples as the file holds them, row by row."""
    if _layout(family, codes.shape[2])[0] == _CIELAB:
        codes = codes.copy()
        codes[:, :, 1:] ^= 0x80 if bits == 8 else 0x8000
    return np.ascontiguousarray(codes, np.uint8 if bits == 8 else "<u2").view(np.uint8)


def tiff_mode(family: str, count: int) -> str:
    """The mode a report states: Pillow's where Pillow opens every sample, else the number of inks."""
    if family == "Lab":
        return "LAB"
    return {3: "RGB", 4: "CMYK"}.get(count, f"inks;{count}")


def _layout(family: str, count: int) -> tuple[int, int]:
    """(photometric interpretation, extra samples)."""
    if family == "Lab" and count == 3:
        return _CIELAB, 0
    if count <= 2:
        return _MIN_IS_BLACK, count - 1
    if count == 3:
        return _RGB, 0
    return _SEPARATED, count - 4 if count in (5, 6) else 0


def _assemble(strip: bytes, tags: list[tuple[int, int, list[int] | bytes]]) -> bytes:
    directory_at = 8 + len(strip) + len(strip) % 2
    overflow_at = directory_at + 2 + 12 * len(tags) + 4
    entries = []
    overflow = b""
    for tag, kind, values in tags:
        if isinstance(values, bytes):
            count, body = len(values), values
        else:
            count, body = len(values), struct.pack(f"<{len(values)}{'H' if kind == _SHORT else 'I'}", *values)
        if len(body) > 4:
            pointer = struct.pack("<I", overflow_at + len(overflow))
            overflow += body + b"\0" * (len(body) % 2)
            body = pointer
        entries.append(struct.pack("<HHI", tag, kind, count) + body.ljust(4, b"\0"))
    return b"".join(
        (
            b"II*\0" + struct.pack("<I", directory_at),
            strip,
            b"\0" * (len(strip) % 2),
            struct.pack("<H", len(tags)),
            *entries,
            bytes(4),
            overflow,
        )
    )
