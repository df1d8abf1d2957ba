"""The graphics state as far as pictures need it: matrix, clip, colours, text mode (PDF 8.4).

Paths are kept as written and only measured when one clips or is painted with a pattern, since most
never are. A clip is exact while it is made of rectangles and other convex outlines; anything else
counts as its bounding box and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pikepdf
from pikepdf import Name

from asset_pipeline.extraction.pdf.content import floats
from asset_pipeline.extraction.pdf.draws import Paint
from asset_pipeline.extraction.pdf.geometry import (
    Point,
    Polygon,
    bounds,
    corners,
    intersect,
    is_convex,
    is_upright,
    move,
    overlap,
)
from asset_pipeline.extraction.pdf.inline import components_of
from asset_pipeline.extraction.pdf.resources import Scope, entry, is_name, number
from asset_pipeline.model import Four, Six

_LONGEST_PATH = 5_000
_CURVES = frozenset((b"c", b"v", b"y"))
_DEVICE = {b"/DeviceGray": Name.DeviceGray, b"/DeviceRGB": Name.DeviceRGB, b"/DeviceCMYK": Name.DeviceCMYK}


@dataclass(frozen=True, slots=True)
class Clip:
    """What can be painted on: ``box``, or within it the convex ``region``. ``approximate``: it may be less."""

    box: Four
    region: Polygon | None = None
    approximate: bool = False

    def within(self, other: Clip) -> Clip:
        """The part of this clip inside ``other``."""
        approximate = self.approximate or other.approximate
        if self.region is None and other.region is None:
            return Clip(overlap(self.box, other.box), None, approximate)
        region = intersect(self.outline, other.outline)
        box = bounds(region) if region else (self.box[0], self.box[1], self.box[0], self.box[1])
        return Clip(box, region, approximate)

    def vaguely(self) -> Clip:
        """This clip, cut by an outline that is not known."""
        return replace(self, approximate=True)

    @property
    def outline(self) -> Polygon:
        """The clip as a polygon."""
        return corners(self.box) if self.region is None else self.region

    @property
    def empty(self) -> bool:
        """Whether nothing painted can be seen."""
        return self.box[2] <= self.box[0] or self.box[3] <= self.box[1] or self.region == ()


def clip_to(outline: Polygon, approximate: bool = False) -> Clip:
    """A clip of a convex outline."""
    return Clip(bounds(outline), outline, approximate)


def clip_to_box(box: Four, matrix: Six) -> Clip:
    """A clip of ``box`` under ``matrix``: exact, turned or not."""
    outline = move(matrix, corners(box))
    return Clip(bounds(outline)) if is_upright(matrix) else clip_to(outline)


@dataclass(slots=True)
class Colour:
    """A colour as set by operators: resolved only when a stencil is painted with it or a pattern is used.

    ``base`` is the matrix of the content stream that set it: pattern space hangs on that, not on ``ctm``.
    """

    scope: Scope
    base: Six
    space: bytes = b"/DeviceGray"
    components: bytes | None = None
    pattern: bytes | None = None
    fixed: Paint | None = None

    @property
    def is_pattern(self) -> bool:
        """Whether a pattern is painted."""
        return self.pattern is not None

    def paint(self) -> Paint:
        """The colour with its space resolved and, where none were given, the space's initial components."""
        if self.fixed is not None:
            return self.fixed
        space = self._space()
        given = () if self.components is None else tuple(floats(self.components))
        if self.pattern is not None:
            return Paint(space, given, pattern=True)
        return Paint(space, given or _initial(space))

    def under_pattern(self) -> Paint:
        """The colour that an uncoloured pattern is painted in."""
        space = self._space()
        if isinstance(space, pikepdf.Array) and len(space) > 1 and self.components:
            return Paint(_named(space[1], self.scope), tuple(floats(self.components)))
        return Paint(Name.DeviceGray, (0.0,))

    def _space(self) -> Any:
        known = _DEVICE.get(self.space)
        if known is not None:
            return known
        if self.space == b"/Pattern":
            return Name.Pattern
        found = self.scope.find("/ColorSpace", self.space)
        return found if isinstance(found, (Name, pikepdf.Array)) else Name.DeviceGray


def _named(space: Any, scope: Scope) -> Any:
    if isinstance(space, Name) and space.unparse() not in _DEVICE:
        found = scope.find("/ColorSpace", space.unparse())
        return space if found is None else found
    return space


def _initial(space: Any) -> tuple[float, ...]:
    """Initial colour of a space (PDF 8.6.8): black, or full tint."""
    family = space[0] if isinstance(space, pikepdf.Array) and len(space) else space
    if family == Name.DeviceCMYK:
        return 0.0, 0.0, 0.0, 1.0
    tint = 1.0 if family in (Name.Separation, Name.DeviceN) else 0.0
    return (tint,) * (components_of(space) or 1)


