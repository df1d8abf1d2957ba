"""What every engine does around its reading: open, answer, and make a refusal an answer.

An engine brings how a document is opened, what is said of its source, and how its pages are read. Everything that
differs between engines is theirs; that a refused document is a result and not an error is the same for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TypeVar

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.engine import Engine, Inspection, Request, extractor_version
from asset_pipeline.extraction.rows import Gallery
from asset_pipeline.extraction.withheld import WithheldFiles
from asset_pipeline.model import Extraction, Page, Source, Timings

Document = TypeVar("Document")
Open = Callable[[Request], AbstractContextManager[Document]]
"""Opens the document for as long as the context lasts. Raises Refusal with the document's reason."""


SourceOf = Callable[[Request, Document | None, Refusal | None], Source]
"""What is said of the source: of an open document, else of one that was refused."""


def inspect(request: Request, opening: Open[Document], source_of: SourceOf[Document]) -> Inspection:
    """The answer to ``Engine.inspect``."""
    try:
        with opening(request) as document:
            return Inspection(source=source_of(request, document, None), outcome=None)
    except Refusal as refusal:
        return Inspection(source=source_of(request, None, refusal), outcome=refusal.reason)


def extract(
    engine: Engine,
    request: Request,
    opening: Open[Document],
    source_of: SourceOf[Document],
    read: Callable[[Document, Request, Gallery, WithheldFiles], list[Page]],
) -> Extraction:
    """The answer to ``Engine.extract``: ``read`` gives the requested pages and fills gallery and withheld files."""
    began = time.monotonic()
    made_by = extractor_version(engine, request.policy)
    try:
        with opening(request) as document:
            gallery, withheld = Gallery(), WithheldFiles(request)
            pages = read(document, request, gallery, withheld)
            return Extraction(
                source=source_of(request, document, None),
                outcome="ok",
                extractor_version=made_by,
                pages=pages,
                pictures=list(gallery.pictures.values()),
                withheld=withheld.rows,
                timings_ms=Timings(decode=round((time.monotonic() - began) * 1000, 3)),
            )
    except Refusal as refusal:
        source = source_of(request, None, refusal)
        return Extraction(source=source, outcome=refusal.reason, extractor_version=made_by)


def requested(request: Request, pages: int) -> Iterable[int]:
    """Numbers of the requested pages of a document that has ``pages``, to be read in this order."""
    numbers = range(request.first, min(request.last or pages, pages) + 1)
    return numbers if request.turns is None else request.turns.take(numbers)
