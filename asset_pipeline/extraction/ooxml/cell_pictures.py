"""Pictures that are the values of cells: placed in a cell, or fetched by a formula and kept in the workbook.

A cell names its value by number, and the way to the bytes goes through five parts: the value's metadata, the rich
value, its structure, a list of relationships and these themselves (MS-XLSX, "Rich Data"). Rich values that are no
pictures (shares, places) are passed over. Where a picture lies is the sheet's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar
from xml.etree.ElementTree import Element

from asset_pipeline.extraction.ooxml.package import Package

_RICH = "XLRICHVALUE"
_LISTS = {"_rvRel:LocalImageIdentifier": "richValueRel", "WebImageIdentifier": "rdRichValueWebImage"}
"""Kind of the list of relationships into which a rich value points, by the key that does."""

_WORDS = "Text"
_NAMES = ("r:id", "blip", "address")
_DIGITS = 9
Item = TypeVar("Item")


class CellPicture(NamedTuple):
    """Relationship ``id`` of ``part`` names the bytes; ``alt`` is what the author says that they show."""

    part: str
    id: str
    alt: str | None


@dataclass(slots=True)
class CellPictures:
    """The pictures among the values of a workbook's cells, read at first need."""

    package: Package
    main: str
    _found: dict[str, CellPicture] | None = None
    _any: bool = field(init=False)

    def __post_init__(self) -> None:
        self._any = any(self.package.parts_of(self.main, kind) for kind in _LISTS.values())

    def __bool__(self) -> bool:
        """Whether there may be any."""
        return self._any

    def find(self, metadata: str | None) -> CellPicture | None:
        """The picture of a cell by its ``vm``; None for another value. Raises Refusal where a part cannot be read."""
        if self._found is None:
            self._found = self._read()
        return self._found.get(metadata or "")

    def _read(self) -> dict[str, CellPicture]:
        structures = [[key.get("n", "") for key in row] for row in self._rows("rdRichValueStructure")]
        lists = {key: self._list(kind) for key, kind in _LISTS.items()}
        pictures = [_picture(row, structures, lists) for row in self._rows("rdRichValue")]
        metadata = self._rows("sheetMetadata")
        kinds = [row.get("name", "") for part in metadata if part.tag == "metadataTypes" for row in part]
        kinds.insert(0, "")  # they are counted from 1
        rich = [
            _at(pictures, next((value.get("i") for value in block.iter("rvb")), None))
            for part in metadata
            if part.tag == "futureMetadata" and part.get("name") == _RICH
            for block in part.iterfind("bk")
        ]
        found = {}
        blocks = (block for part in metadata if part.tag == "valueMetadata" for block in part.iterfind("bk"))
        for place, block in enumerate(blocks, start=1):
            for record in block.iterfind("rc"):
                picture = _at(rich, record.get("v")) if _at(kinds, record.get("t")) == _RICH else None
                if picture is not None:
                    found[str(place)] = picture
        return found

    def _list(self, kind: str) -> list[CellPicture]:
        parts = self.package.parts_of(self.main, kind)[:1]
        return [CellPicture(part, _id(row), None) for part in parts for row in self.package.markup(part)]

    def _rows(self, kind: str) -> list[Element]:
        return [row for part in self.package.parts_of(self.main, kind)[:1] for row in self.package.markup(part)]


def _picture(
    value: Element, structures: Sequence[Sequence[str]], lists: dict[str, list[CellPicture]]
) -> CellPicture | None:
    said = dict(zip(_at(structures, value.get("s")) or (), (row.text for row in value.iterfind("v")), strict=False))
    for key, pictures in lists.items():
        if key in said:
            picture = _at(pictures, said[key])
            return picture._replace(alt=said.get(_WORDS)) if picture is not None else None
    return None


def _id(row: Element) -> str:
    """Relationship of an entry of a list: its own, that of the bytes kept, else that of where they came from."""
    holders = {"r:id": row} | {child.tag: child for child in row}
    return next((id_ for name in _NAMES if name in holders and (id_ := holders[name].get("r:id"))), "")


def _at(items: Sequence[Item], index: str | None) -> Item | None:
    """``items[index]``; None for what is no index of it."""
    if index is None or not index.isdecimal() or len(index) > _DIGITS:
        return None
    return items[int(index)] if int(index) < len(items) else None
