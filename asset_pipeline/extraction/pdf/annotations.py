"""Appearances of annotations: which are drawn, and where (PDF 12.5.5).

An annotation that is hidden, or meant for print only, is listed as not to be seen, as a hidden layer is;
a pop-up window is no part of the page. The choice of state and the fitting of the appearance into the
rectangle are those of PDFium.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.geometry import bounds, corners, move, multiply
from asset_pipeline.extraction.pdf.resources import box_of, entry, is_name, matrix_of, number
from asset_pipeline.model import Six

_HIDDEN, _NO_ROTATE, _NO_VIEW = 1 << 1, 1 << 4, 1 << 5
_TURNS = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))
"""Cosine and sine of a page's turn."""


@dataclass(frozen=True, slots=True)
class Appearance:
    """What an annotation draws: a form, the matrix that fits it into the page, and whether it is to be seen."""

    form: pikepdf.Stream
    matrix: Six
    hidden: bool
    layer: Any
    structure: int | None = None


def appearances(page: pikepdf.Object, rotate: int) -> Iterator[Appearance]:
    """The appearances of the annotations of a page turned by ``rotate``, in paint order."""
    annotations = entry(page, "/Annots")
    if not isinstance(annotations, pikepdf.Array):
        return
    for annotation in annotations:
        form = _normal_appearance(annotation)
        if isinstance(form, pikepdf.Stream) and not is_name(entry(annotation, "/Subtype"), "/Popup"):
            flags = int(number(entry(annotation, "/F")))
            hidden = bool(flags & (_HIDDEN | _NO_VIEW))
            parent = entry(annotation, "/StructParent")
            structure = parent if isinstance(parent, int) and not isinstance(parent, bool) else None
            matrix = _fit(annotation, form, rotate if flags & _NO_ROTATE else 0)
            yield Appearance(form, matrix, hidden, entry(annotation, "/OC"), structure)


def _normal_appearance(annotation: Any) -> Any:
    normal = entry(entry(annotation, "/AP"), "/N")
    if isinstance(normal, pikepdf.Stream) or not isinstance(normal, pikepdf.Dictionary):
        return normal
    state = entry(annotation, "/AS")
    if not isinstance(state, pikepdf.Name):
        value = entry(annotation, "/V") or entry(entry(annotation, "/Parent"), "/V")
        state = value if isinstance(value, pikepdf.Name) and normal.get(value) is not None else pikepdf.Name.Off
    return normal.get(state)


def _fit(annotation: Any, appearance: pikepdf.Stream, turn: int) -> Six:
    """The matrix A of PDF 12.5.5, which maps the box of the transformed appearance onto the rectangle.

    An annotation that does not turn with its page is turned back about its upper left corner by ``turn`` degrees.
    """
    place = box_of(annotation, "/Rect") or (0.0, 0.0, 0.0, 0.0)
    box = box_of(appearance, "/BBox") or (0.0, 0.0, 0.0, 0.0)
    left, bottom, right, top = bounds(move(matrix_of(appearance), corners(box)))
    across = (place[2] - place[0]) / (right - left) if right > left else 1.0
    up = (place[3] - place[1]) / (top - bottom) if top > bottom else 1.0
    fit = across, 0.0, 0.0, up, place[0] - left * across, place[1] - bottom * up
    if not turn:
        return fit
    (cosine, sine), (x, y) = _TURNS[turn // 90 % 4], (place[0], place[3])
    return multiply(fit, (cosine, sine, -sine, cosine, x - x * cosine + y * sine, y - x * sine - y * cosine))
