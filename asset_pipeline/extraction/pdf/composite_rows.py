"""A page's rows after joining: parts are consumed, and each joined picture has a row of its own.

Comes before decoration is judged: strips that are thin themselves count as what they are parts of, and
what is thin even when joined (a rule of several pieces) stays decoration and is not joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asset_pipeline.extraction.pdf.composites import Composite, find_composites, piece_of
from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.joining import join
from asset_pipeline.extraction.pdf.seams import Seams
from asset_pipeline.extraction.rows import Found, Gallery, placement_row
from asset_pipeline.model import Flag, Four, Kind, Picture, Placement, Six, Status
from asset_pipeline.policy import Policy

_KEPT = (Flag.MIRRORED, Flag.COLOUR_FALLBACK)


def join_composites(
    rows: Sequence[Placement],
    draws: Sequence[Draw],
    gallery: Gallery,
    out: Path,
    policy: Policy,
    *,
    page: int,
    pages: int,
    user_unit: float,
) -> list[Placement]:
    """``rows`` (one for each of ``draws``) with parts consumed, and the rows of the joined pictures after them."""
    if len(draws) < 2:
        return list(rows)
    pieces = [piece for row, draw in zip(rows, draws, strict=True) if (piece := piece_of(row, draw)) is not None]
    if len(pieces) < 2:
        return list(rows)
    joined: list[Placement] = []
    consumed: set[str] = set()
    seams = Seams(out, gallery.pictures)
    for composite in find_composites(pieces, seams.judge):
        members = [tile.piece.row for tile in composite.tiles]
        box = _union([row.bbox for row in members])
        shortest = min(box[2] - box[0], box[3] - box[1]) * user_unit
        if shortest < policy.decorative.shortest_side_points or all(row.display is None for row in members):
            continue
        if (files := join(composite, out, gallery.pictures, policy.limits)) is None:
            continue
        found = _found(composite, members, files, box, len(joined) + 1)
        row = placement_row(found, gallery, page=page, pages=pages, user_unit=user_unit, policy=policy)
        parts = sorted(row.name for row in [*members, *(piece.row for piece in composite.stacked)])
        name = row.name.replace("-image-", "-composite-")
        joined.append(row.model_copy(update={"name": name, "parts": parts}))
        consumed.update(parts)
    return [*(_consume(row) if row.name in consumed else row for row in rows), *joined]


def _consume(row: Placement) -> Placement:
    """``row`` as a part, unless something comes before that (REQUIREMENTS R3.3)."""
    if row.status is Status.NOT_SHOWN:
        return row
    return row.model_copy(update={"status": Status.CONSUMED})


def _found(composite: Composite, rows: list[Placement], files: tuple[Picture, Picture], box: Four, order: int) -> Found:
    first = rows[0]
    turned = composite.tiles[0].piece.turn % 2
    areas = [tile.piece.width * tile.piece.height for tile in composite.tiles]
    visible = sum(row.visible * area for row, area in zip(rows, areas, strict=True)) / sum(areas)
    flags = {flag for flag in _KEPT if any(flag in row.flags for row in rows)}
    if any(Flag.CLIPPED in row.flags or row.visible < 1 for row in rows):
        flags.add(Flag.CLIPPED)
    # As in every row, width and height are those of the original, before the page turns it.
    width, height = (composite.height, composite.width) if turned else (composite.width, composite.height)
    return Found(
        kind=Kind.COMPOSITE,
        order=order,
        object_id=None,
        width=width,
        height=height,
        filter=[],
        colour_space=first.colour_space,
        bits=first.bits,
        matrix=_matrix(first.matrix, box),
        bbox=box,
        display_bbox=_union([row.display_bbox for row in rows]),
        visible=visible,
        shown=True,
        flags=frozenset(flags),
        original=files[0],
        display=files[1],
        reason=None,
    )


def _matrix(part: Six, box: Four) -> Six:
    """The unit square onto ``box``, lying as ``part`` does."""
    a, b, c, d, _, _ = part
    left, bottom, right, top = box
    across, up = right - left, top - bottom
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return (
            across if a > 0 else -across, 0.0, 0.0, up if d > 0 else -up,
            left if a > 0 else right, bottom if d > 0 else top,
        )  # fmt: skip
    return (
        0.0, up if b > 0 else -up, across if c > 0 else -across, 0.0,
        left if c > 0 else right, bottom if b > 0 else top,
    )  # fmt: skip


def _union(boxes: list[Four]) -> Four:
    lefts, lows, rights, highs = zip(*boxes, strict=True)
    return min(lefts), min(lows), max(rights), max(highs)
