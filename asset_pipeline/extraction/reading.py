"""One document on its way through a pool of decoder processes: dealt out, read again where one was lost, merged.

Pages are dealt out to as many decoders as there are workers (``turns``). What a lost one had of them is read again, if
need be page by page, so that the bad page alone carries the reason. Files stay where the decoders left them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import mkdtemp

from asset_pipeline import account
from asset_pipeline.errors import StorageError
from asset_pipeline.extraction.allowance import Allowance
from asset_pipeline.extraction.engine import Request, made_by
from asset_pipeline.extraction.rows import Gallery
from asset_pipeline.extraction.sandbox.lost import DecoderLost
from asset_pipeline.extraction.sandbox.pool import DecoderPool
from asset_pipeline.extraction.turns import MOST_PAGES, Turns, deal
from asset_pipeline.model import Extraction, Page, Source, Timings
from asset_pipeline.reasons import Reason

_SMALL_BYTES = 1024 * 1024
_FEW_PAGES = 8
"""A document no larger than this has hardly more pages, and one decoder reads them before a second has opened it."""


@dataclass(slots=True)
class Reading:
    """The reading of one document. ``request`` asks for all of its pages; its folder gets one for each decoder.

    ``own`` says that nobody else uses the pool.
    """

    pool: DecoderPool
    own: bool
    engine: str
    request: Request
    source: Source
    allowance: Allowance = field(init=False)
    _answered: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.allowance = Allowance(self.request.policy.limits.document_seconds)

    def read(self, workers: int) -> Extraction:
        """The whole report, of ``workers`` decoders at once. Raises StorageError where there is no room for it."""
        began = time.monotonic()
        try:
            parts = self._read_together(workers) or [self._inspect()]
            self.source = next((part.source for part in parts if part.source.pages), parts[0].source)
            parts += self._read_missing(parts, workers)
        except DecoderLost as lost:
            return self._report(lost.reason)
        refused = next((part.outcome for part in parts if part.outcome != "ok"), None)
        if refused is not None:
            return self._report(Reason(refused))
        timings = Timings(decode=round((time.monotonic() - began) * 1000, 3))
        return merge(parts, self._report().model_copy(update={"timings_ms": timings}))

    def _read_together(self, workers: int) -> list[Extraction]:
        """What the decoders answered, less the pages of those that were lost; raises DecoderLost when time is over."""
        parts = self._read_ahead() if self.source.bytes <= _SMALL_BYTES else []
        if parts and (parts[0].outcome != "ok" or (parts[0].source.pages or 0) <= _FEW_PAGES):
            return parts
        first = _FEW_PAGES + 1 if parts else 1
        with deal() as turns, self._callers(workers, turns) as callers:
            reading = [callers.submit(self._take_turns, turns, first) for _ in range(workers)]
            return parts + [part for taken in reading for part in taken.result()]

    def _read_ahead(self) -> list[Extraction]:
        """The first pages, without company; nothing where that goes wrong."""
        try:
            return [self._read_pages(1, _FEW_PAGES)]
        except DecoderLost as lost:
            if lost.reason is Reason.DEADLINE_EXCEEDED:
                raise
            return []

    def _take_turns(self, turns: Turns, first: int) -> list[Extraction]:
        """What one decoder after the other answered, until there are no turns or they cannot be taken.

        None comes after one that answered for pages of others, or for less than its share where turns are left: it is
        not honest, and what all of them may answer would fill the memory of this process.
        """
        parts: list[Extraction] = []
        while left := turns.left():
            try:
                part = self._read_pages(first, None, turns)
                pages = {page.page for page in part.pages}
                if pages & self._answered:
                    break
                self._answered |= pages
                parts.append(part)
                if len(pages) < MOST_PAGES:
                    break
            except DecoderLost as lost:
                if lost.reason is Reason.DEADLINE_EXCEEDED:
                    raise
            if turns.left() == left:
                break
        return parts

    def _inspect(self) -> Extraction:
        """The document without its pages, as nobody answered for any."""
        with self.allowance.decoder() as begin:
            inspection = self.pool.inspect(self.engine, self.request, seconds=begin)
        self.source = inspection.source
        return self._report(inspection.outcome)

    def _read_missing(self, parts: Sequence[Extraction], workers: int) -> list[Extraction]:
        """The pages that nobody answered for, read again; none where the document was refused."""
        if any(part.outcome != "ok" for part in parts):
            return []
        answered = {page.page for part in parts for page in part.pages}
        missing = [number for number in range(1, (self.source.pages or 1) + 1) if number not in answered]
        with self._callers(workers) as callers:
            return [part for found in callers.map(self._read_range, _ranges(missing)) for part in found]

    def _read_range(self, pages: tuple[int, int]) -> list[Extraction]:
        first, last = pages
        try:
            part = self._read_pages(first, last)
            answered = {page.page for page in part.pages}
            # No honest decoder leaves one out that it was asked for: reading it again would give no better answer.
            left_out = [] if part.outcome != "ok" else [page for page in range(first, last + 1) if page not in answered]
            return [part, self._lost(left_out, Reason.DECODER_CRASHED)]
        except DecoderLost as lost:
            if lost.reason is Reason.DEADLINE_EXCEEDED:
                raise
            if first == last:
                return [self._lost([first], lost.reason)]
        return [part for page in range(first, last + 1) for part in self._read_range((page, page))]

    def _lost(self, pages: Iterable[int], reason: Reason) -> Extraction:
        """``pages`` without their pictures."""
        unread = [Page(page=page, drawn=None, reason=reason) for page in pages]
        return self._report().model_copy(update={"pages": unread})

    def _read_pages(self, first: int, last: int | None, turns: Turns | None = None) -> Extraction:
        try:
            out = Path(mkdtemp(dir=self.request.out))
        except OSError as error:
            raise StorageError(f"What is read cannot be written ({error.strerror}).", "Name another folder.") from None
        request = replace(self.request, out=out, first=first, last=last, turns=turns)
        with self.allowance.decoder() as begin:
            return self.pool.extract(self.engine, request, seconds=begin)

    @contextmanager
    def _callers(self, workers: int, turns: Turns | None = None) -> Iterator[ThreadPoolExecutor]:
        """Threads to wait for decoders in. An interrupt, or the failure of one, ends what they wait for as well."""
        with ThreadPoolExecutor(workers, thread_name_prefix="reading") as callers:
            try:
                yield callers
            except BaseException:
                self.allowance.forfeit()
                if turns is not None:
                    turns.withdraw()
                if self.own:
                    self.pool.close()
                raise

    def _report(self, refused: Reason | None = None) -> Extraction:
        """No pages yet."""
        version = made_by(self.pool.version(self.engine), self.request.policy)
        return Extraction(source=self.source, outcome=refused or "ok", extractor_version=version)


def merge(parts: Iterable[Extraction], whole: Extraction) -> Extraction:
    """One report of parts: pages in order with repeats collapsed, each page and file once, the highest memory.

    ``whole`` gives what does not differ between parts, and how many pages there are. Files are in the order in which
    rows name them.
    """
    answered: dict[int, Page] = {}
    gallery, highest = Gallery(), 0
    for part in parts:
        new = (page for page in part.pages if page.page not in answered and page.page <= (whole.source.pages or 0))
        answered |= {page.page: page for page in new}
        highest = max(highest, part.peak_rss_bytes)
        for picture in part.pictures:
            gallery.add(picture)
    pages = account.collapse_repeats(answered.values())
    rows = (row for page in pages for row in page.placements)
    named = dict.fromkeys(digest for row in rows for digest in (row.picture, row.display) if digest)
    pictures = [gallery.pictures[digest] for digest in named]
    return whole.model_copy(update={"pages": pages, "pictures": pictures, "peak_rss_bytes": highest})


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of ``numbers``, which are in order."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]
