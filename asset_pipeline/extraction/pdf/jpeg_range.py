"""DC coefficients that no picture of 8-bit samples can have: the trace of changed bytes that still decode.

Changed bytes shift a JPEG's Huffman codes; these fall into step again, but every DC coefficient after that
is off by the same amount, and libjpeg clamps what leaves the range of samples. A copy with DC quantisers
halved has room to see how far out it is. AC quantisers are zero and no colour is transformed, so that the
copy, decoded to an eighth of its size, is the means of the blocks: one quick decode that reads all data.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.extraction.pdf.jpeg_tables import MOST_DC
from asset_pipeline.validation.jpeg import JpegFacts, segments

_NO_TRANSFORM = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"


class Halved(NamedTuple):
    """The copy, and for each component the DC quantiser that the JPEG has and the one of the copy."""

    data: bytes | bytearray
    quantisers: list[tuple[int, int]]


def halved(data: bytes, facts: JpegFacts) -> Halved | None:
    """A copy of ``data`` that decodes to halved means. None where a table is short or has two definitions."""
    ahead = _NO_TRANSFORM if facts.components > 1 else b""
    copy = bytearray(data[:2] + ahead)
    copy += memoryview(data)[2:]  # once: a picture may have megabytes
    quantisers: dict[int, tuple[int, int]] = {}
    numbers: bytes = b""
    for marker, start, end, _ in segments(data, behind_scans=facts.scans > 1):
        if marker == 0xDB:
            while start < end:
                wide, number = (2 if data[start] >> 4 else 1), data[start] & 15
                behind = start + 1 + 64 * wide
                given = int.from_bytes(data[start + 1 : start + 1 + wide], "big")
                used = (given + 1) // 2
                if behind > end or quantisers.setdefault(number, (given, used)) != (given, used):
                    return None
                copy[start + 1 + len(ahead) : behind + len(ahead)] = used.to_bytes(wide, "big") + bytes(63 * wide)
                start = behind
        elif 0xC0 <= marker <= 0xC2:
            numbers = data[start + 8 : end : 3][: facts.components]
        elif marker == 0xEE and data[start : start + 5] == b"Adobe" and end - start >= 12:
            copy[start + 11 + len(ahead)] = 0
        elif marker == 0xE0 and data[start : start + 5] == b"JFIF\0":
            copy[start + len(ahead) : start + len(ahead) + 4] = b"was "  # libjpeg reads JFIF before Adobe
    if len(numbers) != facts.components or any(number not in quantisers for number in numbers):
        return None
    return Halved(copy, [quantisers[number] for number in numbers])


def leaves_range(means: NDArray[np.uint8], quantisers: list[tuple[int, int]]) -> bool:
    """Whether a DC coefficient is beyond any that samples have. ``means`` is the copy at an eighth of its size."""
    bounds = [
        128 if given <= 1 else (int(MOST_DC / given + 1.5) * used + 4) // 8  # 1 cannot be halved, hence any goes
        for given, used in quantisers
    ]
    furthest = max(int(means.max()) - 128, 128 - int(means.min()))
    if furthest <= min(bounds):  # all components at once, several times as fast as each alone
        return False
    return any(
        max(int(plane.max()) - 128, 128 - int(plane.min())) > most
        for plane, most in zip(np.moveaxis(means, 2, 0), bounds, strict=True)
    )
