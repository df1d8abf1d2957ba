"""Brings marks together that lie close to each other, at a cost that does not grow with their square.

Marks are painted as boxes onto a coarse grid; what touches after widening each box by half the gap is
one group. A form that holds a drawing of its own is one group by its author's will.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.extraction.pdf.figure_marks import Mark
from asset_pipeline.model import Four

_CELLS = 512
_FINEST = 1.0


def around(boxes: Iterable[Four]) -> Four:
    """Smallest box around ``boxes``."""
    left, bottom, right, top = zip(*boxes, strict=True)
    return min(left), min(bottom), max(right), max(top)


def near(box: Four, others: Iterable[Four], reach: float = 0.0) -> list[Four]:
    """Those of ``others`` that come within ``reach`` of ``box``."""
    left, bottom, right, top = box[0] - reach, box[1] - reach, box[2] + reach, box[3] + reach
    return [
        other for other in others if other[2] >= left and other[0] <= right and other[3] >= bottom and other[1] <= top
    ]


def group(marks: Sequence[Mark], page: Four, gap: float, joined_forms: set[int]) -> list[list[Mark]]:
    """``marks`` in groups that are at least ``gap`` apart; order of first marks, paint order within each."""
    grid = _Grid(page, gap)
    for mark in marks:
        grid.paint(mark.box)
    labels = grid.labels()
    groups = Sets()
    keys: list[int] = []
    for mark in marks:
        key = int(labels[grid.cell(mark.box)])
        keys.append(key)
        if mark.form in joined_forms:
            groups.join(key, -mark.form)
    found: dict[int, list[Mark]] = defaultdict(list)
    for mark, key in zip(marks, keys, strict=True):
        found[groups.root(key)].append(mark)
    return list(found.values())


class _Grid:
    def __init__(self, page: Four, gap: float) -> None:
        self.left, self.bottom = page[0], page[1]
        self.size = max(_FINEST, (page[2] - page[0]) / _CELLS, (page[3] - page[1]) / _CELLS)
        self.reach = gap / 2
        self.columns = int((page[2] - page[0]) / self.size) + 1
        self.rows = int((page[3] - page[1]) / self.size) + 1
        self.painted: NDArray[np.bool_] = np.zeros((self.rows, self.columns), bool)

    def paint(self, box: Four) -> None:
        first = self._column(box[0] - self.reach)
        lowest = self._row(box[1] - self.reach)
        self.painted[lowest : self._row(box[3] + self.reach) + 1, first : self._column(box[2] + self.reach) + 1] = True

    def cell(self, box: Four) -> tuple[int, int]:
        return self._row(box[1]), self._column(box[0])

    def labels(self) -> NDArray[np.int32]:
        """A number for each cell, the same for cells that hang together; 0 where nothing is painted."""
        labels = np.zeros(self.painted.shape, np.int32)
        sets, above, count = Sets(), [(0, 0, 0)][:0], 0
        for row in range(self.rows):
            edges = np.flatnonzero(np.diff(np.concatenate(([0], self.painted[row].view(np.int8), [0]))))
            here = []
            for first, after in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
                count += 1
                labels[row, first:after] = count
                here.append((first, after, count))
                for other_first, other_after, other in above:
                    if other_first < after and first < other_after:
                        sets.join(count, other)
            above = here
        roots = np.array([sets.root(number) for number in range(count + 1)], np.int32)
        return roots[labels]

    def _column(self, x: float) -> int:
        return min(self.columns - 1, max(0, int((x - self.left) / self.size)))

    def _row(self, y: float) -> int:
        return min(self.rows - 1, max(0, int((y - self.bottom) / self.size)))


class Sets:
    """Disjoint sets of numbers; the root of a set is its smallest number that is not a form's."""

    def __init__(self) -> None:
        self.parents: dict[int, int] = {}

    def root(self, number: int) -> int:
        while (parent := self.parents.get(number, number)) != number:
            self.parents[number] = self.parents.get(parent, parent)
            number = parent
        return number

    def join(self, one: int, other: int) -> None:
        first, second = sorted((self.root(one), self.root(other)))
        self.parents[second] = first
