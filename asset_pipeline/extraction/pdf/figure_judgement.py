"""Whether a group of marks is a figure: what a table, a form, a frame or lettering does not have.

Evidence is effort (slanted and curved edges), bars on a common line, boxes with connecting lines, a
field of many tones. Each test below is one habit of real pages; the pages in the tests labelled by hand
say how well they do together.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from asset_pipeline.extraction.pdf.figure_groups import around, near
from asset_pipeline.extraction.pdf.figure_marks import Kind, Mark
from asset_pipeline.extraction.pdf.figure_plots import has_cells, has_ticks, is_field
from asset_pipeline.extraction.pdf.figure_shapes import Shape
from asset_pipeline.extraction.pdf.geometry import overlap
from asset_pipeline.model import Four
from asset_pipeline.policy import Figures

_SMALL = 12.0
_ENOUGH = 8
_LITTLE = 2
_HUGE = 2.5
_CORNER = 0.05
_FLAT = 0.6  # a row of boxes and arrows may be flatter than a drawing
_ALONE = 60
_MARKS = 5
_LARGE = 3
_MANY_BOXES = 300
_FEWEST_SPANS = 5
_SAMPLE = 600
_FULL_OF_TEXT = 0.45
_NEAR = 3.0
_ALIKE = 0.15
_FEW_WORDS = 0.1


def is_figure(group: Sequence[Mark], texts: Sequence[Four], pictures: Sequence[Four], policy: Figures) -> bool:
    """Whether ``group`` is a figure, given the page's text lines and pictures."""
    box = around(mark.box for mark in group)
    width, height = box[2] - box[0], box[3] - box[1]
    if min(width, height) < policy.shortest_side_points * _FLAT or max(width, height) < policy.shortest_side_points:
        return False
    if covered(box, pictures) >= policy.picture_share:
        return False
    inside = [text for text in near(box, texts) if share_inside(text, box) > 0.5]
    drawn = [mark for mark in group if mark.shape is Shape.DRAWN]
    ticked = has_ticks(group, policy.shortest_side_points)
    if is_lettering(drawn, group) and not ticked:  # points and bars of a plot lie in rows as well
        return False
    if area_share(inside, box) >= _FULL_OF_TEXT:
        return False
    if is_table(group, inside) and not _is_drawn_over(drawn, box):
        return False
    if has_bars(group) or has_spans(group, inside) or has_connected_boxes(group) or has_arrows(group):
        return True
    if has_tones(group, inside) or has_shadings(group) or has_cells(group, inside):
        return True
    if min(width, height) < policy.shortest_side_points:
        return False
    return ticked or _is_drawing(drawn, group, box, policy)


def _is_drawing(drawn: Sequence[Mark], group: Sequence[Mark], box: Four, policy: Figures) -> bool:
    """Whether enough was drawn, and not in one corner of a frame or of a row of rules."""
    if not drawn or _area(around(mark.box for mark in drawn)) < _CORNER * _area(box):
        return False
    effort = _effort(drawn)
    large = [mark.box for mark in drawn if min(mark.width, mark.height) >= policy.shortest_side_points / 2]
    several = len(group) >= _MARKS or len(large) >= _LARGE or (len(large) == 2 and _gap(*large) == 0)
    huge = any(min(mark.width, mark.height) >= _HUGE * policy.shortest_side_points for mark in drawn)
    if effort >= (_ALONE / 3 if huge else _ALONE) or (effort >= _ENOUGH and several):
        return True
    lasting = sum(mark.effort for mark in drawn if max(mark.width, mark.height) > _SMALL)
    if lasting < _LITTLE:
        return False
    return len(group) >= 2 * _MARKS or has_axes(group, policy.shortest_side_points)


def _effort(drawn: Sequence[Mark]) -> int:
    """Edges that took drawing; a small mark (a bullet, a radio button, a point of a scatter) counts once."""
    return sum(1 if max(mark.width, mark.height) <= _SMALL else mark.effort for mark in drawn)


