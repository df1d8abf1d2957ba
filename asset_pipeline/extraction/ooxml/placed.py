"""A picture as the markup of an office document places it, before its bytes are looked at.

The border between the readers of the three formats and the engine: plain values in points. Readers work
in frames with the origin at the top left; here they become the page's user space, y upwards, so that rows
of office documents and of PDF pages mean the same.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.geometry import (
    UNIT_SQUARE,
    Polygon,
    area_of,
    corners,
    intersect,
    move,
    multiply,
    tame,
)
from asset_pipeline.model import Flag, Four, Kind, Six
from asset_pipeline.reasons import Reason

EMU_PER_POINT = 12_700.0
EMU: Six = (1 / EMU_PER_POINT, 0.0, 0.0, 1 / EMU_PER_POINT, 0.0, 0.0)
"""The frame of a page measured in EMU (1/914,400 inch)."""

Crop = tuple[float, float, float, float]
"""Shares cut from left, top, right and bottom; negative where the picture is smaller than its shape."""

UNCUT: Crop = (0.0, 0.0, 0.0, 0.0)
_UPSIDE_DOWN: Six = (1.0, 0.0, 0.0, -1.0, 0.0, 1.0)


@dataclass(slots=True)
class Placed:
    """One picture of one unit. ``part`` holds its bytes; ``reason`` says why there are none.

    ``frame`` maps the picture's unit square (top left origin) to the unit's points (top left origin),
    ``window`` is the region of its shape there, all that is ever seen of it. One that ``fits`` keeps its
    proportions, in the middle of its frame.
    """

    kind: Kind
    part: str | None
    reason: Reason | None
    frame: Six
    window: Polygon
    fits: bool = False
    hidden: bool = False
    flags: frozenset[Flag] = frozenset()
    alt: str | None = None
    caption: str | None = None

    def fitted(self, width: int, height: int) -> Placed:
        """Where it lies once its size in pixels is known."""
        across, _, _, down, x, y = self.frame
        if not self.fits or min(width, height, across, down) <= 0:
            return self
        scale = min(across / width, down / height)
        wide, high = width * scale, height * scale
        frame = box_frame(x + (across - wide) / 2, y + (down - high) / 2, wide, high)
        return replace(self, frame=frame, window=window_of(frame))

    def matrix(self, height: float) -> Six:
        """Unit square, y upwards, to user space of a page ``height`` points high."""
        return tame(multiply(multiply(_UPSIDE_DOWN, self.frame), (1.0, 0.0, 0.0, -1.0, 0.0, height)))

    def seen(self, page: Four | None, height: float) -> tuple[float, Polygon]:
        """Share of the picture that is seen, and the region of it in user space."""
        whole = move(self.matrix(height), UNIT_SQUARE)
        area = area_of(whole)
        if not 0 < area < math.inf:
            return 1.0, whole
        window = tuple((x, height - y) for x, y in self.window)
        part = intersect(whole, window)
        if page is not None and part:
            part = intersect(part, corners(page))
        return (min(1.0, area_of(part) / area), part) if len(part) > 2 else (0.0, ())


@dataclass(slots=True)
class Unit:
    """A slide, sheet or story and its pictures in paint order. ``box`` clips them, where the unit has one.

    ``counted`` is False when its drawing exceeds a budget or cannot be read; ``reason`` then says why.
    """

    kind: Literal["slide", "sheet", "part"]
    label: str | None
    box: Four | None = None
    hidden: bool = False
    placed: list[Placed] = field(default_factory=list)
    reason: Reason | None = None
    counted: bool = True


class Sink:
    """Takes what readers find, up to the number of pictures that one unit may draw."""

    def __init__(self, most: int) -> None:
        self.placed: list[Placed] = []
        self._most = most

    def add(self, placed: Placed) -> None:
        """Keep ``placed``. Raises Refusal beyond the budget."""
        if len(self.placed) >= self._most:
            raise Refusal(Reason.PLACEMENT_BUDGET_EXCEEDED)
        self.placed.append(placed)

    def __len__(self) -> int:
        return len(self.placed)


def box_frame(x: float, y: float, width: float, height: float) -> Six:
    """The frame of an upright box: its unit square to where it lies."""
    return width, 0.0, 0.0, height, x, y


def turned_frame(box: Four, degrees: float, *, flip_x: bool, flip_y: bool) -> Six:
    """The frame of a box (x, y, width, height) flipped, then turned clockwise about its centre."""
    x, y, width, height = box
    across, down = (-width if flip_x else width), (-height if flip_y else height)
    cosine, sine = _turn(degrees)
    a, b, c, d = across * cosine, across * sine, -down * sine, down * cosine
    return a, b, c, d, x + width / 2 - (a + c) / 2, y + height / 2 - (b + d) / 2


def cropped_frame(shape: Six, crop: Crop, inset: Crop = UNCUT) -> Six:
    """The frame of a whole picture whose part inside ``crop`` fills ``shape``, but for ``inset``."""
    across, down = 1 - crop[0] - crop[2], 1 - crop[1] - crop[3]
    if not (across > 0 and down > 0):
        return shape
    wide, high = (1 - inset[0] - inset[2]) / across, (1 - inset[1] - inset[3]) / down
    return multiply((wide, 0.0, 0.0, high, inset[0] - crop[0] * wide, inset[1] - crop[1] * high), shape)


def window_of(shape: Six) -> Polygon:
    """The region that a frame covers."""
    return move(shape, UNIT_SQUARE)


def group_frame(shape: Six, origin: tuple[float, float], size: tuple[float, float]) -> Six:
    """Frame for the children of a group, whose own coordinates begin at ``origin`` and span ``size``."""
    across, down = (extent or 1.0 for extent in size)
    into = (1 / across, 0.0, 0.0, 1 / down, -origin[0] / across, -origin[1] / down)
    return multiply(into, shape)


def _turn(degrees: float) -> tuple[float, float]:
    """Cosine and sine, exact at quarter turns."""
    quarters = degrees / 90
    if abs(quarters - round(quarters)) < 1e-9:
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
