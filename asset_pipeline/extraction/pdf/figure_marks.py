"""The marks of a page as PDFium reads it: strokes, fills, shadings, texts and pictures as boxes.

Our own walk keeps no paths and knows no fonts, and PDFium parses a page in about a millisecond, so the
page is read a second time here. A path is taken apart into its subpaths, since producers paint one bar
or a whole table at a time as they please. What a group of marks amounts to is the business of
``figure_judgement``. All boxes are in user space, cut to the clip where that could matter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from pypdfium2 import raw

from asset_pipeline.extraction.pdf.figure_shapes import Outline, Shape, shape_of
from asset_pipeline.extraction.pdf.geometry import bounds, corners, move, multiply, overlap
from asset_pipeline.model import Four, Six

_IDENTITY: Six = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_DEEPEST = 12
_CLIP_MATTERS = 36.0
_CLIP_SEGMENTS = 64
_PALEST = 250
_FAINTEST = 8
_FURTHEST = 1e6
_CLEAR = -1
_EDGES = 4
_EDGES_OF_ONE = 8
"""What is longer than this could as well be several paths: a curve, or all axes at once."""
WHITE = 0xFFFFFF
"""The tone of whatever is too pale to be seen on paper."""


class Kind(Enum):
    """What a mark is made of."""

    PATH = "path"
    SHADING = "shading"


@dataclass(frozen=True, slots=True)
class Mark:
    """One subpath or shading. ``form`` counts the page's outermost forms from 1; 0 is the page itself.

    ``effort`` is what it took to draw it: the edges that are neither level nor upright.
    """

    box: Four
    shape: Shape
    effort: int
    filled: bool
    tone: int | None
    form: int
    stroked: bool = False
    kind: Kind = Kind.PATH

    @property
    def width(self) -> float:
        return self.box[2] - self.box[0]

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


@dataclass(slots=True)
class Marks:
    """All marks of a page, in paint order within each kind."""

    drawn: list[Mark] = field(default_factory=list)
    texts: list[Four] = field(default_factory=list)
    pictures: list[Four] = field(default_factory=list)
    forms: dict[int, Four] = field(default_factory=dict)


def count_paths(page: Any, enough: int) -> int:
    """Paths and shadings of ``page``, forms included, a long path as several; stops counting at ``enough``."""
    found = 0
    for kind, thing, _, _ in _objects(page, [enough * 1000]):
        found += kind in (raw.FPDF_PAGEOBJ_PATH, raw.FPDF_PAGEOBJ_SHADING)
        if kind == raw.FPDF_PAGEOBJ_PATH:
            found += max(0, raw.FPDFPath_CountSegments(thing)) // _EDGES_OF_ONE
        if found >= enough:
            break
    return found


def read_marks(page: Any, crop: Four, most: int) -> Marks:
    """The marks of ``page`` (a PDFium page) inside ``crop``; of more than ``most`` objects or edges the first."""
    marks = Marks()
    budget = [most]
    edges = [most * _EDGES]
    for kind, thing, matrix, form in _objects(page, budget):
        box = _box_of(thing, matrix)
        if box is None or not _meets(box, crop):
            continue
        if kind == raw.FPDF_PAGEOBJ_TEXT:
            marks.texts.append(overlap(box, crop))
            continue
        clipped = overlap(box, crop)
        if max(box[2] - box[0], box[3] - box[1]) > _CLIP_MATTERS:
            clipped = overlap(clipped, _clip_box(thing, matrix, clipped))
            if not _meets(clipped, crop):
                continue
        if kind == raw.FPDF_PAGEOBJ_IMAGE:
            marks.pictures.append(clipped)
        elif kind == raw.FPDF_PAGEOBJ_FORM:
            if form not in marks.forms:
                marks.forms[form] = clipped
        elif kind == raw.FPDF_PAGEOBJ_SHADING:
            marks.drawn.append(Mark(clipped, Shape.BOX, 0, True, None, form, kind=Kind.SHADING))
        elif kind == raw.FPDF_PAGEOBJ_PATH:
            marks.drawn.extend(_path_marks(thing, matrix, clipped, form, edges))
    return marks


def _objects(page: Any, budget: list[int]) -> Iterator[tuple[int, Any, Six, int]]:
    """Every object with its type, the matrix of what contains it, and the number of its outermost form."""
    forms = 0

    def inside(
        count: Callable[[Any], int], get: Callable[[Any, int], Any], holder: Any, matrix: Six, form: int, depth: int
    ) -> Iterator[tuple[int, Any, Six, int]]:
        nonlocal forms
        for index in range(count(holder)):
            budget[0] -= 1
            if budget[0] < 0:
                return
            thing = get(holder, index)
            kind = raw.FPDFPageObj_GetType(thing)
            if kind != raw.FPDF_PAGEOBJ_FORM:
                yield kind, thing, matrix, form
            elif depth < _DEEPEST:
                own = form
                if not form:
                    forms += 1
                    own = forms
                yield kind, thing, matrix, own
                placed = multiply(_matrix_of(thing), matrix)
                yield from inside(
                    raw.FPDFFormObj_CountObjects, raw.FPDFFormObj_GetObject, thing, placed, own, depth + 1
                )

    yield from inside(raw.FPDFPage_CountObjects, raw.FPDFPage_GetObject, page, _IDENTITY, 0, 0)


def _matrix_of(thing: Any) -> Six:
    matrix = raw.FS_MATRIX()
    if not raw.FPDFPageObj_GetMatrix(thing, matrix):
        return _IDENTITY
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def _box_of(thing: Any, matrix: Six) -> Four | None:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    if not raw.FPDFPageObj_GetBounds(thing, left, bottom, right, top):
        return None
    box = (left.value, bottom.value, right.value, top.value)
    if matrix is not _IDENTITY:
        box = bounds(move(matrix, corners(box)))
    return box if all(-_FURTHEST < value < _FURTHEST for value in box) else None


def _meets(box: Four, crop: Four) -> bool:
    """Whether ``box``, which may be a line without area, is at least partly inside ``crop``."""
    return (
        box[0] <= box[2]
        and box[1] <= box[3]
        and box[2] > crop[0]
        and box[0] < crop[2]
        and box[3] > crop[1]
        and box[1] < crop[3]
    )


def _clip_box(thing: Any, matrix: Six, box: Four) -> Four:
    """The box of what clips ``thing``, cut out of ``box``; clips of many segments are passed over."""
    clip = raw.FPDFPageObj_GetClipPath(thing)
    if not clip:
        return box
    for number in range(max(0, raw.FPDFClipPath_CountPaths(clip))):
        count = raw.FPDFClipPath_CountPathSegments(clip, number)
        if not 2 <= count <= _CLIP_SEGMENTS:
            continue
        points = [_point_of(raw.FPDFClipPath_GetPathSegment(clip, number, index)) for index in range(count)]
        box = overlap(box, bounds(move(matrix, points)))
    return box


def _point_of(segment: Any) -> tuple[float, float]:
    x, y = ctypes.c_float(), ctypes.c_float()
    raw.FPDFPathSegment_GetPoint(segment, x, y)
    return x.value, y.value


def _path_marks(path: Any, matrix: Six, box: Four, form: int, edges: list[int]) -> Iterator[Mark]:
    fill_mode, stroked = ctypes.c_int(), ctypes.c_int()
    raw.FPDFPath_GetDrawMode(path, fill_mode, stroked)
    fill = _tone(raw.FPDFPageObj_GetFillColor, path) if fill_mode.value else None
    stroke = _tone(raw.FPDFPageObj_GetStrokeColor, path) if stroked.value else None
    filled = fill_mode.value != 0 and fill != _CLEAR
    if not filled and (not stroked.value or stroke == _CLEAR):
        return
    outlined = stroked.value != 0 and stroke != _CLEAR
    tone = stroke if not filled or (fill == WHITE and outlined) else fill
    placed = multiply(_matrix_of(path), matrix)
    half = _half_line(path, placed) if stroked.value else 0.0
    for outline in _outlines(path, placed, edges):
        shape, effort = shape_of(outline, filled=filled)
        left, bottom, right, top = outline.box
        own = overlap((left - half, bottom - half, right + half, top + half), box)
        if _meets(own, box):
            yield Mark(own, shape, effort, filled, tone, form, outlined)


def _half_line(path: Any, placed: Six) -> float:
    width = ctypes.c_float()
    raw.FPDFPageObj_GetStrokeWidth(path, width)
    a, b, c, d, _, _ = placed
    return float(min(6.0, width.value * abs(a * d - b * c) ** 0.5 / 2))


def _outlines(path: Any, placed: Six, edges: list[int]) -> Iterator[Outline]:
    """The subpaths of ``path`` in user space, as long as the budget of ``edges`` lasts."""
    points: list[tuple[float, float]] = []
    curves = 0
    count = raw.FPDFPath_CountSegments(path)
    x, y = ctypes.c_float(), ctypes.c_float()
    for index in range(max(0, count)):
        edges[0] -= 1
        if edges[0] < 0:
            break
        segment = raw.FPDFPath_GetPathSegment(path, index)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_MOVETO and points:
            yield Outline(move(placed, points), curves // 3)
            points, curves = [], 0
        raw.FPDFPathSegment_GetPoint(segment, x, y)
        points.append((x.value, y.value))
        curves += kind == raw.FPDF_SEGMENT_BEZIERTO
        if raw.FPDFPathSegment_GetClose(segment):
            points.append(points[0])
    if points:
        yield Outline(move(placed, points), curves // 3)


def _tone(read: Callable[..., int], thing: Any) -> int | None:
    """Colour as 0xRRGGBB, ``_CLEAR`` where nothing is seen of it, None for patterns."""
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not read(thing, red, green, blue, alpha):
        return None
    if alpha.value < _FAINTEST:
        return _CLEAR
    if min(red.value, green.value, blue.value) >= _PALEST:
        return WHITE
    return red.value << 16 | green.value << 8 | blue.value
