"""Finds the vector figures of a page: groups of marks that somebody drew, with their labels.

From marks to boxes only: ``figure_marks`` reads, ``figure_groups`` and ``figure_judgement`` group and
judge, ``figure_pictures`` renders. Furniture goes first (backgrounds, page borders, bars that bleed off
the page, frames of texts and photos), since it would tie everything together. A vector illustration or
emblem counts as a figure from ``policy.figures.shortest_side_points`` on; below, it is decoration and
has no row. Tables, forms, lettering, bar codes and drawings over photos are not figures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asset_pipeline.extraction.pdf.figure_groups import around, group, near
from asset_pipeline.extraction.pdf.figure_judgement import covered, is_figure, share_inside
from asset_pipeline.extraction.pdf.figure_marks import WHITE, Mark, Marks
from asset_pipeline.extraction.pdf.figure_plots import has_ticks, may_have_ticks
from asset_pipeline.extraction.pdf.figure_shapes import Shape
from asset_pipeline.extraction.pdf.figure_texts import is_paragraph, text_lines, with_labels
from asset_pipeline.extraction.pdf.figure_ties import joined_by_bars, joined_by_grids, joined_by_texts
from asset_pipeline.extraction.pdf.geometry import overlap
from asset_pipeline.model import Four
from asset_pipeline.policy import Figures

_BACKGROUND = 0.5
_WHOLE_PAGE = 0.8
_PAGE_LONG = 0.9
_BLEED = 2.0
_FRAME = 4.0
_ICON = 24.0
_FORM_SHARE = 0.6
_FORM_MARKS = 8
_LEGEND_REACH = 48.0
_LEGEND_SHARE = 0.25
_TEXT_FRAME = 60.0
_AXIS_SLACK = 16.0
_SHEET = 400.0
_MOST_PICTURES = 100
_MOST_FRAMES = 200
_MOST_PLOTS = 8
_MOST_GROUPS = 2_000


def find_figures(
    marks: Marks, crop: Four, policy: Figures, is_caption: Callable[[Four], bool] = lambda _: False
) -> list[Four]:
    """Boxes of the figures among ``marks``, margin included, from the top of the page down.

    ``is_caption`` tells of a line of text whether it begins a caption, which is no part of the figure.
    """
    pictures = [box for box in marks.pictures if _share(box, crop) < _WHOLE_PAGE and min(_sides(box)) >= _ICON]
    pictures = _largest(pictures, _MOST_PICTURES)
    erasers = not _is_on_colour(marks.drawn, crop)
    plots = _plot_frames(marks.drawn, crop, policy.shortest_side_points)
    kept = [
        mark
        for mark in marks.drawn
        if mark.box in plots or not (_is_furniture(mark, crop, pictures) or (erasers and _is_pale(mark)))
    ]
    if not _may_hold_figures(kept):
        return []
    lines = text_lines(marks.texts)
    kept = _without_text_frames(kept, lines)
    groups = group(kept, crop, policy.gap_points, _drawings(marks, kept, crop))
    groups = sorted(groups, key=len, reverse=True)[:_MOST_GROUPS]
    groups = joined_by_bars(joined_by_grids(groups), lines)
    groups = _merge_overlapping(joined_by_texts(groups, lines, policy.gap_points))
    figures: list[list[Mark]] = []
    rest: list[list[Mark]] = []
    for members in groups:
        (figures if is_figure(members, lines, pictures, policy) else rest).append(members)
    boxes = [_with_legends(around(mark.box for mark in members), rest) for members in figures]
    boxes = [_with_pictures(box, pictures) for box in boxes]
    boxes = [with_labels(box, lines, policy.label_points, is_caption) for box in boxes]
    boxes = _merge_nested(boxes)
    margin = policy.margin_points
    grown = [overlap((box[0] - margin, box[1] - margin, box[2] + margin, box[3] + margin), crop) for box in boxes]
    return sorted(grown, key=lambda box: (-box[3], box[0]))


def _may_hold_figures(marks: Sequence[Mark]) -> bool:
    """Whether there is more than rules and a box or two: a quick look, since most pages have no figure."""
    boxes = sum(mark.shape is Shape.BOX for mark in marks)
    return boxes > 2 or any(mark.shape is Shape.DRAWN for mark in marks) or may_have_ticks(marks)


def _is_on_colour(marks: Sequence[Mark], crop: Four) -> bool:
    """Whether the page is painted in a colour, so that white can be seen on it."""
    return any(
        mark.filled and mark.tone != WHITE and mark.shape is Shape.BOX and _share(mark.box, crop) >= _BACKGROUND
        for mark in marks
    )


def _is_pale(mark: Mark) -> bool:
    """White on white, or what hides an earlier mark; white in a drawing is part of it."""
    return mark.tone == WHITE and mark.shape is not Shape.DRAWN


def _is_furniture(mark: Mark, crop: Four, pictures: Sequence[Four]) -> bool:
    width, height = _sides(crop)
    if mark.shape is not Shape.DRAWN:
        whole = mark.width >= _PAGE_LONG * width or mark.height >= _PAGE_LONG * height
        if whole or _share(mark.box, crop) >= _BACKGROUND or _bleeds(mark.box, crop):
            return True
    elif mark.effort < _FORM_MARKS and (_bleeds(mark.box, crop) or _share(mark.box, crop) >= _WHOLE_PAGE):
        return True
    return any(share_inside(mark.box, _grown(picture, _FRAME)) > 0.9 for picture in pictures)


def _plot_frames(marks: Sequence[Mark], crop: Four, shortest: float) -> set[Four]:
    """Boxes as large as a background that bear ticks on two sides: a plot with a page to itself."""
    large = {mark.box: mark for mark in marks if mark.shape is Shape.BOX and _share(mark.box, crop) >= _BACKGROUND}
    if not large:
        return set()
    ticks = [mark for mark in marks if mark.shape is Shape.RULE and max(mark.width, mark.height) < shortest]
    frames = (large[box] for box in _largest(sorted(large), _MOST_PLOTS) if not _bleeds(box, crop))
    return {frame.box for frame in frames if has_ticks([frame, *ticks], shortest)}


def _bleeds(box: Four, crop: Four) -> bool:
    """Whether ``box`` runs off a sheet; on a page as small as one figure, the figure itself touches the edge."""
    if min(_sides(crop)) < _SHEET:
        return False
    left, bottom, right, top = box
    near = (crop[0] + _BLEED, crop[1] + _BLEED, crop[2] - _BLEED, crop[3] - _BLEED)
    return left <= near[0] or bottom <= near[1] or right >= near[2] or top >= near[3]


def _without_text_frames(marks: list[Mark], lines: Sequence[Four]) -> list[Mark]:
    """``marks`` without boxes that are there to hold paragraphs."""
    boxes = {
        mark.box
        for mark in marks
        if mark.shape is Shape.BOX and mark.width >= _TEXT_FRAME and mark.height >= _TEXT_FRAME / 2
    }
    frames = set()
    for box in _largest(sorted(boxes), _MOST_FRAMES):
        inside = [line for line in near(box, lines) if share_inside(line, box) > 0.9]
        if sum(is_paragraph(line, inside, 0.6 * (box[2] - box[0])) for line in inside) >= 4:
            frames.add(box)
    return [mark for mark in marks if mark.box not in frames]


def _largest(boxes: Sequence[Four], most: int) -> list[Four]:
    """Of very many boxes the largest, so that no page takes quadratic time."""
    return list(boxes) if len(boxes) <= most else sorted(boxes, key=_area, reverse=True)[:most]


def _drawings(marks: Marks, kept: Sequence[Mark], crop: Four) -> set[int]:
    """Forms that hold one drawing each: many marks, and not the whole page's."""
    counts: dict[int, int] = {}
    for mark in kept:
        counts[mark.form] = counts.get(mark.form, 0) + 1
    return {
        form
        for form, box in marks.forms.items()
        if counts.get(form, 0) >= _FORM_MARKS and _share(box, crop) < _FORM_SHARE
    }