@dataclass(slots=True)
class State:
    """What ``q`` saves. ``veils`` are the parameters that let something through: /ca, /BM, /SMask."""

    ctm: Six
    clip: Clip
    fill: Colour
    stroke: Colour
    line_width: float = 1.0
    text_mode: int = 0
    veils: frozenset[str] = frozenset()

    def copy(self) -> State:
        """A state of its own with the same values."""
        return State(self.ctm, self.clip, self.fill, self.stroke, self.line_width, self.text_mode, self.veils)

    @classmethod
    def initial(cls, ctm: Six, clip: Clip, scope: Scope) -> State:
        """The state at the start of a page, an annotation or a pattern: black, no text yet."""
        black = Colour(scope, ctm)
        return cls(ctm, clip, black, black)


def veils_after(veils: frozenset[str], parameters: Any) -> frozenset[str]:
    """``veils`` after a ``gs`` with ``parameters``: what they do not name stays as it was."""
    alpha, mode, mask = entry(parameters, "/ca"), entry(parameters, "/BM"), entry(parameters, "/SMask")
    if isinstance(mode, pikepdf.Array) and len(mode):
        mode = mode[0]
    for name, value, clear in (
        ("/ca", alpha, number(alpha, 1.0) >= 1),
        ("/BM", mode, is_name(mode, "/Normal", "/Compatible")),
        ("/SMask", mask, is_name(mask, "/None")),
    ):
        if value is not None:
            veils = veils - {name} if clear else veils | {name}
    return veils


@dataclass(slots=True)
class Path:
    """The current path, as written: (operator, numbers) one after the other."""

    steps: list[tuple[bytes, bytes]] = field(default_factory=list)
    folded: Four | None = None

    def add(self, operator: bytes, numbers: bytes) -> None:
        """One more step. A path too long to be a simple outline is folded into its bounds."""
        self.steps.append((operator, numbers))
        if len(self.steps) >= _LONGEST_PATH:
            points = [point for outline in self._outlines() for point in outline]
            points += corners(self.folded) if self.folded else ()
            self.clear()
            self.folded = bounds(points) if points else None

    def clear(self) -> None:
        """Begin a new path."""
        self.steps.clear()
        self.folded = None

    def box(self, matrix: Six, margin: float = 0.0) -> Four | None:
        """Bounds of the path under ``matrix``; control points of curves count. None for an empty path."""
        points = [point for outline in self._outlines() for point in outline]
        points += corners(self.folded) if self.folded else ()
        if not points:
            return None
        left, bottom, right, top = bounds(move(matrix, points))
        return left - margin, bottom - margin, right + margin, top + margin

    def clip(self, matrix: Six) -> Clip | None:
        """The path as a clip; None for an empty path, which clips nothing away."""
        upright = is_upright(matrix)
        if len(self.steps) == 1 and upright and self.folded is None and self.steps[0][0] == b"re":
            values = floats(self.steps[0][1])[-4:]
            if len(values) == 4:
                x, y, width, height = values
                return Clip(bounds(move(matrix, ((x, y), (x + width, y + height)))))
        box = self.box(matrix)
        if box is None:
            return None
        outlines = [outline for outline in self._outlines() if len(outline) > 1]
        if self.folded or len(outlines) > 1 or any(operator in _CURVES for operator, _ in self.steps):
            return Clip(box, None, approximate=True)
        if not outlines:
            return Clip((box[0], box[1], box[0], box[1]))
        outline = _without_repeats(outlines[0])
        if len(outline) < 3:
            return Clip((box[0], box[1], box[0], box[1]))
        if len(outline) == 4 and upright and _is_box(outline):
            return Clip(box)
        if not is_convex(outline):
            return Clip(box, None, approximate=True)
        return clip_to(move(matrix, outline))

    def _outlines(self) -> list[list[Point]]:
        outlines: list[list[Point]] = []
        for operator, written in self.steps:
            values = floats(written)
            if operator == b"re" and len(values) >= 4:
                x, y, width, height = values[-4:]
                outlines.append([(x, y), (x + width, y), (x + width, y + height), (x, y + height)])
            elif operator == b"m" and len(values) >= 2:
                outlines.append([(values[-2], values[-1])])
            elif operator != b"m" and len(values) >= 2:
                pairs = list(zip(values[::2], values[1::2], strict=False))
                if outlines:
                    outlines[-1] += pairs
                else:
                    outlines.append(pairs)
        return outlines


def _without_repeats(outline: list[Point]) -> list[Point]:
    kept = [point for index, point in enumerate(outline) if index == 0 or point != outline[index - 1]]
    while len(kept) > 1 and kept[-1] == kept[0]:
        kept.pop()
    return kept


def _is_box(outline: list[Point]) -> bool:
    left, bottom, right, top = bounds(outline)
    return all(x in (left, right) and y in (bottom, top) for x, y in outline) and len(set(outline)) == 4
