"""Where pypdf's parser says that a page draws its pictures: contents and forms, nothing else.

A small walk of its own over pypdf's operations, and the geometry of a page; what the pictures are
belongs in ``pypdf``. Independent of the default engine's walker, so that the two can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import pypdf
from pypdf.generic import ContentStream, EncodedStreamObject, NameObject, StreamObject

from asset_pipeline.errors import Refusal
from asset_pipeline.model import Four, Six
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason

IDENTITY: Six = (1.0, 0.0, 0.0, 1.0, 0.0, 0.0)
_INLINE_KEYS = {
    "/W": "/Width",
    "/H": "/Height",
    "/BPC": "/BitsPerComponent",
    "/CS": "/ColorSpace",
    "/F": "/Filter",
    "/DP": "/DecodeParms",
    "/IM": "/ImageMask",
    "/D": "/Decode",
    "/I": "/Interpolate",
}
_INLINE_NAMES = {
    "/G": "/DeviceGray",
    "/RGB": "/DeviceRGB",
    "/CMYK": "/DeviceCMYK",
    "/I": "/Indexed",
    "/AHx": "/ASCIIHexDecode",
    "/A85": "/ASCII85Decode",
    "/LZW": "/LZWDecode",
    "/Fl": "/FlateDecode",
    "/RL": "/RunLengthDecode",
    "/CCF": "/CCITTFaxDecode",
    "/DCT": "/DCTDecode",
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """One picture drawn once."""

    image: StreamObject
    object_id: int | None
    inline: bool
    matrix: Six


@dataclass(slots=True)
class _Walk:
    """Bounds of one page, shared by its forms."""

    limits: Limits
    operators: int = 0
    drawn: list[Drawn] = field(default_factory=list)


def walk_page(page: pypdf.PageObject, reader: pypdf.PdfReader, limits: Limits) -> list[Drawn]:
    """Pictures that ``page`` draws, in paint order. Raises Refusal over a budget, and whatever pypdf raises."""
    walk = _Walk(limits)
    contents = page.get_contents()
    if contents is not None:
        _walk(contents, reader, page.get("/Resources"), IDENTITY, walk, depth=0)
    return walk.drawn


def _walk(contents: Any, reader: Any, resources: Any, start: Six, walk: _Walk, depth: int) -> None:
    """Collect what ``contents`` draw: q, Q, cm, Do and inline pictures."""
    if depth > walk.limits.form_depth:
        raise Refusal(Reason.STRUCTURE_TOO_DEEP)
    matrix, stack = start, []
    objects = plain(plain(resources or {}).get("/XObject", {}))
    for operands, operator in ContentStream(contents, reader).operations:
        walk.operators += 1
        if walk.operators > walk.limits.operators:
            raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED)
        if operator == b"q":
            stack.append(matrix)
        elif operator == b"Q" and stack:
            matrix = stack.pop()
        elif operator == b"cm" and len(operands) == 6:
            matrix = _times(_six(operands), matrix)
        elif operator == b"INLINE IMAGE":
            _collect(walk, Drawn(_inline(operands), None, True, matrix))
        elif operator == b"Do" and operands:
            drawn = plain(objects.get(operands[0]))
            if not isinstance(drawn, StreamObject):
                continue
            if drawn.get("/Subtype") == "/Image":
                reference = objects.raw_get(operands[0])
                _collect(walk, Drawn(drawn, getattr(reference, "idnum", None), False, matrix))
            elif drawn.get("/Subtype") == "/Form":
                inner = _times(_six(drawn.get("/Matrix", IDENTITY)), matrix)
                _walk(drawn, reader, drawn.get("/Resources", resources), inner, walk, depth + 1)


def _collect(walk: _Walk, drawn: Drawn) -> None:
    if len(walk.drawn) >= walk.limits.placements:
        raise Refusal(Reason.PLACEMENT_BUDGET_EXCEEDED)
    walk.drawn.append(drawn)


def _inline(operands: Any) -> StreamObject:
    """An inline picture as a stream of its own, with the full names of keys and values."""
    stream = EncodedStreamObject()
    for key, value in operands["settings"].items():
        if isinstance(value, list):
            value = type(value)(NameObject(_INLINE_NAMES.get(item, item)) if is_name(item) else item for item in value)
        elif is_name(value):
            value = NameObject(_INLINE_NAMES.get(value, value))
        stream[NameObject(_INLINE_KEYS.get(key, key))] = value
    stream._data = operands["data"]
    return stream


@dataclass(frozen=True, slots=True)
class Frame:
    """The crop box of a page, its turn and its unit."""

    crop: Four
    turn: int
    user_unit: float

    @classmethod
    def of(cls, page: pypdf.PageObject) -> Frame:
        """The frame of ``page``."""
        left, bottom, right, top = (float(side) for side in page.cropbox)
        unit = float(page.user_unit)
        crop = (min(left, right), min(bottom, top), max(left, right), max(bottom, top))
        return cls(crop, page.rotation % 360, unit if math.isfinite(unit) and unit > 0 else 1.0)

    def visible(self, box: Four) -> float:
        """Fraction of ``box`` inside the crop box."""
        width = max(0.0, min(box[2], self.crop[2]) - max(box[0], self.crop[0]))
        height = max(0.0, min(box[3], self.crop[3]) - max(box[1], self.crop[1]))
        area = (box[2] - box[0]) * (box[3] - box[1])
        return min(1.0, width * height / area) if area > 0 else 0.0

    def as_displayed(self, box: Four) -> Four:
        """``box`` with the origin at the top left of the page as a viewer turns it."""
        left, bottom, right, top = self.crop
        west, south, east, north = box[0] - left, box[1] - bottom, right - box[2], top - box[3]
        width, height = box[2] - box[0], box[3] - box[1]
        if self.turn in (90, 270):
            width, height = height, width
        x, y = {0: (west, north), 90: (south, west), 180: (east, south), 270: (north, east)}.get(
            self.turn, (west, north)
        )
        return x, y, x + width, y + height


def box_of(matrix: Six) -> Four:
    """Box of the unit square under ``matrix``."""
    a, b, c, d, e, f = matrix
    across, up = (e, e + a, e + c, e + a + c), (f, f + b, f + d, f + b + d)
    return min(across), min(up), max(across), max(up)


def _times(inner: Six, outer: Six) -> Six:
    a, b, c, d, e, f = inner
    p, q, r, s, t, u = outer
    return a * p + b * r, a * q + b * s, c * p + d * r, c * q + d * s, e * p + f * r + t, e * q + f * s + u


def _six(values: Any) -> Six:
    a, b, c, d, e, f = (float(value) for value in values)
    return a, b, c, d, e, f


def plain(value: Any) -> Any:
    """``value`` itself, references resolved."""
    return value.get_object() if hasattr(value, "get_object") else value


def is_name(value: Any) -> bool:
    """Whether ``value`` is a PDF name."""
    return isinstance(value, NameObject)
