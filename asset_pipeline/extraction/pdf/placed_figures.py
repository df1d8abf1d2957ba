"""Figures that tags place by page and box alone, with nothing of the page's content in them.

Word processors paint a picture as an artifact and describe it in a figure that is empty but for its page and its
box (PDF 14.8.5.4.3). Nothing leads from such a picture to its figure, so here the tags are read from their root: once
a document, only when a picture without tags asks, and no more than so many elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.resources import Key, box_of, entry, key_of
from asset_pipeline.model import Four

_MOST_ELEMENTS = 20_000
_CLOSE = 1.0
"""Points by which box and picture may differ: writers round both."""


class PlacedFigures:
    """The empty figures of one document that have an alternative text, by page."""

    def __init__(self, root: Any, role_of: Callable[[Any], str]) -> None:
        self._role_of = role_of
        self._by_page: dict[Key, list[tuple[Four, str]]] = defaultdict(list)
        self._read(root)

    def text_at(self, page: pikepdf.Page, box: Four) -> str | None:
        """What the one figure in the place of ``box`` says; None where there is none or several differ."""
        key = key_of(page.obj)
        texts = {text for place, text in self._by_page.get(key, ()) if _same(place, box)} if key else set()
        return texts.pop() if len(texts) == 1 else None

    def _read(self, root: Any) -> None:
        waiting, seen, budget = [root], set[Key](), _MOST_ELEMENTS
        while waiting:
            element = waiting.pop()
            key = key_of(element)
            if key is not None:
                if key in seen:
                    continue
                seen.add(key)
            kids = entry(element, "/K")
            if kids is None:
                self._keep(element)
            for kid in kids if isinstance(kids, pikepdf.Array) else [kids]:
                if not isinstance(kid, pikepdf.Dictionary):
                    continue
                budget -= 1
                if budget < 0:
                    return
                waiting.append(kid)

    def _keep(self, element: Any) -> None:
        page, alt = entry(element, "/Pg"), entry(element, "/Alt")
        if not isinstance(page, pikepdf.Dictionary) or not isinstance(alt, pikepdf.String):
            return
        key, text = key_of(page), str(alt).strip()
        if key is None or not text or self._role_of(element) != "Figure":
            return
        given = entry(element, "/A")
        for attributes in given if isinstance(given, pikepdf.Array) else [given]:
            box = box_of(attributes, "/BBox")
            if box is not None:
                self._by_page[key].append((box, text))


def _same(one: Four, other: Four) -> bool:
    return all(abs(here - there) <= _CLOSE for here, there in zip(one, other, strict=True))
