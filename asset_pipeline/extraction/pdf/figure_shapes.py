"""What one outline is: a level or upright rule, a box, or something drawn.

Rules and boxes make tables, forms and frames; lines at other angles, curves and stairs take somebody to
draw, and a figure is told by them. Corners may be round, a box drawn as four strokes is four rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from asset_pipeline.extraction.pdf.geometry import Point, bounds
from asset_pipeline.model import Four

RULE_POINTS = 2.0
"""What is thinner is a rule, whether stroked or filled."""

_STRAIGHT = 0.25
_SLOPE = 0.01
_STAIRS = 9
_CORNER_DEPTH = 0.2
_ROUND_BOX_SHARE = 0.62  # a circle's control points run along 0.55 of its box


class Shape(Enum):
    """What an outline amounts to by itself."""

    RULE = "rule"
    BOX = "box"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class Outline:
    """One subpath: its points (control points of curves among them) and its number of curves."""

    points: Sequence[Point]
    curves: int

    @property
    def box(self) -> Four:
        return bounds(self.points)


def shape_of(outline: Outline, *, filled: bool) -> tuple[Shape, int]:
    """The shape of ``outline`` and the effort in it: 0 for rules and boxes."""
    left, bottom, right, top = outline.box
    thin = min(right - left, top - bottom) <= RULE_POINTS
    if thin and (filled or max(right - left, top - bottom) <= RULE_POINTS / 2):
        return Shape.RULE, 0
    level, slanted = 0, 0
    along = 0.0
    for (x, y), (u, v) in zip(outline.points, outline.points[1:], strict=False):
        across, up = abs(u - x), abs(v - y)
        longer, shorter = max(across, up), min(across, up)
        if longer < _STRAIGHT:
            continue
        if shorter <= max(_STRAIGHT, _SLOPE * longer) and longer > 2 * shorter:
            level += 1
            on_edge = (
                min(abs(y - bottom), abs(y - top)) if across > up else min(abs(x - left), abs(x - right))
            ) <= 2 * _STRAIGHT
            along += longer if on_edge else 0.0
        else:
            slanted += 1
    if thin:
        return (Shape.DRAWN, slanted) if slanted else (Shape.RULE, 0)
    around = 2 * (right - left + top - bottom)
    if outline.curves:
        if along >= _ROUND_BOX_SHARE * around and _stays_at_edges(outline):
            return Shape.BOX, 0
        return Shape.DRAWN, outline.curves + slanted // 3
    if slanted:
        return Shape.DRAWN, slanted
    if level >= _STAIRS:
        return Shape.DRAWN, level // 2
    return Shape.BOX, 0


def _stays_at_edges(outline: Outline) -> bool:
    """Whether no point comes far into the box, as only those of round corners do not."""
    left, bottom, right, top = outline.box
    deepest = _CORNER_DEPTH * min(right - left, top - bottom)
    return all(min(x - left, right - x, y - bottom, top - y) <= deepest for x, y in outline.points)
