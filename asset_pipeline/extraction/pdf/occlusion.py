"""Which pictures lie partly under something painted later: opaque pictures and filled paths.

Areas are exact for boxes and within a fraction of a percent for other outlines: the box is cut into
slabs at every corner of a mark, and along the middle of each slab the covered length is summed under the
path's own winding rule. What may let something through (transparency, blending, soft masks, patterns,
clips that are not simple outlines) does not count: the flag says what is certain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np

from asset_pipeline.extraction.pdf.draws import Draw, PageDraws
from asset_pipeline.extraction.pdf.geometry import WHOLE, Polygon, area_of, bounds, invert, move
from asset_pipeline.model import DERIVED, Flag, Four, Kind, Picture, Placement, Status

SHARE = 0.01
"""Share of the box that must be covered."""

_NOISE = 1e-6
_SLABS = 64
_MOST_MARKS = 400
_STEPS = (1, 16, _MOST_MARKS)
"""Marks that are looked at, the largest first: one is often enough."""

_MOST_SLABS = 600


@dataclass(frozen=True, slots=True)
class _Cover:
    """A mark in page space. ``order`` compares with that of draws; ``draw`` is the index of the draw it is."""

    order: float
    box: Four
    outlines: tuple[Polygon, ...]
    even_odd: bool
    draw: int | None = None


def flag_occluded(rows: Sequence[Placement], walked: PageDraws, pictures: Mapping[str, Picture]) -> list[Placement]:
    """``rows`` (first one for each draw, then derived ones) with the flag ``occluded`` where it is due."""
    draws = walked.draws
    if len(draws) < 2 and not walked.fills:
        return list(rows)
    covers = [_Cover(fill.order + 0.5, fill.box, fill.outlines, fill.even_odd) for fill in walked.fills]
    for index, (row, draw) in enumerate(zip(rows, draws, strict=False)):
        outline = _opaque_outline(row, draw, pictures)
        if outline is not None:
            covers.append(_Cover(draw.order, bounds(outline), (outline,), False, index))
    if not covers:
        return list(rows)
    page = _Covers(covers)
    places = {row.name: index for index, row in enumerate(rows)}
    flagged = []
    for index, row in enumerate(rows):
        own = {places[part] for part in row.parts if part in places} if row.kind in DERIVED else {index}
        hidden = Flag.SOFT_MASK in row.flags or row.status is Status.NOT_SHOWN or not own
        # What lies between two parts would have to cover later ones: for a composite, its last part counts.
        covered = not hidden and page.hide(row, max(draws[place].order for place in own), own)
        flagged.append(_flagged(row) if covered else row)
    return flagged


class _Covers:
    """All that may hide something on a page; boxes as one array, since pages can hold thousands of each."""

    def __init__(self, covers: list[_Cover]) -> None:
        self._covers = covers
        self._orders = np.array([cover.order for cover in covers])
        self._boxes = np.array([cover.box for cover in covers])

    def hide(self, row: Placement, order: float, own: set[int]) -> bool:
        """Whether enough of ``row`` lies under what is painted after ``order``, its ``own`` draws apart."""
        left, bottom, right, top = row.bbox
        back, whole = invert(row.matrix), (right - left) * (top - bottom)
        if back is None or whole <= 0:
            return False
        boxes = self._boxes
        across = np.minimum(boxes[:, 2], right) - np.maximum(boxes[:, 0], left)
        up = np.minimum(boxes[:, 3], top) - np.maximum(boxes[:, 1], bottom)
        shares = np.where((across > 0) & (up > 0) & (self._orders > order), across * up / whole, 0.0)
        if shares.sum() < SHARE - _NOISE:
            return False
        largest = np.argsort(-shares, kind="stable")[:_MOST_MARKS]
        above = iter([at for at in largest[shares[largest] > 0].tolist() if self._covers[at].draw not in own])
        shapes: list[tuple[list[Polygon], bool]] = []
        for most in _STEPS:
            more = [self._covers[at] for at in islice(above, most - len(shapes))]
            shapes += [([move(back, outline) for outline in cover.outlines], cover.even_odd) for cover in more]
            if more and covered_share(shapes) >= SHARE - _NOISE:
                return True
        return False


def _opaque_outline(row: Placement, draw: Draw, pictures: Mapping[str, Picture]) -> Polygon | None:
    """What a picture hides, in page space; None when something may show through or it is not known."""
    if row.display is None or row.status is Status.NOT_SHOWN or row.kind is Kind.PATTERN or not draw.opaque:
        return None
    if {Flag.SOFT_MASK, Flag.CLIP_APPROXIMATE} & set(row.flags) or pictures[row.display].has_alpha:
        return None
    left, top, right, bottom = draw.crop
    if draw.crop != WHOLE and abs((right - left) * (bottom - top) - draw.visible) > SHARE:
        return None  # clipped at a slant: the crop is only the box around what is seen
    square = ((left, 1 - bottom), (right, 1 - bottom), (right, 1 - top), (left, 1 - top))
    outline = move(draw.matrix, square)
    return outline if area_of(outline) > 0 else None


def covered_share(marks: Sequence[tuple[Sequence[Polygon], bool]]) -> float:
    """Share of the unit square under ``marks``: (outlines, whether they are filled by the even-odd rule)."""
    shapes = [_edges(outlines, even_odd) for outlines, even_odd in marks]
    slanted = any(x0 != x1 and y0 != y1 for edges, _ in shapes for x0, y0, x1, y1, _ in edges)
    cuts = {0.0, 1.0}
    for edges, _ in shapes:
        cuts.update(x for x0, _, x1, _, _ in edges for x in (x0, x1) if 0 < x < 1)
    if slanted:
        cuts.update(step / _SLABS for step in range(_SLABS))
    ordered = sorted(cuts)
    if len(ordered) > _MOST_SLABS:
        ordered = [step / _MOST_SLABS for step in range(_MOST_SLABS + 1)]
    covered = 0.0
    for left, right in pairwise(ordered):
        middle = (left + right) / 2
        spans = [span for edges, even_odd in shapes for span in _spans(edges, even_odd, middle)]
        covered += _length(spans) * (right - left)
    return covered


_Line = tuple[float, float, float, float, int]


def _edges(outlines: Sequence[Polygon], even_odd: bool) -> tuple[list[_Line], bool]:
    """Sides from left to right with their direction; upright sides bound no slab."""
    lines = []
    for outline in outlines:
        for (x0, y0), (x1, y1) in zip(outline, (*outline[1:], *outline[:1]), strict=True):
            if x1 > x0:
                lines.append((x0, y0, x1, y1, 1))
            elif x1 < x0:
                lines.append((x1, y1, x0, y0, -1))
    return lines, even_odd


def _spans(edges: list[_Line], even_odd: bool, x: float) -> list[tuple[float, float]]:
    """Where a shape covers the upright line at ``x``, within the unit square."""
    crossings = sorted((y0 + (y1 - y0) * (x - x0) / (x1 - x0), turn) for x0, y0, x1, y1, turn in edges if x0 < x < x1)
    spans, winding, start = [], 0, 0.0
    for y, turn in crossings:
        inside = winding % 2 if even_odd else winding
        winding += turn
        now = winding % 2 if even_odd else winding
        if not inside and now:
            start = y
        elif inside and not now:
            spans.append((max(0.0, start), min(1.0, y)))
    return [span for span in spans if span[1] > span[0]]


def _length(spans: list[tuple[float, float]]) -> float:
    total, reached = 0.0, 0.0
    for low, high in sorted(spans):
        if high > reached:
            total += high - max(low, reached)
            reached = high
    return total


def _flagged(row: Placement) -> Placement:
    return row.model_copy(update={"flags": [flag for flag in Flag if flag in row.flags or flag is Flag.OCCLUDED]})
