"""What the walker hands over: one ``Draw`` for each picture a page draws, in paint order.

The walker decides where a picture is and whether it can be seen; ``pictures`` decides what its bytes
are. This module is the border between the two and holds plain values only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pikepdf

from asset_pipeline.model import Flag, Four, Kind, Six
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class Paint:
    """Colour a stencil is painted with: the colour space object and its components (PDF 8.6).

    ``space`` is a Name or Array, names from resources already resolved. ``pattern`` is true when the
    paint is a pattern, which has no single colour.
    """

    space: pikepdf.Object
    components: tuple[float, ...]
    pattern: bool = False


@dataclass(frozen=True, slots=True)
class Draw:
    """One picture drawn once.

    ``image`` is the picture's stream; an inline picture is wrapped in a stream of its own with the full
    names of keys, filters and colour spaces. ``turn`` is the quarter turns (clockwise, as displayed,
    page /Rotate included) and ``mirrored`` whether the picture is flipped left-right *before* turning;
    both are 0/False for other angles. ``crop`` is the visible bounding box in the picture's own unit
    square, (left, top, right, bottom) with the origin at the top left, before turning. ``mcid`` counts
    within the page's content, or within the form with object number ``mcid_form``. ``opaque`` is False where
    the graphics state lets something through; a picture's own masks are not asked. ``structure`` is the key,
    in the document's parent tree, of the form or annotation around it, ``said`` the text that marked
    content gives for it. ``default_space`` is what the resources around it put in place of its device space, or hold
    under the name of any other that it gives.
    """

    kind: Kind
    order: int
    image: pikepdf.Stream
    object_id: int | None
    matrix: Six
    bbox: Four
    display_bbox: Four
    turn: int = 0
    mirrored: bool = False
    crop: Four = (0.0, 0.0, 1.0, 1.0)
    visible: float = 1.0
    shown: bool = True
    flags: frozenset[Flag] = frozenset()
    paint: Paint | None = None
    mcid: int | None = None
    mcid_form: int | None = None
    refused: Reason | None = None
    opaque: bool = True
    structure: int | None = None
    said: str | None = None
    default_space: pikepdf.Object | None = None


@dataclass(frozen=True, slots=True)
class Fill:
    """A path filled with an opaque colour after ``order`` pictures were drawn, in page space."""

    order: int
    box: Four
    outlines: tuple[tuple[tuple[float, float], ...], ...]
    even_odd: bool


@dataclass(slots=True)
class PageDraws:
    """All a page draws. ``reason`` is set when the page could not be walked to its end; ``draws`` then
    holds what was found, or ``counted`` is False when drawing exceeded the budget. ``notes`` are faults
    that viewers pass over in silence as well, such as a form that draws itself. ``fills`` are those over
    pictures, of very many the first. ``writes`` and ``paints`` tell whether text, and whether a path or shading,
    is painted anywhere: only where the walk went through is False certain. ``missed`` tells that something is drawn
    by a name that names nothing."""

    page: int
    label: str | None
    draws: list[Draw] = field(default_factory=list)
    reason: Reason | None = None
    counted: bool = True
    notes: set[Reason] = field(default_factory=set)
    fills: list[Fill] = field(default_factory=list)
    writes: bool = False
    paints: bool = False
    missed: bool = False
    rotate: int = 0
    crop_box: Four = (0.0, 0.0, 612.0, 792.0)

    @property
    def silent(self) -> bool:
        """Whether nothing is written on the page, for certain."""
        return not self.writes and self._seen_whole

    @property
    def undrawn(self) -> bool:
        """Whether the page holds no path and no shading, for certain."""
        return not self.paints and self._seen_whole

    @property
    def _seen_whole(self) -> bool:
        return self.counted and self.reason is None and not self.notes

    def release_inline(self) -> None:
        """Let go of the data of inline pictures, which the document would otherwise hold until it is closed."""
        for draw in self.draws:
            if draw.object_id is None:
                draw.image.write(b"")
