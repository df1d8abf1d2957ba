"""Spreadsheets: the pictures of each sheet, in the order of the tabs.

Of cells only those are read whose value is a picture; others hang on the sheet, through its drawing, its
background, previews of embedded objects and, in the page header and footer, old drawings. Positions and sizes
are those that the drawing states in absolute measure; a cell, or an anchor that states cells only, is measured
with the sheet's own columns and rows. A hidden sheet is read and not shown.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate, islice
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from asset_pipeline.extraction.ooxml.cell_pictures import CellPictures
from asset_pipeline.extraction.ooxml.drawing import Shapes, Transform, first_that_draws, number, source_of
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.ooxml.placed import EMU, EMU_PER_POINT, Placed, Sink, Unit, box_frame, window_of
from asset_pipeline.extraction.ooxml.vml import VmlShapes
from asset_pipeline.extraction.pdf.geometry import multiply
from asset_pipeline.model import Four, Kind

_ANCHORS = frozenset({"twoCellAnchor", "oneCellAnchor", "absoluteAnchor"})
_SOME_SHAPE = ""
"""Stands for the shape of an object that does not name it."""

_CELLS = frozenset({"c", "f", "is", "v"})
_VALUE = "vm"
"""Where a cell names what its value is beside the number or text that older programs show."""

_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")
_DEFAULT_CHARACTERS, _DEFAULT_HEIGHT = 8.43, 15.0
_POINTS_PER_CHARACTER, _PADDING = 5.25, 3.75
"""Width of a digit and of a cell's padding in the default font (7 and 5 pixels at 96 dpi)."""

_MOST_CELLS = 1_048_576
_MOST_COLUMNS = 16_384
"""Columns that a sheet has: it cannot say more widths than these."""

_NOWHERE = (0.0, 0.0, 0.0, 0.0)


class Workbook:
    """The sheets of an xlsx, read one at a time."""

    def __init__(self, package: Package, main: str) -> None:
        self._package = package
        root = package.markup(main)
        self._sheets = list(root.iterfind("sheets/sheet"))
        self._main = main
        self._values = CellPictures(package, main)

    def __len__(self) -> int:
        return len(self._sheets)

    def read(self, index: int) -> Unit:
        """The pictures of a sheet. Raises Refusal where it cannot be read."""
        entry = self._sheets[index]
        part = self._package.part_of(self._main, entry.get("r:id")) or ""
        root = self._package.markup(part, skip=_CELLS, unless=_VALUE if self._values else None)
        hidden = entry.get("state") in ("hidden", "veryHidden")
        sink = Sink(self._package.limits.placements)
        grid = _Grid.of(root)
        background = root.find("picture")
        if background is not None:
            _add(self._package, part, sink, background.get("r:id"), hidden, Kind.PATTERN)
        self._cells(root, sink, hidden, grid)
        for drawing in root.iterfind("drawing"):
            self._drawing(self._package.part_of(part, drawing.get("r:id")), sink, hidden, grid)
        told = self._objects(root, part, sink, hidden, grid)
        for name in ("legacyDrawing", "legacyDrawingHF"):
            old = root.find(name)
            source = self._package.part_of(part, old.get("r:id")) if old is not None else None
            again = told if name == "legacyDrawing" else frozenset()
            if source is not None and _SOME_SHAPE not in again:
                VmlShapes(self._package, source, sink, hidden, told=again).walk(self._package.markup(source))
        return Unit("sheet", entry.get("name"), None, hidden, sink.placed)

    def _cells(self, root: Element, sink: Sink, hidden: bool, grid: _Grid) -> None:
        merged = {
            row.get("ref", "").partition(":")[0]: row.get("ref", "") for row in root.iterfind("mergeCells/mergeCell")
        }
        for cell in root.iterfind("sheetData/row/c"):
            picture = self._values.find(cell.get(_VALUE))
            if picture is None:
                continue
            place = cell.get("r", "")
            box = grid.cells(merged.get(place, place))
            part, reason = source_of(self._package, picture.part, picture.id)
            frame = box_frame(*(box or _NOWHERE))
            sink.add(
                Placed(
                    kind=Kind.RASTER,
                    part=part,
                    reason=reason,
                    frame=frame,
                    window=window_of(frame),
                    fits=True,
                    hidden=hidden or (box is not None and not (box[2] and box[3])),
                    alt=picture.alt,
                )
            )

    def _drawing(self, part: str | None, sink: Sink, hidden: bool, grid: _Grid) -> None:
        if part is not None:
            self._anchors(self._package.markup(part), part, sink, hidden, grid)

    def _anchors(self, root: Element, part: str, sink: Sink, hidden: bool, grid: _Grid) -> None:
        for element in root:
            if element.tag == "AlternateContent":
                first_that_draws(element, sink, lambda branch: self._anchors(branch, part, sink, hidden, grid))
            elif element.tag in _ANCHORS:
                place = partial(_at, grid.box(element))
                Shapes(self._package, part, sink, hidden=hidden, places=place).walk(element, EMU)

    def _objects(self, root: Element, part: str, sink: Sink, hidden: bool, grid: _Grid) -> frozenset[str]:
        """Previews of embedded objects; the old drawing, where what is returned are their shapes, tells each again."""
        told = set()
        for owner in root.iter("oleObject"):
            for entry in owner.iterfind("objectPr"):
                anchor = entry.find("anchor")
                box = grid.box(anchor) if anchor is not None else None
                _add(self._package, part, sink, entry.get("r:id"), hidden, Kind.RASTER, box)
                told.add(f"_x0000_s{owner.get('shapeId')}" if owner.get("shapeId") else _SOME_SHAPE)
        return frozenset(told)