def _is_drawn_over(drawn: Sequence[Mark], box: Four) -> bool:
    """Whether a lattice has something across it, a curve over grid lines: not ticks in cells or a logo above."""
    width, height = _sides(box)
    across = [mark.box for mark in drawn if mark.effort and max(_sides(mark.box)) > 0.2 * min(width, height)]
    return bool(across) and _sides(around(across))[0] > 0.4 * width


def has_bars(group: Sequence[Mark]) -> bool:
    """Three or more boxes of one thickness that start on one line and end at different lengths."""
    boxes = [mark.box for mark in group if mark.filled and mark.shape is not Shape.DRAWN]
    upright = [(bottom, left, right, top - bottom) for left, bottom, right, top in boxes]
    lying = [(left, bottom, top, right - left) for left, bottom, right, top in boxes]
    hanging = [(top, left, right, top - bottom) for left, bottom, right, top in boxes]
    return any(_are_bars(way, len(boxes)) for way in (upright, lying, hanging))


def _are_bars(boxes: Sequence[tuple[float, float, float, float]], total: int) -> bool:
    by_line: dict[int, list[tuple[float, float, float]]] = defaultdict(list)
    for line, first, last, length in boxes:
        by_line[round(line)].append((first, last, length))
    for line in by_line:
        bars = sorted(by_line[line] + by_line.get(line + 1, []))
        if len(bars) < 3 or len(bars) < 0.15 * total:
            continue
        middle = median(last - first for first, last, _ in bars)
        alike = [bar for bar in bars if abs(bar[1] - bar[0] - middle) <= max(0.5, _ALIKE * middle)]
        apart = all(after[0] - before[0] >= 0.5 * middle for before, after in itertools.pairwise(alike))
        longest = max(length for _, _, length in bars)
        lengths = {round(length / max(1.0, 0.03 * longest)) for _, _, length in alike}
        if len(alike) >= max(3, 0.7 * len(bars)) and apart and len(lengths) >= 3 and longest > middle / 2:
            return True
    return False


def has_spans(group: Sequence[Mark], texts: Sequence[Four]) -> bool:
    """Five or more long bars of one thickness between rules, each with a start and a length of its own."""
    rules = sum(mark.shape is Shape.RULE for mark in group)
    filled = [mark.box for mark in group if mark.filled and mark.shape is Shape.BOX]
    if rules < 3 or not _FEWEST_SPANS <= len(filled) <= _MANY_BOXES:
        return False
    bars = [bar for bar in filled if not any(share_inside(text, bar) > 0.5 for text in texts)]
    lying = [(left, bottom, right - left, top - bottom) for left, bottom, right, top in bars]
    upright = [(bottom, left, top - bottom, right - left) for left, bottom, right, top in bars]
    return any(_are_spans(way, len(filled)) for way in (lying, upright))


def _are_spans(bars: Sequence[tuple[float, float, float, float]], filled: int) -> bool:
    if len(bars) < _FEWEST_SPANS:
        return False
    usual = median(thick for _, _, _, thick in bars)
    alike = [bar for bar in bars if abs(bar[3] - usual) <= _ALIKE * usual]
    if len(alike) < max(_FEWEST_SPANS, 0.7 * filled):
        return False
    starts, lanes, lengths = ({round(bar[place] / _NEAR) for bar in alike} for place in (0, 1, 2))
    elongated = median(bar[2] for bar in alike) > 1.5 * usual
    return elongated and min(len(starts), len(lengths)) >= 3 and len(alike) <= 1.5 * len(lanes)


