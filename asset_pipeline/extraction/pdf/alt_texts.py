"""What the tags of a document say about a picture: alternative text, and the caption in the same figure.

Goes from the picture to its structure element by the document's parent tree, so that the cost does not grow with
the tags; the other way only for a picture that no tag holds (``placed_figures``). Tags are hints: where they are
broken there is no text, and nothing else suffers. Every way through them is bounded, since they may run in circles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.placed_figures import PlacedFigures
from asset_pipeline.extraction.pdf.resources import entry
from asset_pipeline.model import Four

# Figure, with perhaps a span and a link around the picture; further up a text describes something else.
_LEVELS = 6
_ROLES = 8
_MOST_CHILDREN = 256
_MOST_FAULTS = 16
_DEEPEST_CAPTION = 6

_GROUPS = frozenset(
    {"Document", "Part", "Art", "Sect", "Div", "Table", "TR", "L", "TOC", "BlockQuote", "StructTreeRoot"}
)
_SAYS_ITSELF = frozenset({"Figure", "Formula", "Span"})
_BROKEN = (pikepdf.PikepdfError, KeyError, IndexError, TypeError, ValueError, AttributeError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Tagged:
    """What tags say about one picture. ``caption_marks``: marked content of the page that holds the caption."""

    alt: str | None = None
    caption: str | None = None
    caption_marks: frozenset[int] = frozenset()


_NOTHING = Tagged()


@dataclass(slots=True)
class AltTexts:
    """Looks up the tags of one open document."""

    pdf: pikepdf.Pdf
    _parents: Any = None
    _roles: Any = None
    _known: dict[int, Any] = field(default_factory=dict)
    _faults: int = 0
    _placed: PlacedFigures | None = None

    def __post_init__(self) -> None:
        root = entry(self.pdf.Root, "/StructTreeRoot")
        try:
            if isinstance(entry(root, "/ParentTree"), pikepdf.Dictionary):
                self._parents = pikepdf.NumberTree(root.ParentTree)
                self._roles = entry(root, "/RoleMap")
        except _BROKEN:
            self._parents = None

    def of(self, page: pikepdf.Page, draw: Draw) -> Tagged:
        """What is said about the picture that ``draw`` puts on ``page``."""
        found = self._first(self._elements(page, draw), page)
        alt = draw.said or found.alt
        if alt is None and draw.mcid is None and self.tagged:
            alt = self._placed_at(page, draw.bbox)
        return Tagged(alt, found.caption, found.caption_marks)

    def of_mark(self, page: pikepdf.Page, mark: int) -> Tagged:
        """What is said about marked content of ``page`` itself."""
        return self._first(self._marked(page.obj, mark), page)

    @property
    def tagged(self) -> bool:
        """Whether the document has tags at all."""
        return self._parents is not None

    def _placed_at(self, page: pikepdf.Page, box: Four) -> str | None:
        try:
            if self._placed is None:
                self._placed = PlacedFigures(entry(self.pdf.Root, "/StructTreeRoot"), self._role_of)
            return self._placed.text_at(page, box)
        except _BROKEN:
            return None

    def _first(self, elements: Iterator[Any], page: pikepdf.Page) -> Tagged:
        found = _NOTHING
        if self._parents is None:
            return found
        for element in elements:
            try:
                found = self._climb(element, page)
            except _BROKEN:
                continue
            if found.alt is not None:
                break
        return found

    def _elements(self, page: pikepdf.Page, draw: Draw) -> Iterator[Any]:
        """The elements that may hold the picture, the closest first."""
        yield self._entry_at(entry(draw.image, "/StructParent"))
        if draw.mcid is not None and draw.mcid >= 0:
            holder: Any = page.obj
            if draw.mcid_form is not None:
                holder = self.pdf.get_object((draw.mcid_form, 0))
            yield from self._marked(holder, draw.mcid)
        yield self._entry_at(draw.structure)

    def _marked(self, holder: Any, mark: int) -> Iterator[Any]:
        marks = self._entry_at(entry(holder, "/StructParents"))
        if isinstance(marks, pikepdf.Array) and 0 <= mark < len(marks):
            yield marks[mark]

    def _entry_at(self, key: Any) -> Any:
        if not isinstance(key, int) or isinstance(key, bool) or self._faults >= _MOST_FAULTS:
            return None
        if key not in self._known:
            try:
                self._known[key] = self._parents[key]
            except (KeyError, IndexError):
                self._known[key] = None
            except _BROKEN:
                self._faults += 1
                self._known[key] = None
        return self._known[key]

    def _climb(self, element: Any, page: pikepdf.Page) -> Tagged:
        alt: str | None = None
        actual: str | None = None
        for level in range(_LEVELS):
            if not isinstance(element, pikepdf.Dictionary):
                break
            role = self._role_of(element)
            if role in _GROUPS:
                break
            alt = alt or _text(element, "/Alt")
            if level == 0 or role == "Figure":
                actual = actual or (_text(element, "/ActualText") if role in _SAYS_ITSELF else None)
            if role == "Figure":
                return self._captioned(element, alt or actual, page)
            element = entry(element, "/P")
        return Tagged(alt=alt or actual)

    def _captioned(self, figure: Any, alt: str | None, page: pikepdf.Page) -> Tagged:
        captions = [child for child in _children(figure) if self._role_of(child) == "Caption"]
        if not captions:
            return Tagged(alt=alt)
        text = _text(captions[0], "/ActualText")
        marks = frozenset() if text else frozenset(_marks(captions[0], None, page.obj, [_MOST_CHILDREN], 0))
        return Tagged(alt, text, marks)

    def _role_of(self, element: Any) -> str:
        """The standard type that the element's own type stands for."""
        role = entry(element, "/S")
        for _ in range(_ROLES):
            if not isinstance(role, pikepdf.Name):
                return ""
            mapped = entry(self._roles, str(role))
            if not isinstance(mapped, pikepdf.Name) or mapped == role:
                break
            role = mapped
        return str(role)[1:]


def _text(element: Any, key: str) -> str | None:
    text = entry(element, key)
    return (str(text).strip() or None) if isinstance(text, pikepdf.String) else None


def _children(element: Any) -> list[Any]:
    """What an element holds, if it is not too much: elements and references to marked content."""
    kids = entry(element, "/K")
    if not isinstance(kids, pikepdf.Array):
        return [] if kids is None else [kids]
    return [kids[index] for index in range(min(len(kids), _MOST_CHILDREN))]


def _marks(element: Any, page_of: Any, page: Any, budget: list[int], depth: int) -> Iterator[int]:
    """Marked content of ``page`` inside ``element``, in reading order."""
    page_of = entry(element, "/Pg") or page_of
    for child in _children(element):
        budget[0] -= 1
        if budget[0] < 0:
            return
        if isinstance(child, int) and not isinstance(child, bool):
            if _same(page_of, page):
                yield child
        elif isinstance(child, pikepdf.Dictionary):
            mark = entry(child, "/MCID")
            if isinstance(mark, int) and entry(child, "/Stm") is None:
                if _same(entry(child, "/Pg") or page_of, page):
                    yield mark
            elif depth < _DEEPEST_CAPTION:
                yield from _marks(child, page_of, page, budget, depth + 1)


def _same(one: Any, page: Any) -> bool:
    return one is None or (isinstance(one, pikepdf.Dictionary) and one.objgen == page.objgen)
