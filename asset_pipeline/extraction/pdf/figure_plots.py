"""Plots told by their frame of ticks or by their cells: nothing in them need be drawn.

A plot may show its points as letters, which are text, and a mosaic or tree map is nothing but boxes. What tells
them is what no table has: short ticks along two sides at a right angle, or cells that fill a field without being
the rows and columns of a lattice.
"""

from __future__ import annotations

from collections.abc import Sequence

from asset_pipeline.extraction.pdf.figure_groups import around
from asset_pipeline.extraction.pdf.figure_marks import Mark
from asset_pipeline.extraction.pdf.figure_shapes import Shape
from asset_pipeline.model import Four

_FEWEST_TICKS = 3
_TICK = (1.5, 12.0)
_NEAR = 2.0
_MOST_RULES = 600
_FEWEST_CELLS = 6
_MOST_CELLS = 600
_SMALLEST_CELL = 4.0
_FILLED = 0.55
_IRREGULAR = 1.6
_SIZES = 0.6
_FEWEST_LINES = 3


def has_ticks(group: Sequence[Mark], shortest: float) -> bool:
    """Three or more ticks stand on a level line and three or more on an upright one that it meets."""
    rules = [mark.box for mark in group if mark.shape is Shape.RULE][:_MOST_RULES]
    ticks = [mark.box for mark in group[:_MOST_RULES] if _is_tick(mark)]
    if len(ticks) < 2 * _FEWEST_TICKS:
        return False
    upright = [box for box in ticks if box[3] - box[1] > box[2] - box[0]]
    level = [box for box in ticks if box[3] - box[1] < box[2] - box[0]]
    for left, bottom, right, top in _frames(group, rules, shortest):
        along = {round(tick[0]) for tick in upright if left - _NEAR <= tick[0] and tick[2] <= right + _NEAR
                 and any(_ends_at(tick[1], tick[3], y) for y in (bottom, top))}  # fmt: skip
        up = {round(tick[1]) for tick in level if bottom - _NEAR <= tick[1] and tick[3] <= top + _NEAR
              and any(_ends_at(tick[0], tick[2], x) for x in (left, right))}  # fmt: skip
        if min(len(along), len(up)) >= _FEWEST_TICKS:
            return True
    return False


def may_have_ticks(marks: Sequence[Mark]) -> bool:
    """Whether there are enough short rules for two axes: a quick look."""
    return sum(_is_tick(mark) for mark in marks) >= 2 * _FEWEST_TICKS


def _is_tick(mark: Mark) -> bool:
    return mark.shape is Shape.RULE and _TICK[0] <= max(mark.width, mark.height) <= _TICK[1]


def _ends_at(first: float, last: float, line: float) -> bool:
    return min(abs(first - line), abs(last - line)) <= _NEAR


def _frames(group: Sequence[Mark], rules: Sequence[Four], shortest: float) -> list[Four]:
    """Boxes large enough for a plot, and the field between a level and an upright line that nearly meet."""
    frames = [mark.box for mark in group if mark.shape is Shape.BOX and min(mark.width, mark.height) >= shortest]
    level = [box for box in rules if box[2] - box[0] >= shortest][:_FEWEST_CELLS]
    upright = [box for box in rules if box[3] - box[1] >= shortest][:_FEWEST_CELLS]
    reach = _TICK[1]
    for line in level:
        for other in upright:
            if line[0] - reach <= other[0] <= line[2] + reach and other[1] - reach <= line[1] <= other[3] + reach:
                frames.append(around((line, other)))
    return frames


def has_cells(group: Sequence[Mark], texts: Sequence[Four]) -> bool:
    """A field filled with boxes of many sizes whose edges are on far more lines than a lattice has; few texts."""
    cells = _innermost([mark.box for mark in group if mark.filled and mark.shape is Shape.BOX])
    if not _FEWEST_CELLS <= len(cells) <= _MOST_CELLS or len(texts) > len(cells) / 2:
        return False
    if sum(_area(cell) for cell in cells) < _FILLED * _area(around(cells)):
        return False
    columns, rows = ({round(cell[edge] / _NEAR) for cell in cells} for edge in (0, 1))
    widths, heights = ({round((cell[edge + 2] - cell[edge]) / _NEAR) for cell in cells} for edge in (0, 1))
    irregular = len(columns) * len(rows) >= _IRREGULAR * len(cells)
    sizes = {(round((c[2] - c[0]) / _NEAR), round((c[3] - c[1]) / _NEAR)) for c in cells}
    several = min(len(widths), len(heights)) >= 2 and max(len(widths), len(heights)) >= 3
    return irregular and several and len(sizes) >= _SIZES * len(cells)


def is_field(boxes: Sequence[Four]) -> bool:
    """Whether ``boxes`` fill a field in three rows and three columns or more."""
    if not boxes or sum(_area(box) for box in boxes) < _FILLED * _area(around(boxes)):
        return False
    return all(len({round(box[edge] / _NEAR) for box in boxes}) >= _FEWEST_LINES for edge in (0, 1))


def _innermost(boxes: Sequence[Four]) -> list[Four]:
    """Boxes that are large enough to be seen as cells; of equal ones one, none that holds others."""
    distinct = sorted({tuple(round(edge, 1) for edge in box) for box in boxes}, key=lambda box: _area(box))
    large = [box for box in distinct if min(box[2] - box[0], box[3] - box[1]) >= _SMALLEST_CELL][:_MOST_CELLS]
    kept: list[Four] = []
    for left, bottom, right, top in large:
        holds = any(
            left - 1 <= other[0] and bottom - 1 <= other[1] and other[2] <= right + 1 and other[3] <= top + 1
            for other in kept
        )
        if not holds:
            kept.append((left, bottom, right, top))
    return kept


def _area(box: Sequence[float]) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])
