"""Turns what an engine found into the rows of ``model``: sizes on paper, statuses, plain texts.

Shared by the engines, so that both give the same numbers for the same placement. Every value from a
document is made harmless here: finite numbers, short printable texts, since rows go into JSON, a
database and pages that people look at.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from asset_pipeline.model import LARGEST_SIZE, Flag, Four, Kind, Picture, Placement, Six, Status
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

POINTS_PER_INCH = 72.0
MM_PER_INCH = 25.4
LABEL_CHARACTERS = 200
TEXT_CHARACTERS = 2000
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Found:
    """One picture on one page as an engine found it; measures in user space."""

    kind: Kind
    order: int
    object_id: int | None
    width: int
    height: int
    filter: Collection[str]
    colour_space: str | None
    bits: int | None
    matrix: Six
    bbox: Four
    display_bbox: Four
    visible: float
    shown: bool
    flags: frozenset[Flag]
    original: Picture | None
    display: Picture | None
    reason: Reason | None
    alt: str | None = None


@dataclass(slots=True)
class Gallery:
    """The files that rows name, each once, in order of first use."""

    pictures: dict[str, Picture] = field(default_factory=dict)

    def add(self, picture: Picture) -> str:
        """Keep ``picture`` and return its digest. One file may serve as several renditions."""
        known = self.pictures.get(picture.sha256)
        if known is not None:
            renditions = sorted({*known.renditions, *picture.renditions}, key=_RENDITIONS.index)
            picture = known.model_copy(update={"renditions": renditions})
        self.pictures[picture.sha256] = picture
        return picture.sha256


_RENDITIONS = ["original", "display", "thumbnail"]


def placement_row(
    found: Found, gallery: Gallery, *, page: int, pages: int, user_unit: float, policy: Policy
) -> Placement:
    """The row of one placement; its files join ``gallery``. ``user_unit`` is points to a unit of user space."""
    status = _status(found, user_unit, policy)
    original = display = None
    if status is not Status.QUARANTINED and found.original is not None:
        original = gallery.add(found.original)
        if status is not Status.NOT_SHOWN and found.display is not None:
            display = gallery.add(found.display)
    a, b, c, d, _, _ = found.matrix
    inches = [math.hypot(x, y) * user_unit / POINTS_PER_INCH for x, y in ((a, b), (c, d))]
    across, down = (_finite(value) for value in inches)
    width, height = (max(-LARGEST_SIZE, min(stated, LARGEST_SIZE)) for stated in (found.width, found.height))
    return Placement(
        name=f"page-{page:0{max(3, len(str(pages)))}d}-image-{found.order:03d}",
        picture=original,
        object_id=found.object_id,
        kind=found.kind,
        width=width,
        height=height,
        filter=[plain_text(name) or "" for name in found.filter],
        colour_space=plain_text(found.colour_space),
        bits=found.bits,
        matrix=_tidy_six(found.matrix),
        bbox=_tidy_four(found.bbox),
        display_bbox=_tidy_four(found.display_bbox),
        visible=min(1.0, max(0.0, _tidy(found.visible))),
        ppi=(_per_inch(width, across), _per_inch(height, down)),
        print_mm=(_tidy(across * MM_PER_INCH, 2), _tidy(down * MM_PER_INCH, 2)),
        flags=[flag for flag in Flag if flag in found.flags],
        alt=plain_text(found.alt, TEXT_CHARACTERS),
        display=display,
        status=status,
        reason=(found.reason or Reason.INTERNAL_ERROR) if status is Status.QUARANTINED else None,
    )


def plain_text(text: str | None, characters: int = LABEL_CHARACTERS) -> str | None:
    """``text`` of a document made short and printable: no control characters, no half characters."""
    if text is None:
        return None
    whole = text[:characters].encode("utf-8", "replace").decode("utf-8")
    return "".join(character if character.isprintable() else " " for character in whole)


def _status(found: Found, user_unit: float, policy: Policy) -> Status:
    """Precedence of REQUIREMENTS R3.3; consumed comes with joining, collapsed with the whole document."""
    if found.reason is not None or found.original is None:
        return Status.QUARANTINED
    if not found.shown:
        return Status.NOT_SHOWN
    if found.display is None:
        return Status.QUARANTINED
    left, bottom, right, top = found.bbox
    shortest = _finite(min(abs(right - left), abs(top - bottom)) * user_unit)
    if not shortest and found.kind is Kind.PATTERN:  # it covers a sheet of which nobody says how large it is
        return Status.ARCHIVED
    return Status.DECORATIVE if shortest < policy.decorative.shortest_side_points else Status.ARCHIVED


def _per_inch(pixels: int, inches: float) -> float:
    return _tidy(pixels / inches, 2) if inches > 0 else 0.0


def _finite(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _tidy(value: float, digits: int = _DIGITS) -> float:
    """Finite, rounded, and never minus zero, so that equal rows have equal JSON."""
    return round(_finite(value), digits) + 0.0


def _tidy_six(values: Six) -> Six:
    a, b, c, d, e, f = (_tidy(value) for value in values)
    return a, b, c, d, e, f


def _tidy_four(values: Four) -> Four:
    left, first, right, second = (_tidy(value) for value in values)
    return left, first, right, second
