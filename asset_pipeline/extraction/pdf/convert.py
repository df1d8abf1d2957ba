"""Sample codes to gray or sRGB: exact for plain spaces, through PDFium for the others.

One component, or a palette, never needs more than 256 conversions: its entries are converted and looked
up. A Decode array maps codes linearly (PDF 8.9.5.2); for palettes it maps to indices.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pikepdf
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.colour import Space
from asset_pipeline.extraction.pdf.isolate import colour_samples
from asset_pipeline.extraction.pdf.samples import Codes, pack, to_eight
from asset_pipeline.reasons import Reason

_BAND = 16 * 1024 * 1024
"""Samples that go through PDFium at once: it holds several copies."""

Shown = NDArray[np.uint8]
"""``(height, width)`` gray or ``(height, width, 3)`` sRGB."""


def read_decode(value: Any, components: int) -> tuple[float, ...] | None:
    """The Decode array as numbers, None when absent or of another length than the picture needs."""
    if not isinstance(value, pikepdf.Array) or len(value) < 2 * components:
        return None
    try:
        return tuple(float(number) for number in list(value)[: 2 * components])
    except (TypeError, ValueError):
        raise Refusal(Reason.MALFORMED_STREAM, "decode") from None


def default_decode(space: Space, bits: int) -> tuple[float, ...]:
    """The Decode array that changes nothing (PDF table 88)."""
    if space.family == "Indexed":
        return (0.0, float((1 << bits) - 1))
    if space.family == "Lab":
        return space.ranges
    return (0.0, 1.0) * space.components


def effective_decode(value: Any, space: Space, bits: int) -> tuple[float, ...] | None:
    """The Decode array where it changes something, else None."""
    decode = read_decode(value, space.components)
    return None if decode == default_decode(space, bits) else decode


def to_shown(codes: Codes, bits: int, space: Space, decode: tuple[float, ...] | None) -> Shown:
    """Gray or sRGB of ``codes`` (height, width, components)."""
    if space.family == "Indexed":
        colours = palette_colours(space)
        return colours[_indices(codes[:, :, 0], bits, decode)]
    if space.plain:
        plain = to_eight(codes, bits) if decode is None else _apply_decode(codes, bits, decode)
        return plain[:, :, 0] if space.components == 1 else plain
    if space.components == 1:
        count = min(1 << bits, 256)
        ramp = np.arange(count, dtype=np.uint8).reshape(1, count, 1)
        depth = min(bits, 8)
        table = colour_samples(pack(ramp, depth), count, 1, depth, space, decode)[0]
        return _drop_gray(table)[to_eight(codes, bits)[:, :, 0] if bits == 16 else codes[:, :, 0]]
    height, width = codes.shape[:2]
    # PDFium keeps the high byte as well; half the memory. But Lab of 8 bits it reads without its Range.
    if bits == 16 and space.family != "Lab":
        codes, bits = to_eight(codes, bits), 8
    rows = max(1, _BAND // max(1, width * space.components))
    bands = [
        colour_samples(pack(codes[top : top + rows], bits), width, min(rows, height - top), bits, space, decode)
        for top in range(0, height, rows)
    ]
    return np.concatenate(bands) if len(bands) > 1 else bands[0]


def palette_colours(space: Space) -> NDArray[np.uint8]:
    """The 256 entries of a palette as ``(256,)`` gray or ``(256, 3)`` sRGB."""
    base = space.base
    if base is None:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette")
    if space.plain:
        entries = np.frombuffer(space.palette, np.uint8).reshape(1, 256, base.components)
        return _drop_gray(to_shown(entries, 8, base, None)[0])
    return _drop_gray(colour_samples(np.arange(256, dtype=np.uint8), 256, 1, 8, space, None)[0])


def paint_colour(space: Space, components: Sequence[float]) -> tuple[int, int, int]:
    """sRGB of one colour given in the numbers of a content stream."""
    if space.family == "Indexed":
        index = math.floor(min(255.0, max(0.0, components[0] if components else 0.0)) + 0.5)
        entry = palette_colours(space)[index]
    else:
        values = [float(number) for number in components][: space.components]
        values += [0.0] * (space.components - len(values))
        decode = tuple(bound for value in values for bound in (value, value))
        code = np.zeros((1, 1, space.components), np.uint8)
        entry = to_shown(code, 8, space, decode)[0, 0]
    red, green, blue = np.broadcast_to(entry, 3).tolist()
    return red, green, blue


def _apply_decode(codes: Codes, bits: int, decode: tuple[float, ...]) -> NDArray[np.uint8]:
    """Codes through Decode to 0..255, component by component, by table: one look-up a sample."""
    if bits == 16:
        codes, bits = to_eight(codes, bits), 8
    highest = (1 << bits) - 1
    out = np.empty(codes.shape, np.uint8)
    steps = np.arange(highest + 1, dtype=np.float64) / highest
    for index in range(codes.shape[2]):
        low, high = decode[2 * index], decode[2 * index + 1]
        table = np.rint(np.clip(low + steps * (high - low), 0.0, 1.0) * 255).astype(np.uint8)
        out[:, :, index] = table[codes[:, :, index]]
    return out


def _indices(codes: Codes, bits: int, decode: tuple[float, ...] | None) -> NDArray[np.uint8]:
    if bits == 16:
        raise Refusal(Reason.MALFORMED_STREAM, "palette of 16 bits")
    if decode is None:
        return codes.astype(np.uint8, copy=False)
    highest = (1 << bits) - 1
    steps = np.arange(highest + 1, dtype=np.float64)
    table = np.clip(np.rint(decode[0] + steps * (decode[1] - decode[0]) / highest), 0, 255).astype(np.uint8)
    return table[codes]


def _drop_gray(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """One channel where three are equal, so that gray stays gray."""
    if colours.ndim == 2 and (colours[:, 0] == colours[:, 1]).all() and (colours[:, 0] == colours[:, 2]).all():
        return np.ascontiguousarray(colours[:, 0])
    return colours
