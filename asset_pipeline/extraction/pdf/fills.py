"""Outlines of filled paths as they cover a page: curves flattened, cut to the clip.

Only for telling what lies over a picture (``occlusion``), so that a page without pictures, and whatever
is painted before its first one, costs nothing.
"""

from __future__ import annotations

from asset_pipeline.extraction.pdf.content import floats
from asset_pipeline.extraction.pdf.draws import Fill
from asset_pipeline.extraction.pdf.geometry import Point, Polygon, bounds, intersect, move
from asset_pipeline.extraction.pdf.graphics import Clip, Path
from asset_pipeline.model import Four, Six

_STEPS = 8
_CURVES = {b"c": 3, b"v": 2, b"y": 2}


def fill_of(path: Path, matrix: Six, clip: Clip, order: int, even_odd: bool, within: Four) -> Fill | None:
    """What filling ``path`` covers inside ``clip``; None when that is nothing within the box ``within``."""
    box = path.box(matrix)
    if box is None or path.folded is not None or not _meet(box, within) or not _meet(box, clip.box):
        return None
    outlines = [move(matrix, outline) for outline in _flatten(path)]
    if clip.region is not None or not _holds(clip.box, box):
        outlines = [intersect(outline, clip.outline) for outline in outlines]
    outlines = [outline for outline in outlines if len(outline) > 2]
    if not outlines:
        return None
    return Fill(order, bounds(point for outline in outlines for point in outline), tuple(outlines), even_odd)


def _flatten(path: Path) -> list[Polygon]:
    outlines: list[list[Point]] = []
    start: Point | None = None
    for operator, written in path.steps:
        values = floats(written)
        if operator == b"re" and len(values) >= 4:
            x, y, width, height = values[-4:]
            outlines.append([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])
            start = (x, y)
        elif operator == b"m" and len(values) >= 2:
            start = (values[-2], values[-1])
            outlines.append([start])
        elif operator == b"h":
            if start is not None:
                outlines.append([start])  # what follows begins where the outline was closed
        elif outlines and operator == b"l" and len(values) >= 2:
            outlines[-1].append((values[-2], values[-1]))
        elif outlines and operator in _CURVES and len(values) >= 2 * _CURVES[operator]:
            outlines[-1] += _curve(operator, outlines[-1][-1], values)
    return [tuple(outline) for outline in outlines if len(outline) > 2]


def _curve(operator: bytes, start: Point, values: list[float]) -> list[Point]:
    pairs = list(zip(values[::2], values[1::2], strict=False))[-_CURVES[operator] :]
    end = pairs[-1]
    first = start if operator == b"v" else pairs[0]
    second = end if operator == b"y" else pairs[-2]
    points = []
    for step in range(1, _STEPS + 1):
        t = step / _STEPS
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        points.append(
            (
                a * start[0] + b * first[0] + c * second[0] + d * end[0],
                a * start[1] + b * first[1] + c * second[1] + d * end[1],
            )
        )
    return points


def _meet(one: Four, other: Four) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _holds(outer: Four, inner: Four) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]
