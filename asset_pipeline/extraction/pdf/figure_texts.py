"""Texts as boxes: lines out of text objects, and which lines are labels of a figure.

A producer writes a line as one object, a word or a glyph at a time; only whole lines tell a label from
a paragraph. No text is read here, so none can leak.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from asset_pipeline.extraction.pdf.figure_groups import around, near
from asset_pipeline.extraction.pdf.figure_judgement import share_inside
from asset_pipeline.model import Four

_WORD_GAP = 1.2
_ROW = 0.6
_LEADING = 1.6
_SHORT = 0.6
_EVEN = 2.0
_NAMES = 3


def text_lines(texts: Sequence[Four]) -> list[Four]:
    """``texts`` joined into lines: on one height, no further apart than a wide space."""
    lines: list[Four] = []
    row: list[Four] = []
    for box in sorted((box for box in texts if box[2] > box[0] and box[3] > box[1]), key=_middle):
        if row and _middle(box) - _middle(row[0]) > _ROW * min(box[3] - box[1], row[0][3] - row[0][1]):
            lines.extend(_join(sorted(row)))
            row = []
        row.append(box)
    return lines + (_join(sorted(row)) if row else [])


def _middle(box: Four) -> float:
    return (box[1] + box[3]) / 2


def _join(row: list[Four]) -> list[Four]:
    lines = [row[0]]
    for box in row[1:]:
        last = lines[-1]
        tall = min(last[3] - last[1], box[3] - box[1])
        if box[0] - last[2] <= _WORD_GAP * tall and _shared_height(last, box) > 0.3:
            lines[-1] = around((last, box))
        else:
            lines.append(box)
    return lines


def _shared_height(one: Four, other: Four) -> float:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared / max(0.1, min(one[3] - one[1], other[3] - other[1]))


def is_paragraph(line: Four, lines: Sequence[Four], wide: float) -> bool:
    """Whether ``line`` is one of several long lines below each other, or the short last one of them."""
    length, tall = line[2] - line[0], line[3] - line[1]
    for other in lines:
        longer = max(length, other[2] - other[0])
        if other is line or longer < wide:
            continue
        step = abs((other[1] + other[3]) - (line[1] + line[3])) / 2
        if 0.5 * tall < step < _LEADING * max(tall, other[3] - other[1]) and _same_column(line, other):
            even = abs(line[0] - other[0]) <= _EVEN or min(length, other[2] - other[0]) >= 0.8 * wide
            if even:
                return True
    return False


def _same_column(one: Four, other: Four) -> bool:
    shared = min(one[2], other[2]) - max(one[0], other[0])
    return shared > 0.7 * min(one[2] - one[0], other[2] - other[0])


def with_labels(box: Four, lines: Sequence[Four], reach: float, is_caption: Callable[[Four], bool]) -> Four:
    """``box`` grown over the short lines that lie in it or within ``reach`` of it, twice: titles of axes too."""
    width, height = box[2] - box[0], box[3] - box[1]
    lines = near(box, lines, 4 * reach)
    grown = around((box, *_rows_of_names(box, lines, 2 * reach)))
    for _ in range(2):
        taken = [
            line
            for line in near(grown, lines, reach)
            if (share_inside(line, grown) > 0.5 or _is_label(line, lines, grown, width, height))
            and not is_caption(line)
        ]
        larger = around((grown, *taken))
        if larger == grown:
            break
        grown = larger
    return grown


def _rows_of_names(box: Four, lines: Sequence[Four], reach: float) -> list[Four]:
    """Short lines left of ``box`` that begin or end on one line: names of lying bars, which keep some distance."""
    beside = [
        line
        for line in lines
        if line[0] < box[0]
        and -_EVEN < box[0] - line[2] < 3 * reach
        and box[1] <= (line[1] + line[3]) / 2 <= box[3]
        and line[2] - line[0] < (box[2] - box[0]) / 2
        and not is_paragraph(line, lines, (box[2] - box[0]) / 2)
    ]
    names: list[Four] = []
    for edge in (0, 2):
        for line in beside:
            even = [other for other in beside if abs(other[edge] - line[edge]) <= _EVEN]
            if box[0] - max(other[2] for other in even) < reach:
                names = max(names, even, key=len)
    return names if len(names) >= _NAMES else []


def _is_label(line: Four, lines: Sequence[Four], box: Four, width: float, height: float) -> bool:
    across, up = line[2] - line[0], line[3] - line[1]
    beside = line[0] >= box[2] - up or line[2] <= box[0] + up
    if up > across:
        return up <= height * 1.1
    if across > (_SHORT * width if beside else 1.1 * width):
        return False
    return not is_paragraph(line, lines, _SHORT * width)
