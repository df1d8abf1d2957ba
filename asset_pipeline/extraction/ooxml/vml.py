"""VML, the drawings of older office programs: pictures in shapes, previews of embedded objects, fills.

Word still writes it for embedded objects, Excel for pictures in headers. Lengths carry units; inside a
group they are the group's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from asset_pipeline.extraction.ooxml.drawing import number, source_of
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.ooxml.placed import (
    Placed,
    Sink,
    box_frame,
    cropped_frame,
    group_frame,
    turned_frame,
    window_of,
)
from asset_pipeline.extraction.pdf.geometry import IDENTITY, multiply
from asset_pipeline.model import Flag, Kind, Six
from asset_pipeline.reasons import Reason

_POINTS = {"pt": 1.0, "in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4, "px": 0.75, "pc": 12.0, "": 1.0}
_LENGTH = re.compile(r"\s*(-?[0-9.]{1,20})\s*([a-z]{0,2})")
_SHAPES = frozenset({"shape", "rect", "roundrect", "oval", "image", "polyline", "background"})
_RECTANGLES = frozenset({"shape", "rect", "image", "background"})
_CHANGES = ("gain", "blacklevel", "gamma", "grayscale", "bilevel", "chromakey", "recolortarget")
_FRACTION = 65_536


@dataclass(frozen=True, slots=True)
class VmlShapes:
    """Reads VML of one part into ``sink``, shapes in ``told`` left out. ``on_text`` reads a text box of a shape."""

    package: Package
    part: str
    sink: Sink
    hidden: bool = False
    on_text: Callable[[Element, bool], None] | None = None
    told: frozenset[str] = frozenset()

    def walk(self, root: Element, frame: Six = IDENTITY) -> None:
        """Read what is inside ``root``. ``frame`` maps its lengths to points."""
        for element in root:
            if self.told & {element.get("id", ""), element.get("o:spid", "")}:
                continue
            if element.tag == "group":
                self._group(element, frame)
            elif element.tag in _SHAPES:
                self._shape(element, frame)
            elif element.tag == "txbxContent" and self.on_text is not None:
                self.on_text(element, self.hidden)
            elif element.tag != "shapetype":
                self.walk(element, frame)

    def _group(self, element: Element, frame: Six) -> None:
        style = _style(element)
        shape = multiply(_frame(style), frame)
        origin, size = _numbers(element.get("coordorigin"), 0), _numbers(element.get("coordsize"), 1000)
        inside = multiply(group_frame(box_frame(0, 0, 1, 1), origin, size), shape)
        replace(self, hidden=self.hidden or style.get("visibility") == "hidden").walk(element, inside)

    def _shape(self, element: Element, frame: Six) -> None:
        style = _style(element)
        reader = replace(self, hidden=self.hidden or style.get("visibility") == "hidden")
        shape = multiply(_frame(style), frame)
        fill = element.find("fill")
        if fill is not None and fill.get("type") in ("frame", "tile", "pattern"):
            reader._add(element, fill, shape, Kind.RASTER if fill.get("type") == "frame" else Kind.PATTERN)
        for data in element.iterfind("imagedata"):
            reader._add(element, data, shape, Kind.RASTER)
        reader.walk(element, frame)

    def _add(self, owner: Element, data: Element, shape: Six, kind: Kind) -> None:
        id_ = data.get("r:id") or data.get("o:relid") or data.get("r:pict")
        outside = data.get("r:href") or data.get("src") or data.get("o:href")
        if id_:
            part, reason = source_of(self.package, self.part, id_)
        elif outside:
            part, reason = None, Reason.EXTERNAL_REFERENCE
        else:
            return
        crop = tuple(_fraction(data.get(f"crop{side}")) for side in ("left", "top", "right", "bottom"))
        flags = {Flag.COLOUR_FALLBACK} if any(data.get(change) for change in _CHANGES) else set()
        if owner.tag not in _RECTANGLES:
            flags |= {Flag.CLIPPED, Flag.CLIP_APPROXIMATE}
        self.sink.add(
            Placed(
                kind=kind,
                part=part,
                reason=reason,
                frame=shape if kind is Kind.PATTERN else cropped_frame(shape, (crop[0], crop[1], crop[2], crop[3])),
                window=window_of(shape),
                hidden=self.hidden,
                flags=frozenset(flags),
                alt=owner.get("alt"),
            )
        )


def _style(element: Element) -> dict[str, str]:
    rows = (row.partition(":") for row in (element.get("style") or "").split(";"))
    return {name.strip().lower(): value.strip().lower() for name, _, value in rows}


def _frame(style: dict[str, str]) -> Six:
    x = _points(style.get("margin-left") or style.get("left"))
    y = _points(style.get("margin-top") or style.get("top"))
    flip = style.get("flip", "")
    box = (x, y, _points(style.get("width")), _points(style.get("height")))
    return turned_frame(box, _degrees(style.get("rotation", "")), flip_x="x" in flip, flip_y="y" in flip)


def _degrees(text: str) -> float:
    """Degrees, or 65,536ths of one where the unit is ``fd``."""
    return number(text[:-2]) / _FRACTION if text.endswith("fd") else number(text)


def _points(text: str | None) -> float:
    found = _LENGTH.match(text or "")
    return number(found.group(1)) * _POINTS.get(found.group(2), 1.0) if found else 0.0


def _numbers(text: str | None, default: float) -> tuple[float, float]:
    first, _, second = (text or "").partition(",")
    return number(first) if first else default, number(second) if second else default


def _fraction(text: str | None) -> float:
    """A share of the picture: a plain number, or 65,536ths where it ends in ``f``."""
    if text and text.endswith("f"):
        return number(text[:-1]) / _FRACTION
    return number(text)
