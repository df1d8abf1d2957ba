"""The small synchronous path: one file in, pictures and ``report.json`` out. No database, no Dagster.

The same engines, gates and decoder processes as the pipeline, so that a notebook and a test see what
the archive would get. A document that cannot be read is a result: the outcome says why. Only a wrong
call raises. Its pages are dealt out to the decoder processes (``turns``). What a lost one had of them is read again, if
need be page by page, so that the bad page alone carries the reason.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from asset_pipeline import account
from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import ENGINES, Request, engine_for, load_engine, made_by, version_of
from asset_pipeline.extraction.rows import Gallery
from asset_pipeline.extraction.sandbox.line import ZygoteLine, start_at_once
from asset_pipeline.extraction.sandbox.lost import DecoderLost
from asset_pipeline.extraction.sandbox.pool import DecoderPool
from asset_pipeline.extraction.turns import Turns, deal
from asset_pipeline.model import Extraction, Page, Source, Timings
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import declared_type, judge, recognise

REPORT_FILE = "report.json"

_SMALL_BYTES = 1024 * 1024
_FEW_PAGES = 8
"""A document no larger than this has hardly more pages, and one decoder reads them before a second has opened it."""
_PIECE = 1024 * 1024
_NOT_YET = "0" * 64
"""Stands for the document's digest in what decoders are asked and answer, as they need not wait for it."""


def extract(
    file: str | Path,
    out: str | Path,
    *,
    engine: str = "pdf",
    policy: Policy | None = None,
    password: str | None = None,
    figures: bool = True,
    workers: int | None = None,
    pixels: bool = False,
    pool: DecoderPool | None = None,
    started: ZygoteLine | None = None,
) -> Extraction:
    """Read ``file``, write its pictures and ``report.json`` into the folder ``out``, return the report.

    ``engine`` reads PDF; office files have an engine of their own.
    ``workers`` is the number of decoder processes (default: all cores); ``pixels`` asks for
    ``pixel_sha256`` of every picture; many documents share the start of one open ``pool``; ``started`` is a
    zygote that was started before this module was imported. Never raises for a bad document: see
    ``Extraction.outcome``.
    Raises UsageError for an unknown engine, a file that is not there or a folder that cannot be written.
    """
    policy = policy or Policy()
    if engine not in ENGINES:
        load_engine(engine)  # raises, and says which there are
    count = workers or len(os.sched_getaffinity(0))
    admitted = _admit(Path(file), policy)
    engine = engine_for(admitted.source.media_type, engine)
    folder = _prepare(Path(out))
    with ThreadPoolExecutor(1, thread_name_prefix="hashing") as aside:
        hashing = aside.submit(_hash, Path(file))
        if admitted.refused is not None:
            version = made_by(version_of(load_engine(engine)), policy)
            report = Extraction(source=admitted.source, outcome=admitted.refused, extractor_version=version)
        else:
            scratch = Path(mkdtemp(prefix=".reading-", dir=folder))
            try:
                request = Request(
                    document=Path(file).absolute(),
                    out=scratch,
                    policy=policy,
                    source_sha256=admitted.source.sha256,
                    source_bytes=admitted.source.bytes,
                    media_type=admitted.source.media_type,
                    password=password,
                    figures=figures,
                    pixels=pixels,
                    withhold=False,
                )
                with nullcontext(pool) if pool else _open_pool(count, policy, engine, started) as opened:
                    report = _Reading(opened, engine, request, folder, admitted.source).read(count)
            finally:
                rmtree(scratch, ignore_errors=True)
        digest, size, spent = hashing.result()
    source = report.source.model_copy(update={"sha256": digest, "bytes": size})
    timings = report.timings_ms.model_copy(update={"admit": spent})
    report = report.model_copy(update={"source": source, "timings_ms": timings})
    _write_report(folder, report)
    return report


