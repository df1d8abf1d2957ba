"""Word documents: the pictures of each story, since a docx has no fixed pages.

A unit is a story in a stable order: the document, its headers and footers as the sections name them,
footnotes, endnotes, and the pictures that lists have for bullets. Comments and glossaries are not part of what
the document shows. Headers of first or even pages that no section uses, deleted and hidden text are not shown.
A picture in a line lies at the origin, because where it comes to lie is decided when pages are made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from xml.etree.ElementTree import Element

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.ooxml.drawing import Shapes, first_that_draws, number
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.ooxml.placed import EMU, Placed, Sink, Unit, box_frame
from asset_pipeline.extraction.ooxml.vml import VmlShapes
from asset_pipeline.extraction.pdf.geometry import multiply
from asset_pipeline.reasons import Reason

_UNSEEN = frozenset({"del", "moveFrom"})
_WRAPPERS = frozenset({"sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag"})
_NOTES = (("footnotes", "footnotes"), ("endnotes", "endnotes"))
_EDGES = ("default", "first", "even")
"""Pages that a header or footer may be of; no program knows others."""

_NO = ("0", "false", "off")
_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Story:
    """One part of a document that holds text. ``shown`` is False for a header that no page uses."""

    part: str
    label: str
    shown: bool = True


class WordDocument:
    """The stories of a docx, read one at a time."""

    def __init__(self, package: Package, main: str) -> None:
        self._package = package
        self._main = main
        self._captions = _caption_styles(package, main)
        self.stories = self._list_stories()

    def __len__(self) -> int:
        return len(self.stories)

    def read(self, index: int) -> Unit:
        """The pictures of a story. Raises Refusal where it cannot be read."""
        story = self.stories[index]
        sink = Sink(self._package.limits.placements)
        root = self._package.markup(story.part)
        reader = _Story(self._package, story.part, sink, self._captions)
        background = root.find("background")
        if background is not None:
            VmlShapes(self._package, story.part, sink, hidden=not self._shows_background()).walk(background)
        reader.blocks(root, hidden=not story.shown)
        return Unit("part", story.label, placed=sink.placed)

    def _list_stories(self) -> list[Story]:
        sections = list(self._package.markup(self._main).iter("sectPr"))
        return [Story(self._main, "document"), *self._list_edges(sections), *self._list_notes(), *self._list_bullets()]

    def _list_edges(self, sections: list[Element]) -> list[Story]:
        """Headers and footers in the order in which sections name them, each once."""
        even = self._setting("evenAndOddHeaders")
        shown: dict[str, bool] = {}
        kinds: dict[str, str] = {}
        current: dict[tuple[str, str], str] = {}
        for section in sections:
            for row in section:
                part = self._package.part_of(self._main, row.get("r:id"))
                if row.tag in ("headerReference", "footerReference") and part is not None and part in self._package:
                    which = row.get("type", "default")
                    if which in _EDGES:
                        current[row.tag, which] = part
                    shown.setdefault(part, False)
                    kinds.setdefault(part, row.tag.removesuffix("Reference"))
            first = _is_on(section.find("titlePg"))
            for (_, which), part in current.items():
                shown[part] |= which == "default" or (which == "first" and first) or (which == "even" and even)
        counts = {"header": 0, "footer": 0}
        stories = []
        for part, seen in shown.items():
            counts[kinds[part]] += 1
            stories.append(Story(part, f"{kinds[part]}{counts[kinds[part]]}", seen))
        return stories

    def _list_notes(self) -> list[Story]:
        return [
            Story(part, label)
            for kind, label in _NOTES
            for part in self._package.parts_of(self._main, kind)[:1]
            if part in self._package
        ]

    def _list_bullets(self) -> list[Story]:
        """The part with bullets that are pictures, where it has any; each is told once, wherever lists use it."""
        parts = self._package.parts_of(self._main, "numbering")[:1]
        return [
            Story(part, "bullets", shown=any(True for _ in root.iter("lvlPicBulletId")))
            for part, root in zip(parts, _related(self._package, self._main, "numbering"), strict=False)
            if root.find("numPicBullet") is not None
        ]

    def _setting(self, name: str) -> bool:
        return any(_is_on(root.find(name)) for root in _related(self._package, self._main, "settings"))

    def _shows_background(self) -> bool:
        return self._setting("displayBackgroundShape")


@dataclass(slots=True)
class _Block:
    """A paragraph: the pictures in it, and its text where it is a caption."""

    placed: list[Placed] = field(default_factory=list)
    caption: str | None = None


@dataclass(frozen=True, slots=True)
class _Story:
    package: Package
    part: str
    sink: Sink
    captions: frozenset[str]

    def blocks(self, container: Element, hidden: bool) -> None:
        """Read paragraphs and tables of one container, then give its pictures their captions."""
        run: list[_Block] = []
        for element, unseen in _flat(container, hidden):
            before = len(self.sink)
            self._read(element, unseen)
            if element.tag == "p":
                run.append(_Block(self.sink.placed[before:], self._caption_of(element)))
            else:
                run.append(_Block())
        _give_captions(run)

    def _read(self, element: Element, hidden: bool) -> None:
        tag = element.tag
        if tag == "drawing":
            self._drawing(element, hidden)
        elif tag in ("pict", "object"):
            VmlShapes(self.package, self.part, self.sink, hidden, self.blocks).walk(element)
            for drawing in element.iterfind("drawing"):  # the strict form has no VML
                self._drawing(drawing, hidden)
        elif tag == "AlternateContent":
            first_that_draws(element, self.sink, lambda branch: self._children(branch, hidden))
        elif tag in ("tc", "txbxContent", "footnote", "endnote"):
            self.blocks(element, hidden)
        elif tag == "r":
            self._children(element, hidden or _is_on(element.find("rPr/vanish")))
        else:
            self._children(element, hidden or tag in _UNSEEN)

    def _children(self, element: Element, hidden: bool) -> None:
        for child in element:
            self._read(child, hidden)

    def _drawing(self, element: Element, hidden: bool) -> None:
        for holder in element:
            properties, extent = holder.find("docPr"), holder.find("extent")
            said = properties.attrib if properties is not None else {}
            size = extent.attrib if extent is not None else {}
            width, height = number(size.get("cx")), number(size.get("cy"))
            shapes = Shapes(
                self.package,
                self.part,
                self.sink,
                hidden=hidden or said.get("hidden") in ("1", "true"),
                alt=said.get("descr") or said.get("title") or None,
                places=lambda _, width=width, height=height: ((0.0, 0.0, width, height), 0.0, False, False),  # type: ignore[misc]
                on_text=self.blocks,
            )
            shape = multiply(box_frame(0, 0, width, height), EMU)
            for data in holder.iterfind("graphic/graphicData"):
                shapes.graphic(data, shape, EMU)

    def _caption_of(self, paragraph: Element) -> str | None:
        style = paragraph.find("pPr/pStyle")
        if style is None or style.get("val") not in self.captions:
            return None
        return " ".join("".join(_texts(paragraph)).split())[:_CHARACTERS] or None


def _flat(container: Element, hidden: bool) -> Iterator[tuple[Element, bool]]:
    """Children of a container, those inside wrappers in the wrapper's place; and whether they are hidden."""
    for element in container:
        if element.tag in _WRAPPERS or element.tag in _UNSEEN or element.tag == "body":
            yield from _flat(element, hidden or element.tag in _UNSEEN)
        elif element.tag != "background":
            yield element, hidden