def has_connected_boxes(group: Sequence[Mark]) -> bool:
    """Three or more boxes apart from each other, with two or more lines that run from one to another."""
    boxes = [mark.box for mark in group if _is_body(mark)]
    if not 3 <= len(boxes) <= _MANY_BOXES:
        return False
    outer: list[Four] = []
    for box in sorted(boxes, key=_area, reverse=True):  # fill and outline are often two
        if not any(share_inside(box, other) > 0.9 for other in outer):
            outer.append(box)
    apart = [box for box in outer if not any(box is not other and _gap(box, other) < 2 * _NEAR for other in outer)]
    lines = [mark for mark in group if not _is_body(mark) and max(mark.width, mark.height) >= _SMALL / 2]
    lines = [line for line in lines if not any(share_inside(line.box, box) > 0.5 for box in apart)]
    if len(apart) < 3 or len(lines) > _MANY_BOXES:
        return False
    linked: set[Four] = set()
    links = 0
    for line in lines:
        ends = _linked(line, apart, lines)
        links += bool(ends)
        linked.update(ends)
    return links >= 2 and len(linked) >= 3 and len(linked) >= len(apart) / 2


def _is_body(mark: Mark) -> bool:
    """A box, an ellipse, a diamond: what a line of a diagram can lead to."""
    round_or_slanted = mark.shape is Shape.DRAWN and mark.effort >= 4
    return (mark.shape is Shape.BOX or round_or_slanted) and min(mark.width, mark.height) >= _SMALL


def _linked(line: Mark, boxes: Sequence[Four], lines: Sequence[Mark]) -> list[Four]:
    """The boxes at the ends of ``line``, if one end is at a box and the other at a box or another line."""
    for ends in _ends(line):
        at_boxes = [[box for box in boxes if _gap(end, box) <= _NEAR] for end in ends]
        at_lines = [any(_gap(end, other.box) <= _NEAR for other in lines if other is not line) for end in ends]
        if any(at_boxes) and all(box or other for box, other in zip(at_boxes, at_lines, strict=True)):
            return [box for found in at_boxes for box in found]
    return []


def _ends(line: Mark) -> list[tuple[Four, Four]]:
    """Where ``line`` may start and end; of a slanted one only the box is known, so either diagonal."""
    left, bottom, right, top = line.box
    if line.shape is Shape.RULE:
        far = (right, bottom) if right - left >= top - bottom else (left, top)
        return [((left, bottom, left, bottom), (*far, *far))]
    diagonals = (((left, bottom), (right, top)), ((left, top), (right, bottom)))
    return [((*one, *one), (*other, *other)) for one, other in diagonals]


def _gap(one: Four, other: Four) -> float:
    across = max(one[0] - other[2], other[0] - one[2], 0.0)
    up = max(one[1] - other[3], other[1] - one[3], 0.0)
    return max(across, up)


def has_arrows(group: Sequence[Mark]) -> bool:
    """Three or more small filled triangles, each at a line."""
    lines = [mark.box for mark in group if not mark.filled and max(mark.width, mark.height) > _SMALL]
    heads = [
        mark
        for mark in group
        if mark.shape is Shape.DRAWN and mark.filled and mark.effort <= 4 and max(mark.width, mark.height) <= _SMALL
    ]
    if not 3 <= len(heads) <= _MANY_BOXES or not 3 <= len(lines) <= _MANY_BOXES:
        return False
    return sum(any(_gap(head.box, line) <= _NEAR for line in lines) for head in heads) >= 3


def has_axes(group: Sequence[Mark], shortest: float) -> bool:
    """A level and an upright rule that meet at their ends, or a frame, as around a plot."""
    if any(mark.shape is Shape.BOX and min(mark.width, mark.height) >= shortest for mark in group):
        return True
    rules = [mark for mark in group if mark.shape is Shape.RULE and max(mark.width, mark.height) >= shortest]
    level = [mark for mark in rules if mark.width > mark.height][:_MANY_BOXES]
    upright = [mark for mark in rules if mark.width <= mark.height][:_MANY_BOXES]
    return any(
        min(_gap(end, foot) for end in _ends(one)[0] for foot in _ends(other)[0]) <= _NEAR
        for one in level
        for other in upright
    )


