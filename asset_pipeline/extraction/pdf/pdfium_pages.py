"""Pages as PDFium sees them, beside our own walk: for texts, and whatever else needs fonts or rendering.

Opened at first need and once a document. Where PDFium does not open the document, or counts its pages
differently, there are no such pages: what is read from them is an addition, never the account.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2
from pypdfium2 import raw

from asset_pipeline.extraction.pdf.shipped_fonts import use_shipped_fonts
from asset_pipeline.model import Four

_MOST_OBJECTS = 20_000


@dataclass(slots=True)
class PdfiumPages:
    """The pages of one document, one at a time: the last one stays open, as it is asked for again. Close after use."""

    path: Path
    password: str | None
    pages: int
    _document: Any = None
    _failed: bool = False
    _number: int = 0
    _page: Any = None

    def page(self, number: int) -> Any:
        """Page ``number`` from 1, or None where PDFium does not have it. Good until another one is asked for."""
        if number != self._number:
            self._close_page()
            self._number, self._page = number, self._load(number)
        return self._page

    def close(self) -> None:
        """Let go of the document."""
        self._close_page()
        if self._document is not None:
            self._document.close()
            self._document = None

    def _close_page(self) -> None:
        if self._page is not None:
            self._page.close()
        self._number, self._page = 0, None

    def _load(self, number: int) -> Any:
        try:
            if self._document is None and not self._failed:
                self._failed = True
                use_shipped_fonts()
                document = pypdfium2.PdfDocument(self.path, password=self.password)
                if len(document) != self.pages:
                    document.close()
                    return None
                self._document, self._failed = document, False
            return None if self._document is None else self._document[number - 1]
        except (pypdfium2.PdfiumError, OSError, ValueError, IndexError):
            return None


def main_marks(page: Any, boxes: Sequence[Four]) -> dict[int, int]:
    """By index of ``boxes``, the marked content that most of what ``page`` draws inside the box belongs to."""
    if not boxes:
        return {}
    found: list[Counter[int]] = [Counter() for _ in boxes]
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    for index in range(min(raw.FPDFPage_CountObjects(page.raw), _MOST_OBJECTS)):
        thing = raw.FPDFPage_GetObject(page.raw, index)
        mark = raw.FPDFPageObj_GetMarkedContentID(thing)
        if mark < 0 or not raw.FPDFPageObj_GetBounds(thing, left, bottom, right, top):
            continue
        x, y = (left.value + right.value) / 2, (bottom.value + top.value) / 2
        for counter, box in zip(found, boxes, strict=True):
            if box[0] <= x <= box[2] and box[1] <= y <= box[3]:
                counter[mark] += 1
    # Not most_common: it imports a module when called, which no decoder can in its cage.
    return {index: max(counter, key=counter.__getitem__) for index, counter in enumerate(found) if counter}