@dataclass(slots=True)
class _Grid:
    """Widths of columns and heights of rows, in points, where they differ from the default."""

    width: float = _DEFAULT_CHARACTERS * _POINTS_PER_CHARACTER + _PADDING
    height: float = _DEFAULT_HEIGHT
    columns: list[tuple[int, int, float]] = field(default_factory=list)
    rows: dict[int, float] = field(default_factory=dict)
    _more: tuple[list[int], list[float]] | None = None
    """Numbers of the rows that differ, and by how much all before each do together."""

    _wider: tuple[Any, Any, Any] | None = None
    """First and last column of each range, and by how much a column of it is wider than the default."""

    @classmethod
    def of(cls, root: Element) -> _Grid:
        """The grid of a sheet."""
        grid = cls()
        said = root.find("sheetFormatPr")
        if said is not None:
            grid.height = number(said.get("defaultRowHeight")) or grid.height
            if said.get("defaultColWidth"):
                grid.width = number(said.get("defaultColWidth")) * _POINTS_PER_CHARACTER
        for row in islice(root.iterfind("cols/col"), _MOST_COLUMNS):
            wide = 0.0 if row.get("hidden") in ("1", "true") else number(row.get("width")) * _POINTS_PER_CHARACTER
            grid.columns.append((int(number(row.get("min"))), int(number(row.get("max"))), wide))
        for row in root.iterfind("sheetData/row"):
            if row.get("hidden") in ("1", "true"):
                grid.rows[int(number(row.get("r")))] = 0.0
            elif row.get("ht"):
                grid.rows[int(number(row.get("r")))] = number(row.get("ht"))
        return grid

    def box(self, anchor: Element) -> Transform | None:
        """Box of an anchor in EMU; None where it states none."""
        start, end, size, corner = (anchor.find(name) for name in ("from", "to", "ext", "pos"))
        x, y = self._point(start) if start is not None else (0.0, 0.0)
        if corner is not None:
            x, y = number(corner.get("x")), number(corner.get("y"))
        if size is not None:
            return (x, y, number(size.get("cx")), number(size.get("cy"))), 0.0, False, False
        if end is None:
            return None
        right, bottom = self._point(end)
        return (x, y, max(0.0, right - x), max(0.0, bottom - y)), 0.0, False, False

    def cells(self, reference: str) -> Four | None:
        """Left, top, width and height in points of a cell or a range of cells; None for what is neither."""
        corners = [_REFERENCE.fullmatch(end) for end in reference.split(":")]
        places = [(_column(found[1]), int(found[2])) for found in corners if found]
        if not places:
            return None
        (column, row), (last_column, last_row) = places[0], places[-1]
        left, top = self._left(column - 1), self._top(row - 1)
        return left, top, max(0.0, self._left(last_column) - left), max(0.0, self._top(last_row) - top)

    def _point(self, element: Element) -> tuple[float, float]:
        column, row = (_index(element.findtext(name)) for name in ("col", "row"))
        across, down = number(element.findtext("colOff")), number(element.findtext("rowOff"))
        return self._left(column) * EMU_PER_POINT + across, self._top(row) * EMU_PER_POINT + down

    def _left(self, column: int) -> float:
        if self._wider is None:
            first, last, wide = np.array(self.columns, np.float64).reshape(-1, 3).T
            self._wider = first, last, wide - self.width
        first, last, more = self._wider
        added = np.maximum(0.0, np.minimum(last, column) - first + 1) * more
        # One after the other, as the ranges come: a sum in another order differs in the last digit that is kept.
        return float(np.add.accumulate(np.concatenate(([column * self.width], added)))[-1])

    def _top(self, row: int) -> float:
        if self._more is None:  # a sheet may have ten thousand pictures in as many rows
            numbers = sorted(self.rows)
            more = accumulate((self.rows[number_] - self.height for number_ in numbers), initial=0.0)
            self._more = numbers, list(more)
        numbers, sums = self._more
        return row * self.height + sums[bisect_right(numbers, row)]


def _at(box: Transform | None, _: Element) -> Transform | None:
    """Where a shape lies that says nothing itself: where its anchor does."""
    return box


def _add(
    package: Package, part: str, sink: Sink, id_: str | None, hidden: bool, kind: Kind, box: Transform | None = None
) -> None:
    """A picture that a sheet names by itself."""
    holder, fill, blip = Element("holder"), Element("blipFill"), Element("blip", {"r:embed": id_ or ""})
    fill.append(blip)
    if kind is Kind.PATTERN:
        fill.append(Element("tile"))
    holder.append(fill)
    x, y, width, height = box[0] if box is not None else (0.0, 0.0, 0.0, 0.0)
    Shapes(package, part, sink, hidden=hidden).fill(holder, multiply(box_frame(x, y, width, height), EMU))


def _column(letters: str) -> int:
    """Number of a column, A being 1."""
    number_ = 0
    for letter in letters.upper():
        number_ = number_ * 26 + ord(letter) - ord("A") + 1
    return number_


def _index(text: str | None) -> int:
    return max(0, min(_MOST_CELLS, int(number(text))))