def has_tones(group: Sequence[Mark], texts: Sequence[Four]) -> bool:
    """A field of many filled boxes in many tones, as a heat map has; a striped table has few tones.

    Where hardly a word is among them fewer will do: nobody fills a table with colours alone.
    """
    cells = [mark for mark in group if mark.shape is Shape.BOX and mark.filled]
    tones = {mark.tone for mark in cells}
    if len(cells) >= 20 and len(tones) >= 6 and len(texts) < len(cells) / 2:
        return True
    if len(texts) > _FEW_WORDS * len(cells) or not is_field([cell.box for cell in cells]):
        return False
    return (len(cells) >= 20 and len(tones) >= 4) or (len(cells) >= 9 and len(tones) >= 6)


def has_shadings(group: Sequence[Mark]) -> bool:
    """Several shadings and other marks: a drawing with shaded bodies, or a chart with shaded bars."""
    shaded = [mark for mark in group if mark.kind is Kind.SHADING]
    return len(shaded) >= 3 and len(group) >= _MARKS


def is_lettering(drawn: Sequence[Mark], group: Sequence[Mark]) -> bool:
    """Whether the drawn marks are the outlines of letters: rows on common lines, nothing but rows."""
    letters = [mark for mark in drawn if mark.filled and not mark.stroked]
    if len(letters) < 4 or len(letters) < 0.8 * len(drawn) or has_bars(group):
        return False
    letters = letters[:: len(letters) // _SAMPLE + 1]
    rows: list[list[Mark]] = []
    for mark in sorted(letters, key=lambda mark: (-mark.height, mark.box)):
        for row in rows:
            tallest = row[0]
            if share_inside((0, mark.box[1], 1, mark.box[3]), (0, tallest.box[1], 1, tallest.box[3])) > 0.6:
                row.append(mark)
                break
        else:
            rows.append([mark])
    if len(rows) > len(letters) / 3:
        return False
    settled = 0
    for row in rows:
        slack = 0.03 * row[0].height
        low, high = median(mark.box[1] for mark in row), median(mark.box[3] for mark in row)
        settled += sum(
            abs(mark.box[1] - low) <= slack or abs(mark.box[3] - high) <= slack
            for mark in row
            if mark.width < 3 * row[0].height
        )
    return settled >= 0.75 * len(letters)


def is_table(group: Sequence[Mark], texts: Sequence[Four]) -> bool:
    """A lattice of rules or cells with texts in most of its rows and at least two columns."""
    level = {round(mark.box[1] / 2) for mark in group if mark.shape is not Shape.DRAWN and mark.width >= 4 * _SMALL}
    rows = {round(text[1] / 4) for text in texts}
    columns = {round(text[0] / 12) for text in texts}
    return len(level) >= 3 and len(rows) >= 3 and len(columns) >= 2 and len(texts) >= 2 * len(rows)


def covered(box: Four, others: Sequence[Four]) -> float:
    """Share of ``box`` under ``others``, overlaps among them counted once for each."""
    return sum(_area(overlap(box, other)) for other in others) / max(1.0, _area(box))


def area_share(inside: Sequence[Four], box: Four) -> float:
    """Share of ``box`` taken by ``inside``."""
    return sum(_area(text) for text in inside) / max(1.0, _area(box))


def share_inside(box: Four, other: Four) -> float:
    """Share of ``box`` (a line counts as thin) that lies inside ``other``."""
    left, bottom, right, top = box
    return _shared(left, right, other[0], other[2]) * _shared(bottom, top, other[1], other[3])


def _shared(first: float, last: float, low: float, high: float) -> float:
    if last <= first:
        return 1.0 if low <= first <= high else 0.0
    return max(0.0, min(last, high) - max(first, low)) / (last - first)


def _sides(box: Four) -> tuple[float, float]:
    return box[2] - box[0], box[3] - box[1]


def _area(box: Four) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])
