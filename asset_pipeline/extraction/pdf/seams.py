"""What the pixels on both sides of an edge say: one picture that goes on, or two that merely touch.

Neighbouring lines of one picture resemble each other as much as lines inside it do; two photos side by
side do not. Without structure along the edge (plain colours, noise, a few pixels) there is no evidence,
and no verdict is given. Reads the display files of parts, and keeps two lines a side of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from asset_pipeline.extraction.pdf.composites import Piece, Seam
from asset_pipeline.model import Picture

_SHORTEST = 16
_STRUCTURE = 4.0
"""Standard deviation along an edge, in levels of 255, from which it shows something."""

_GRAIN = 0.5
"""... and from which it is no plain colour: even a clear sky has some grain."""

_JUMP, _STEP = 4.0, 12.0
"""A seam parts where lines differ by more than so many times their usual difference, and so many levels."""

_LIKENESS, _LOSS = 0.7, 0.5
"""It also parts where lines correlate well inside both pictures, and by so much less across the seam."""

Lines = NDArray[np.float32]


@dataclass(slots=True)
class Seams:
    """Judges edges between the parts whose displays are among ``pictures``, files in ``folder``."""

    folder: Path
    pictures: Mapping[str, Picture]
    _sides: dict[str, tuple[Lines, Lines, Lines, Lines] | None] = field(default_factory=dict)

    def judge(self, first: Piece, second: Piece, stacked: bool, offset: int) -> Seam:
        """The verdict on the edge between ``first`` and ``second``, see ``composites.Judge``."""
        one, other = self._sides_of(first), self._sides_of(second)
        if one is None or other is None:
            return Seam.UNKNOWN
        # Sides are (top, bottom, left, right), the outermost line first; a cropped display begins later.
        before, after = (one[1], other[0]) if stacked else (one[3], other[2])
        axis = 0 if stacked else 1
        shift = offset + second.seen[axis] - first.seen[axis]
        start, end = max(0, shift), min(before.shape[1], shift + after.shape[1])
        if end - start < _SHORTEST:
            return Seam.UNKNOWN
        return compare(before[:, start:end], after[:, start - shift : end - shift])

    def _sides_of(self, piece: Piece) -> tuple[Lines, Lines, Lines, Lines] | None:
        digest = piece.row.display
        if digest is None:
            return None
        if digest not in self._sides:
            self._sides[digest] = _read_sides(self.folder / self.pictures[digest].file)
        return self._sides[digest]


def compare(before: Lines, after: Lines) -> Seam:
    """Two lines on each side, ``(2, length, channels)``, the one at the edge first."""
    (outer, inner), (near, deep) = before, after
    usual = max(_difference(outer, inner), _difference(near, deep))
    jump = _difference(outer, near)
    weak, strong = sorted((_spread(outer), _spread(near)))
    if jump > _JUMP * usual + _STEP and (weak if _is_bilevel(outer, near) else strong) > _GRAIN:
        return Seam.PARTS
    if weak < _STRUCTURE:
        return Seam.UNKNOWN
    likeness = min(_correlation(outer, inner), _correlation(near, deep))
    across = _correlation(outer, near)
    if likeness > _LIKENESS and across < likeness - _LOSS:
        return Seam.PARTS
    return Seam.CONTINUES if across > _LIKENESS else Seam.UNKNOWN


def _read_sides(path: Path) -> tuple[Lines, Lines, Lines, Lines] | None:
    try:
        with Image.open(path, formats=("PNG", "JPEG")) as opened:
            pixels = np.asarray(opened.convert("RGB"))
    except (OSError, ValueError, SyntaxError, MemoryError):
        return None
    if min(pixels.shape[:2]) < 2:
        return None
    turned = pixels.swapaxes(0, 1)
    sides = (pixels[:2], pixels[:-3:-1], turned[:2], turned[:-3:-1])
    top, bottom, left, right = (np.ascontiguousarray(side, np.float32) for side in sides)
    return top, bottom, left, right


def _is_bilevel(*lines: Lines) -> bool:
    """Whether all is black or white, as in scans, where a rule or a blank row is nothing unusual."""
    return all(bool(((line == 0) | (line == 255)).all()) for line in lines)


def _difference(one: Lines, other: Lines) -> float:
    return float(np.abs(one - other).mean())


def _spread(line: Lines) -> float:
    """How much a line varies along itself; what its colour channels differ by is no structure."""
    return float(np.sqrt((_centred(line) ** 2).mean()))


def _correlation(one: Lines, other: Lines) -> float:
    spread = _spread(one) * _spread(other)
    return 0.0 if spread == 0 else float((_centred(one) * _centred(other)).mean() / spread)


def _centred(line: Lines) -> Lines:
    centred: Lines = line - line.mean(axis=0)
    return centred
