"""What ties groups together although nothing drawn touches: grid lines, bars in a row, labels between drawn parts.

Grid lines of a plot and its broad bars stand further apart than marks of one figure may; a tree of names and lines
is held together by the names. Texts tie only groups in which something was drawn, since headings and paragraphs
stand between tables and rules as well.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence

from asset_pipeline.extraction.pdf.figure_groups import Sets, around, near
from asset_pipeline.extraction.pdf.figure_judgement import share_inside
from asset_pipeline.extraction.pdf.figure_marks import Mark
from asset_pipeline.extraction.pdf.figure_shapes import Shape
from asset_pipeline.extraction.pdf.figure_texts import is_paragraph
from asset_pipeline.model import Four

_GRID = 3
_EVEN = 0.1
_FEWEST_BARS = 3
_WHOLE = 0.9
_WIDEST = 90.0
_LONGEST_NAME = 120.0
_MOST_PARTS = 300
_MOST_LINES = 5_000


def joined_by_grids(groups: Sequence[list[Mark]]) -> list[list[Mark]]:
    """``groups`` with those in one that share rules of one length at even steps."""
    families: dict[tuple[bool, int, int], list[tuple[float, int]]] = defaultdict(list)
    for number, members in enumerate(groups):
        for mark in members:
            if mark.shape is not Shape.RULE or max(mark.width, mark.height) < 4 * _GRID:
                continue
            left, bottom, right, top = mark.box
            level = mark.width > mark.height
            first, last, place = (left, right, bottom) if level else (bottom, top, left)
            families[level, round(first / 2), round(last / 2)].append((place, number))
    ties: list[set[int]] = []
    for rules in families.values():
        places = sorted({round(place, 1) for place, _ in rules})
        steps = [after - before for before, after in itertools.pairwise(places)]
        if len(places) >= _GRID and max(steps) - min(steps) <= _EVEN * max(steps) and max(steps) <= _WIDEST:
            ties.append({number for _, number in rules})
    return _tied(groups, ties)


def joined_by_bars(groups: Sequence[list[Mark]], lines: Sequence[Four]) -> list[list[Mark]]:
    """``groups`` with those in one that are bars: on one line, of one thickness, less than that apart.

    What holds more than a label is no bar: cards of text stand in rows as well.
    """
    families: dict[tuple[bool, int, int], list[tuple[float, float, float, int]]] = defaultdict(list)
    for number, members in enumerate(groups):
        left, bottom, right, top = box = around(mark.box for mark in members)
        if not all(mark.shape is Shape.BOX and share_inside(box, mark.box) > _WHOLE for mark in members):
            continue
        if sum(share_inside(line, box) > 0.5 for line in near(box, lines)) > 1:
            continue
        families[True, round(bottom), round(right - left)].append((left, right, top - bottom, number))
        families[False, round(left), round(top - bottom)].append((bottom, top, right - left, number))
    ties: list[set[int]] = []
    for bars in families.values():
        row: list[tuple[float, float, float, int]] = []
        for bar in sorted(bars):
            if row and bar[0] - row[-1][1] > bar[1] - bar[0]:
                ties += _tie_of(row)
                row = []
            row.append(bar)
        ties += _tie_of(row)
    return _tied(groups, ties)


def _tie_of(row: Sequence[tuple[float, float, float, int]]) -> list[set[int]]:
    lengths = {round(length / _GRID) for _, _, length, _ in row}
    return [{number for *_, number in row}] if len(lengths) >= _FEWEST_BARS else []


def joined_by_texts(groups: Sequence[list[Mark]], lines: Sequence[Four], gap: float) -> list[list[Mark]]:
    """``groups`` with those in one that have drawn marks and a short line of text between them."""
    drawn = {
        number: around(mark.box for mark in members)
        for number, members in enumerate(groups)
        if any(mark.effort for mark in members)
    }
    if not 2 <= len(drawn) <= _MOST_PARTS:
        return list(groups)
    ties: list[set[int]] = []
    for line in lines[:_MOST_LINES]:
        if line[2] - line[0] > _LONGEST_NAME:
            continue
        near = (line[0] - gap, line[1] - gap, line[2] + gap, line[3] + gap)
        tied = {number for number, box in drawn.items() if _meet(near, box)}
        if len(tied) > 1 and not is_paragraph(line, lines, _LONGEST_NAME / 2):
            ties.append(tied)
    return _tied(groups, ties)


def _tied(groups: Sequence[list[Mark]], ties: Iterable[set[int]]) -> list[list[Mark]]:
    sets = Sets()
    for tie in ties:
        first, *others = sorted(tie)
        for other in others:
            sets.join(first, other)
    joined: dict[int, list[Mark]] = {}
    for number, members in enumerate(groups):
        joined.setdefault(sets.root(number), []).extend(members)
    return list(joined.values())


def _meet(one: Four, other: Four) -> bool:
    return one[0] <= other[2] and other[0] <= one[2] and one[1] <= other[3] and other[1] <= one[3]
