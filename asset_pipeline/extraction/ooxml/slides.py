"""Presentations: the pictures of each slide as it is shown.

What a slide shows comes from three parts, painted in this order: its master, its layout, itself; above a
background that is the nearest one stated. A logo on a master is therefore a placement of every slide that
shows it: the archive keeps one object, and repeats are counted as such. A slide that is skipped in the
show is read and not shown. Notes are no part of a slide: where they have pictures, they are units of their own
behind all slides, as the notes page is printed, with its master.
"""

from __future__ import annotations

from dataclasses import dataclass
from xml.etree.ElementTree import Element

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.ooxml.drawing import Shapes, Transform, number, placeholder_of, read_transform
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.ooxml.placed import EMU, EMU_PER_POINT, Sink, Unit, box_frame
from asset_pipeline.model import Four, Six
from asset_pipeline.reasons import Reason

_NO = ("0", "false", "off")
_FIRST_BACKGROUND = 1_001
"""Index of the first background fill of a theme."""

_DRAWN = frozenset({"image", "chart", "diagramData"})
"""Kinds of relationships of a part that may draw a picture."""

_TITLES = {"ctrTitle": "title", "subTitle": "body"}


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A slide, layout or master: its part and its markup."""

    part: str
    root: Element

    @property
    def tree(self) -> Element | None:
        return self.root.find("cSld/spTree")

    @property
    def shows_master(self) -> bool:
        return self.root.get("showMasterSp") not in _NO


class Presentation:
    """The slides of a pptx, read one at a time."""

    def __init__(self, package: Package, main: str) -> None:
        self._package = package
        root = package.markup(main)
        self._size = _size(root.find("sldSz"))
        self._notes_size = _size(root.find("notesSz"))
        self._first = int(number(root.get("firstSlideNum", "1")))
        self._slides = [package.part_of(main, row.get("r:id")) or "" for row in root.iterfind("sldIdLst/sldId")]
        self._known: dict[str, _Sheet | None] = {}
        self._notes = self._find_notes()

    def __len__(self) -> int:
        return len(self._slides) + len(self._notes)

    def read(self, index: int) -> Unit:
        """The pictures of a slide or of its notes. Raises Refusal where they cannot be read."""
        if index >= len(self._slides):
            return self._read_notes(*self._notes[index - len(self._slides)])
        part = self._slides[index]
        slide = _Sheet(part, self._package.markup(part))
        layout = self._behind(slide, "slideLayout")
        master = self._behind(layout, "slideMaster")
        hidden = slide.root.get("show") in _NO
        sink = Sink(self._package.limits.placements)
        self._background([slide, layout, master], sink, hidden, self._size)
        if master is not None and layout is not None and slide.shows_master and layout.shows_master:
            self._shapes(master, sink, hidden, behind=True)
        if layout is not None and slide.shows_master:
            self._shapes(layout, sink, hidden, behind=True)
        self._shapes(slide, sink, hidden, places=_Places([sheet for sheet in (layout, master) if sheet]))
        return Unit("slide", str(self._first + index), _box(self._size), hidden, sink.placed)

    def _read_notes(self, index: int, part: str) -> Unit:
        notes = _Sheet(part, self._package.markup(part))
        master = self._behind(notes, "notesMaster")
        sink = Sink(self._package.limits.placements)
        self._background([notes, master], sink, False, self._notes_size)
        if master is not None and notes.shows_master:
            self._shapes(master, sink, False, behind=True)
        self._shapes(notes, sink, False, places=_Places([master] if master else []))
        return Unit("part", f"notes of slide {self._first + index}", _box(self._notes_size), placed=sink.placed)

    def _find_notes(self) -> list[tuple[int, str]]:
        """Slides, counted from 0, whose notes may have pictures, and the parts of these notes."""
        return [
            (index, part)
            for index, slide in enumerate(self._slides)
            for part in self._parts_of(slide, "notesSlide")[:1]
            if any(self._may_draw(sheet) for sheet in (part, *self._parts_of(part, "notesMaster")[:1]))
        ]

    def _may_draw(self, part: str) -> bool:
        try:
            return any(row.kind in _DRAWN for row in self._package.relations(part).values())
        except Refusal:
            return True  # reading it tells why

    def _parts_of(self, part: str, kind: str) -> list[str]:
        try:
            return self._package.parts_of(part, kind)
        except Refusal:
            return []  # reading it tells why

    def _shapes(
        self, sheet: _Sheet, sink: Sink, hidden: bool, *, behind: bool = False, places: _Places | None = None
    ) -> None:
        if sheet.tree is not None:
            reader = Shapes(self._package, sheet.part, sink, hidden=hidden, places=places, skips_placeholders=behind)
            reader.walk(sheet.tree, EMU)
            reader.walk(sheet.root.iterfind("cSld/controls"), EMU)

    def _background(self, sheets: list[_Sheet | None], sink: Sink, hidden: bool, size: tuple[float, float]) -> None:
        """The nearest background that is stated, where it is a picture; nothing shows through it."""
        whole: Six = box_frame(0.0, 0.0, *size)
        for sheet in sheets:
            stated = sheet.root.find("cSld/bg") if sheet is not None else None
            if sheet is None or stated is None:
                continue
            reference = stated.find("bgRef")
            if reference is None:
                Shapes(self._package, sheet.part, sink, hidden=hidden).fill(stated.find("bgPr"), whole)
            else:
                master = next(row for row in reversed(sheets) if row is not None)
                self._theme_background(master, int(number(reference.get("idx"))), sink, hidden, whole)
            return

    def _theme_background(self, master: _Sheet, index: int, sink: Sink, hidden: bool, whole: Six) -> None:
        for part in self._package.parts_of(master.part, "theme")[:1]:
            theme = self._sheet(part)
            fills = theme.root.find("themeElements/fmtScheme/bgFillStyleLst") if theme is not None else None
            at = index - _FIRST_BACKGROUND
            if fills is not None and 0 <= at < len(fills) and fills[at].tag == "blipFill":
                holder = Element("bgPr")
                holder.append(fills[at])
                Shapes(self._package, part, sink, hidden=hidden).fill(holder, whole)

    def _behind(self, sheet: _Sheet | None, kind: str) -> _Sheet | None:
        parts = self._package.parts_of(sheet.part, kind) if sheet is not None else []
        return self._sheet(parts[0]) if parts else None

    def _sheet(self, part: str) -> _Sheet | None:
        """A part that many slides share, read once; None where it does not come: the slide is shown without it."""
        if part not in self._known:
            try:
                self._known[part] = _Sheet(part, self._package.markup(part))
            except Refusal as refusal:
                if refusal.reason is not Reason.MALFORMED_DOCUMENT:
                    raise
                self._known[part] = None
        return self._known[part]


class _Places:
    """Where a placeholder lies that says nothing itself: where the layout, else the master, puts its kind."""

    def __init__(self, sheets: list[_Sheet]) -> None:
        self._by_index: dict[str, Transform] = {}
        self._by_kind: dict[str, Transform] = {}
        for sheet in sheets:
            for element in sheet.tree if sheet.tree is not None else ():
                holder, transform = placeholder_of(element), read_transform(element.find("spPr/xfrm"))
                if holder is None or transform is None:
                    continue
                if sheet is sheets[0]:
                    self._by_index.setdefault(holder.get("idx", "0"), transform)
                self._by_kind.setdefault(_kind(holder), transform)

    def __call__(self, element: Element) -> Transform | None:
        holder = placeholder_of(element)
        if holder is None:
            return None
        return self._by_index.get(holder.get("idx", "0")) or self._by_kind.get(_kind(holder))


def _size(element: Element | None) -> tuple[float, float]:
    """Width and height in points."""
    if element is None:
        return 0.0, 0.0
    return number(element.get("cx")) / EMU_PER_POINT, number(element.get("cy")) / EMU_PER_POINT


def _box(size: tuple[float, float]) -> Four | None:
    """What clips a slide; None where it states no size."""
    return (0.0, 0.0, *size) if all(size) else None


def _kind(holder: Element) -> str:
    said = holder.get("type", "body")
    return _TITLES.get(said, said)
