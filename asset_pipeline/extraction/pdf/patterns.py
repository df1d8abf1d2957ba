"""One placement for all tiles of a pattern (PDF 8.7.3): which tile stands for them, and what they cover.

The tile that lies most within the painted area is taken, the one nearest to the pattern's origin among
equals. Where a picture is painted once, which is how some producers crop, its placement is like any
other; where it repeats, the placement is what all its tiles cover.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from asset_pipeline.extraction.pdf.geometry import (
    UNIT_SQUARE,
    bounds,
    corners,
    invert,
    move,
    multiply,
    overlap,
)
from asset_pipeline.extraction.pdf.graphics import Clip
from asset_pipeline.model import Four, Six

_FLOAT_NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Tiling:
    """A pattern in use: matrix and cell of the tile that stands for all, steps in its own space, and the
    ``area`` that is painted, of which ``seen`` is inside clips and crop box."""

    matrix: Six
    cell: Four
    steps: tuple[float, float]
    area: Clip
    seen: Clip

    def covered(self, picture: Six) -> Four | None:
        """Box of all repeats of the picture with matrix ``picture``; None when it is painted once at most."""
        back = invert(self.matrix)
        if back is None or not self.area.outline:
            return None
        box = overlap(bounds(move(multiply(picture, back), UNIT_SQUARE)), self.cell)
        area = bounds(move(back, self.area.outline))
        left, right = _spread(box[0], box[2], self.steps[0], area[0], area[2])
        bottom, top = _spread(box[1], box[3], self.steps[1], area[1], area[3])
        if right - left <= box[2] - box[0] and top - bottom <= box[3] - box[1]:
            return None
        return overlap(bounds(move(self.matrix, corners((left, bottom, right, top)))), self.area.box)


def lay_tiles(cell: Four, steps: tuple[float, float], matrix: Six, area: Clip, seen: Clip) -> Tiling:
    """The pattern with ``matrix`` painted onto ``area``. A step of 0, which none may be, is the cell's size."""
    across, up = abs(steps[0]) or cell[2] - cell[0] or 1.0, abs(steps[1]) or cell[3] - cell[1] or 1.0
    back = invert(matrix)
    if back is not None and seen.outline:
        left, bottom, right, top = bounds(move(back, seen.outline))
        offset = _best(cell[0], cell[2], across, left, right), _best(cell[1], cell[3], up, bottom, top)
        matrix = multiply((1.0, 0.0, 0.0, 1.0, *offset), matrix)
    return Tiling(matrix, cell, (across, up), area, seen)


def _best(low: float, high: float, step: float, painted_low: float, painted_high: float) -> float:
    """How far the tile that shows most lies from the origin, along one axis."""
    first, last = math.ceil((painted_low - low) / step), math.floor((painted_high - high) / step)
    within = {min(max(0, first), last)} if first <= last else set()

    def merit(tile: int) -> tuple[float, int, int]:
        share = min(high + tile * step, painted_high) - max(low + tile * step, painted_low)
        return round(max(0.0, share) / step, 9), -abs(tile), tile

    return max({0, first - 1, first, last, last + 1} | within, key=merit) * step


def _spread(low: float, high: float, step: float, painted_low: float, painted_high: float) -> tuple[float, float]:
    """From where to where all repeats that touch the painted span reach, along one axis."""
    before = math.ceil((painted_low - high) / step + _FLOAT_NOISE)
    after = math.floor((painted_high - low) / step - _FLOAT_NOISE)
    return low + min(before, 0) * step, high + max(after, 0) * step
