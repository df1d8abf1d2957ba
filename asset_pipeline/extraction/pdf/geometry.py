"""Plane geometry of a page: matrices, boxes, convex regions, quarter turns.

Values only, no PDF objects. A matrix is (a b c d e f) as in PDF 8.3.3; points are row vectors. A region
is a convex polygon, so that what remains of a picture under any number of rectangular clips is exact,
turned ones included; whoever makes a region of something else takes its bounding box and says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from asset_pipeline.model import Four, Six

Point = tuple[float, float]
Polygon = tuple[Point, ...]

IDENTITY: Six = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
WHOLE: Four = (0.0, 0.0, 1.0, 1.0)
UNIT_SQUARE: Polygon = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))

_FURTHEST = 1e12
# Scanners straighten pages by a fraction of a degree, and producers round: both still lie in quarters.
_QUARTER_TOLERANCE = 0.01
_FLOAT_NOISE = 1e-6


def multiply(first: Six, then: Six) -> Six:
    """The matrix that applies ``first``, then ``then``."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = then
    return a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m


def invert(matrix: Six) -> Six | None:
    """The inverse, or None where the matrix flattens the plane."""
    a, b, c, d, e, f = matrix
    area = a * d - b * c
    if not math.isfinite(area) or abs(area) < 1e-18:
        return None
    return d / area, -b / area, -c / area, a / area, (c * f - d * e) / area, (b * e - a * f) / area


def tame(matrix: Six) -> Six:
    """``matrix`` with every entry finite, since it goes into JSON and a database."""
    if all(-_FURTHEST < entry < _FURTHEST for entry in matrix):
        return matrix
    a, b, c, d, e, f = (0.0 if math.isnan(entry) else max(-_FURTHEST, min(_FURTHEST, entry)) for entry in matrix)
    return a, b, c, d, e, f


def move(matrix: Six, points: Iterable[Point]) -> Polygon:
    """``points`` under ``matrix``."""
    a, b, c, d, e, f = matrix
    return tuple((x * a + y * c + e, x * b + y * d + f) for x, y in points)


def bounds(points: Iterable[Point]) -> Four:
    """Smallest upright box (left, bottom, right, top) around ``points``."""
    across, up = zip(*points, strict=True)
    return min(across), min(up), max(across), max(up)


def corners(box: Four) -> Polygon:
    """The box as a region."""
    left, bottom, right, top = box
    return (left, bottom), (right, bottom), (right, top), (left, top)


def overlap(one: Four, other: Four) -> Four:
    """What two boxes share; a box without area where they do not meet."""
    left, bottom = max(one[0], other[0]), max(one[1], other[1])
    return left, bottom, max(left, min(one[2], other[2])), max(bottom, min(one[3], other[3]))


def is_upright(matrix: Six) -> bool:
    """Whether boxes stay boxes: no turn but by quarters, no slant (float noise apart)."""
    a, b, c, d, _, _ = matrix
    straight, crossed = max(abs(a), abs(d)), max(abs(b), abs(c))
    return min(straight, crossed) <= _FLOAT_NOISE * max(straight, crossed)


def area_of(polygon: Sequence[Point]) -> float:
    """Area of a polygon (shoelace), never negative."""
    twice = sum(x * v - u * y for (x, y), (u, v) in zip(polygon, (*polygon[1:], *polygon[:1]), strict=True))
    return abs(twice) / 2


def is_convex(polygon: Sequence[Point]) -> bool:
    """Whether a closed polygon turns one way only, and once around."""
    turns, around = [], 0.0
    count = len(polygon)
    for index in range(count):
        (ax, ay), (bx, by), (cx, cy) = (polygon[(index + step) % count] for step in range(3))
        cross = (bx - ax) * (cy - by) - (by - ay) * (cx - bx)
        turns.append(cross)
        around += math.atan2(cross, (bx - ax) * (cx - bx) + (by - ay) * (cy - by))
    noise = _FLOAT_NOISE * max(map(abs, turns), default=0.0)
    one_way = min(turns, default=0.0) >= -noise or max(turns, default=0.0) <= noise
    return count >= 3 and one_way and abs(around) < 2 * math.pi + 1e-3


def intersect(polygon: Polygon, region: Polygon) -> Polygon:
    """The part of ``polygon`` inside the convex ``region`` (Sutherland and Hodgman); empty where they miss."""
    turn = _signed(region)
    if turn == 0:
        return ()
    edges = list(zip(region, (*region[1:], region[0]), strict=True))
    for (ax, ay), (bx, by) in edges:
        if not polygon:
            break
        kept: list[Point] = []
        sides = [((bx - ax) * (y - ay) - (by - ay) * (x - ax)) * turn for x, y in polygon]
        for index, (point, side) in enumerate(zip(polygon, sides, strict=True)):
            before, side_before = polygon[index - 1], sides[index - 1]
            if (side >= 0) != (side_before >= 0):
                share = side_before / (side_before - side)
                kept.append((before[0] + share * (point[0] - before[0]), before[1] + share * (point[1] - before[1])))
            if side >= 0:
                kept.append(point)
        polygon = tuple(kept)
    return polygon


def _signed(region: Polygon) -> float:
    twice = sum(x * v - u * y for (x, y), (u, v) in zip(region, (*region[1:], region[0]), strict=True))
    return math.copysign(1.0, twice) if twice else 0.0


def unit_crop(matrix: Six, visible: Polygon) -> Four:
    """Box of ``visible`` in the picture's own unit square, (left, top, right, bottom), origin at its top left."""
    back = invert(matrix)
    if back is None or not visible:
        return WHOLE
    left, bottom, right, top = (_snap(bound) for bound in bounds(move(back, visible)))
    return left, _snap(1 - top), right, _snap(1 - bottom)


def _snap(bound: float) -> float:
    if bound < _FLOAT_NOISE:
        return 0.0
    return 1.0 if bound > 1 - _FLOAT_NOISE else bound


def orientation(matrix: Six, rotate: int) -> tuple[int, bool]:
    """(quarter turns clockwise as displayed, flipped left-right before turning); (0, False) at other angles."""
    a, b, c, d, _, _ = matrix
    mirrored = a * d - b * c < 0
    if mirrored:
        a, b = -a, -b
    across, up = math.hypot(a, b), math.hypot(c, d)
    if not (0 < across < math.inf and 0 < up < math.inf):
        return 0, False
    for quarter, (cosine, sine) in enumerate(((1, 0), (0, -1), (-1, 0), (0, 1))):
        off = (a / across - cosine, b / across - sine, c / up + sine, d / up - cosine)
        if max(map(abs, off)) <= _QUARTER_TOLERANCE:
            return (quarter + rotate // 90) % 4, mirrored
    return 0, False


def is_mirrored(matrix: Six) -> bool:
    """Whether the picture shows its reverse, at whatever angle."""
    a, b, c, d, _, _ = matrix
    return a * d - b * c < 0


def as_displayed(box: Four, crop: Four, rotate: int) -> Four:
    """``box`` as a viewer shows the page: (left, top, right, bottom) from the top left of the turned crop box."""
    left, bottom, right, top = box
    if rotate == 90:
        return bottom - crop[1], left - crop[0], top - crop[1], right - crop[0]
    if rotate == 180:
        return crop[2] - right, bottom - crop[1], crop[2] - left, top - crop[1]
    if rotate == 270:
        return crop[3] - top, crop[2] - right, crop[3] - bottom, crop[2] - left
    return left - crop[0], crop[3] - top, right - crop[0], crop[3] - bottom