def _open_pool(workers: int, policy: Policy, engine: str, started: ZygoteLine | None) -> DecoderPool:
    line = started or start_at_once((engine,), ENGINES)
    if line is not None:
        return DecoderPool(workers, policy, warm=(engine,), line=line)
    from asset_pipeline.settings import load_settings

    return DecoderPool(workers, policy, warm=(engine,), caged=load_settings().sandbox)


def merge(parts: Iterable[Extraction], whole: Extraction) -> Extraction:
    """One report of parts: pages in order with repeats collapsed, each page and file once, the highest memory.

    ``whole`` gives what does not differ between parts. Files are in the order in which rows name them.
    """
    answered: dict[int, Page] = {}
    gallery, highest = Gallery(), 0
    for part in parts:
        answered |= {page.page: page for page in part.pages if page.page not in answered}
        highest = max(highest, part.peak_rss_bytes)
        for picture in part.pictures:
            gallery.add(picture)
    pages = account.collapse_repeats(answered.values())
    rows = (row for page in pages for row in page.placements)
    named = dict.fromkeys(digest for row in rows for digest in (row.picture, row.display) if digest)
    pictures = [gallery.pictures[digest] for digest in named]
    return whole.model_copy(update={"pages": pages, "pictures": pictures, "peak_rss_bytes": highest})


@dataclass(slots=True)
class _Reading:
    """One document on its way through the pool."""

    pool: DecoderPool
    engine: str
    request: Request
    folder: Path
    source: Source
    deadline: float = 0.0

    def read(self, workers: int) -> Extraction:
        """The whole report. Nothing stays in the folder from a document whose outcome is not ``ok``."""
        began = time.monotonic()
        self.deadline = began + self.request.policy.limits.document_seconds
        try:
            parts = self._read_together(workers) or [self._inspect()]
            self.source = next((part.source for part in parts if part.source.pages), parts[0].source)
            parts += self._read_missing(parts, workers)
        except DecoderLost as lost:
            return self._refused(lost.reason)
        refused = next((part.outcome for part in parts if part.outcome != "ok"), None)
        if refused is not None:
            return self._refused(Reason(refused))
        merged = merge(parts, self._report())
        decoded = _milliseconds(began)
        began = time.monotonic()
        self._publish({picture.file for picture in merged.pictures})
        timings = Timings(decode=decoded, publish=_milliseconds(began))
        return merged.model_copy(update={"timings_ms": timings})

    def _read_together(self, workers: int) -> list[Extraction]:
        """What the decoders answered, less the pages of those that were lost; raises DecoderLost when time is over."""
        parts = self._read_ahead() if self.source.bytes <= _SMALL_BYTES else []
        if parts and (parts[0].outcome != "ok" or (parts[0].source.pages or 0) <= _FEW_PAGES):
            return parts
        first = _FEW_PAGES + 1 if parts else 1
        with deal() as turns, ThreadPoolExecutor(workers, thread_name_prefix="reading") as callers:
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
        """What one decoder after the other answered, until there are no turns or they cannot be taken."""
        parts: list[Extraction] = []
        while left := turns.left():
            try:
                parts.append(self._read_pages(first, None, turns))
            except DecoderLost as lost:
                if lost.reason is Reason.DEADLINE_EXCEEDED:
                    raise
            if turns.left() == left:
                break
        return parts

    def _inspect(self) -> Extraction:
        """The document without its pages, as nobody answered for any."""
        inspection = self.pool.inspect(self.engine, self.request)
        self.source = inspection.source
        return self._report(inspection.outcome)

    def _read_missing(self, parts: Sequence[Extraction], workers: int) -> list[Extraction]:
        """The pages that nobody answered for, read again; none where the document was refused."""
        if any(part.outcome != "ok" for part in parts):
            return []
        answered = {page.page for part in parts for page in part.pages}
        missing = [number for number in range(1, (self.source.pages or 1) + 1) if number not in answered]
        with ThreadPoolExecutor(workers, thread_name_prefix="reading") as callers:
            return [part for found in callers.map(self._read_range, _ranges(missing)) for part in found]

    def _read_range(self, pages: tuple[int, int]) -> list[Extraction]:
        first, last = pages
        try:
            return [self._read_pages(first, last)]
        except DecoderLost as lost:
            if lost.reason is Reason.DEADLINE_EXCEEDED:
                raise
            if first == last:
                return [self._lost_page(first, lost.reason)]
        return [part for page in range(first, last + 1) for part in self._read_range((page, page))]

    def _read_pages(self, first: int, last: int | None, turns: Turns | None = None) -> Extraction:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise DecoderLost(Reason.DEADLINE_EXCEEDED)
        out = Path(mkdtemp(dir=self.request.out))
        request = replace(self.request, out=out, first=first, last=last, turns=turns)
        return self.pool.extract(self.engine, request, seconds=left)

    def _lost_page(self, page: int, reason: Reason) -> Extraction:
        return self._report().model_copy(update={"pages": [Page(page=page, drawn=None, reason=reason)]})

    def _refused(self, reason: Reason) -> Extraction:
        return self._report(reason)

    def _report(self, refused: Reason | None = None) -> Extraction:
        """No pages yet."""
        version = made_by(self.pool.version(self.engine), self.request.policy)
        return Extraction(source=self.source, outcome=refused or "ok", extractor_version=version)

    def _publish(self, names: set[str]) -> None:
        """Move the files into the folder from whichever decoders wrote them; they are equal by digest."""
        for folder in self.request.out.iterdir():
            for made in folder.iterdir():
                if made.name in names:
                    made.replace(self.folder / made.name)