def _texts(element: Element) -> Iterator[str]:
    """Text of a paragraph as shown: neither of text boxes in it nor what stands in for a newer form."""
    for child in element:
        if child.tag == "t":
            yield child.text or ""
        elif child.tag in ("tab", "br"):
            yield " "
        elif child.tag not in _UNSEEN and child.tag not in ("drawing", "pict", "object", "AlternateContent"):
            yield from _texts(child)


def _give_captions(blocks: list[_Block]) -> None:
    """Each caption goes to the picture beside it: the one before, or, where captions come first, the one behind."""
    run: list[_Block] = []
    for block in [*blocks, _Block()]:
        if block.placed or block.caption:
            run.append(block)
            continue
        above = bool(run) and _is_caption(run[0]) and not _is_caption(run[-1])
        for first, second in pairwise(run):
            caption, picture = (first, second) if above else (second, first)
            if _is_caption(caption) and not _is_caption(picture):
                _set(picture, caption.caption)
        if len(run) > 1 and _is_caption(run[0]) and not above:
            _set(run[1], run[0].caption)
        for own in run:
            _set(own, own.caption)
        run = []


def _is_caption(block: _Block) -> bool:
    return block.caption is not None and not block.placed


def _set(block: _Block, caption: str | None) -> None:
    for placed in block.placed:
        placed.caption = placed.caption or caption


def _caption_styles(package: Package, main: str) -> frozenset[str]:
    """Ids of the paragraph styles that are captions: by the name that is the same in every language, or based on it."""
    names: dict[str, str] = {}
    bases: dict[str, str] = {}
    for root in _related(package, main, "styles"):
        for style in root.iterfind("style"):
            id_, name, base = style.get("styleId", ""), style.find("name"), style.find("basedOn")
            names[id_] = (name.get("val", "") if name is not None else "").lower()
            bases[id_] = base.get("val", "") if base is not None else ""
    found = {id_ for id_, name in names.items() if name == "caption"}
    return frozenset(found | {id_ for id_, base in bases.items() if base in found})


def _related(package: Package, main: str, kind: str) -> Iterator[Element]:
    """Roots of a document's parts of one kind; nothing where they do not come, since no picture is in them."""
    for part in package.parts_of(main, kind)[:1]:
        try:
            yield package.markup(part)
        except Refusal as refusal:
            if refusal.reason is not Reason.MALFORMED_DOCUMENT:
                raise


def _is_on(element: Element | None) -> bool:
    return element is not None and element.get("val") not in _NO
