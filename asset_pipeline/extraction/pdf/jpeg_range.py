"""DC coefficients that no picture of 8-bit samples can have: the trace of changed bytes that still decode.

Changed bytes shift a JPEG's Huffman codes; these fall into step again, but every DC coefficient after that
is off by the same amount, and libjpeg clamps what leaves the range of samples. So only a picture with
blocks of nothing but the darkest or lightest sample is suspect, and only that is decoded again, at an
eighth of its size, with DC quantisers halved (room to see how far out it is) and AC quantisers zero.
"""

from __future__ import annotations

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from asset_pipeline.extraction.pdf.jpeg_tables import MOST_DC
from asset_pipeline.validation.jpeg import JpegFacts, segments

_MODES = {1: "GRAY", 3: "RGB", 4: "CMYK"}
_NO_TRANSFORM = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00"


def leaves_range(data: bytes, facts: JpegFacts, shown: NDArray[np.uint8]) -> bool:
    """Whether a DC coefficient is beyond any that samples have. ``shown`` is the picture, decoded in full size."""
    if not _is_clamped(shown):
        return False
    halved = _halved(data, facts)
    if halved is None:
        return False
    copy, quantisers = halved
    if all(given <= 1 for given, _ in quantisers):
        return False
    try:
        means = simplejpeg.decode_jpeg(
            copy, _MODES[facts.components], strict=False, min_factor=8, min_height=1, min_width=1
        )
    except ValueError:
        return False  # a layout that simplejpeg does not take without colour transform: nothing is proved
    for component, (given, used) in enumerate(quantisers):
        if given <= 1:
            continue  # cannot be halved: what is out of range is clamped here as well
        most = (int(MOST_DC / given + 1.5) * used + 4) // 8
        plane = means[:, :, component]
        if int(plane.max()) > 128 + most or int(plane.min()) < 128 - most:
            return True
    return False


def _is_clamped(shown: NDArray[np.uint8]) -> bool:
    """Whether the four samples around a point of some block are all 0 or all 255 in one component."""
    height, width = (side // 8 * 8 for side in shown.shape[:2])
    if not height or not width:
        return True
    first, second = shown[2:height:8], shown[5:height:8]
    low = np.minimum(first[:, 2:width:8], first[:, 5:width:8])
    high = np.maximum(first[:, 2:width:8], first[:, 5:width:8])
    if low.max() < 255 and high.min() > 0:
        return False
    low = np.minimum(low, np.minimum(second[:, 2:width:8], second[:, 5:width:8]))
    high = np.maximum(high, np.maximum(second[:, 2:width:8], second[:, 5:width:8]))
    return bool(low.max() == 255 or high.min() == 0)


def _halved(data: bytes, facts: JpegFacts) -> tuple[bytes, list[tuple[int, int]]] | None:
    """A copy that decodes to halved block means, with the DC quantiser given and used for each component.

    None where a table is short or has two definitions.
    """
    copy = bytearray(data)
    quantisers: dict[int, tuple[int, int]] = {}
    numbers: bytes = b""
    for marker, start, end, _ in segments(data):
        if marker == 0xDB:
            while start < end:
                wide, number = (2 if data[start] >> 4 else 1), data[start] & 15
                behind = start + 1 + 64 * wide
                given = int.from_bytes(data[start + 1 : start + 1 + wide], "big")
                used = (given + 1) // 2
                if behind > end or quantisers.setdefault(number, (given, used)) != (given, used):
                    return None
                copy[start + 1 : behind] = used.to_bytes(wide, "big") + bytes(63 * wide)
                start = behind
        elif 0xC0 <= marker <= 0xC2:
            numbers = data[start + 8 : end : 3][: facts.components]
        elif marker == 0xEE and data[start : start + 5] == b"Adobe" and end - start >= 12:
            copy[start + 11] = 0
        elif marker == 0xE0 and data[start : start + 5] == b"JFIF\0":
            copy[start : start + 4] = b"was "  # libjpeg reads JFIF before Adobe
    if len(numbers) != facts.components or any(number not in quantisers for number in numbers):
        return None
    marked = copy[:2] + _NO_TRANSFORM + copy[2:] if facts.components > 1 else copy
    return bytes(marked), [quantisers[number] for number in numbers]