def _merge_overlapping(groups: list[list[Mark]]) -> list[list[Mark]]:
    """Groups of which one lies inside the other's box are one."""
    merged: list[tuple[Four, list[Mark]]] = []
    for members in sorted(groups, key=lambda members: -_area(around(mark.box for mark in members))):
        box = around(mark.box for mark in members)
        for index, (other, others) in enumerate(merged):
            if share_inside(box, other) > 0.6:
                merged[index] = (around((box, other)), others + members)
                break
        else:
            merged.append((box, members))
    return [members for _, members in merged]


def _with_legends(box: Four, rest: Sequence[list[Mark]]) -> Four:
    """``box`` with the small groups right beside it: keys of a legend, arrows, a compass rose."""
    grown = box
    reach = _grown(box, _LEGEND_REACH)
    for members in rest:
        other = around(mark.box for mark in members)
        beside = share_inside(other, reach) > 0.99 and _area(other) <= _LEGEND_SHARE * _area(box)
        if beside or _is_axis(other, box):
            grown = around((grown, other))
    return grown


def _is_axis(other: Four, box: Four) -> bool:
    """Whether ``other`` is a line along the whole of ``box`` and not far from it."""
    height = box[3] - box[1]
    along = abs(other[0] - box[0]) < _AXIS_SLACK and abs(other[2] - box[2]) < _AXIS_SLACK
    distance = max(box[1] - other[3], other[1] - box[3])
    return along and other[3] - other[1] < _AXIS_SLACK and distance < height / 3


def _with_pictures(box: Four, pictures: Sequence[Four]) -> Four:
    """``box`` with the pictures that it shares: shades, textures, a photo in a diagram."""
    return around((box, *(other for other in pictures if share_inside(other, box) > 0.25)))


def _merge_nested(boxes: list[Four]) -> list[Four]:
    kept: list[Four] = []
    for box in sorted(boxes, key=_area, reverse=True):
        for index, other in enumerate(kept):
            if covered(box, [other]) > 0.5:
                kept[index] = around((box, other))
                break
        else:
            kept.append(box)
    return kept


def _grown(box: Four, by: float) -> Four:
    return box[0] - by, box[1] - by, box[2] + by, box[3] + by


def _share(box: Four, crop: Four) -> float:
    return _area(overlap(box, crop)) / max(1.0, _area(crop))


def _sides(box: Four) -> tuple[float, float]:
    return box[2] - box[0], box[3] - box[1]


def _area(box: Four) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