def _ranges(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last of each run of ``numbers``, which are in order."""
    runs = [[number for _, number in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0])]
    return [(run[0], run[-1]) for run in runs]


@dataclass(frozen=True, slots=True)
class _Admitted:
    source: Source
    refused: Reason | None


def _admit(file: Path, policy: Policy) -> _Admitted:
    """Size and signature of the file; its digest is made while it is read.

    Raises UsageError where there is no file, or where its name is none to the libraries that open it.
    """
    declared = declared_type(file.name)
    try:
        str(file.absolute()).encode()
        if not file.is_file():
            raise UsageError(f"There is no file {str(file)!r}.", "Name a document to read.")
        with file.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            signature = recognise(stream, declared)
    except UnicodeEncodeError:
        raise UsageError("The file's name is no UTF-8.", "Rename it, or the folder that it is in.") from None
    except OSError as error:
        raise _unreadable(error) from None
    refused = judge(size, signature, declared, policy.media_types.documents)
    if size > policy.limits.source_bytes:
        refused = Reason.PAYLOAD_TOO_LARGE
    source = Source(sha256=_NOT_YET, bytes=size, media_type=signature.media_type, pages=None, encrypted=None)
    return _Admitted(source=source, refused=refused)


def _hash(file: Path) -> tuple[str, int, float]:
    """Digest and bytes of the file, and the milliseconds that took. Raises UsageError where it cannot be read."""
    began = time.monotonic()
    digest, size, piece = hashlib.sha256(), 0, bytearray(_PIECE)
    try:
        with file.open("rb", buffering=0) as stream:
            while count := stream.readinto(piece):
                digest.update(memoryview(piece)[:count])
                size += count
    except OSError as error:
        raise _unreadable(error) from None
    return digest.hexdigest(), size, _milliseconds(began)


def _unreadable(error: OSError) -> UsageError:
    return UsageError(f"The file cannot be read ({error.strerror}).", "Check its permissions.")


def _prepare(out: Path) -> Path:
    try:
        out.mkdir(parents=True, exist_ok=True)
        rmtree(mkdtemp(prefix=".reading-", dir=out))
        with suppress(FileNotFoundError):
            (out / REPORT_FILE).unlink()
    except OSError as error:
        raise UsageError(
            f"The folder for the pictures cannot be written ({error.strerror}).", "Name another."
        ) from None
    return out.absolute()


def _write_report(folder: Path, report: Extraction) -> None:
    unfinished = folder / f".{REPORT_FILE}"
    unfinished.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
    unfinished.replace(folder / REPORT_FILE)


def _milliseconds(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)
