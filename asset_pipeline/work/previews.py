"""Makes the small images of a gallery in decoder processes: what they decode was written by strangers.

Pictures go to a decoder by the bundle, since a process costs more than a thumbnail. A bundle or range whose decoder
is lost is halved until the culprit is alone; that one is left without a preview, and no run fails for it. What the
images are for belongs in ``archive.gallery``, how they are made in ``extraction.previews``.
"""

from __future__ import annotations

import hashlib
import io
import logging
import tarfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from asset_pipeline.archive.gallery.publish import PageImage
from asset_pipeline.errors import IntegrityError
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.model import Extraction, Placement
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.inputs import fetch_source
from asset_pipeline.work.month import worker_count
from asset_pipeline.work.workplace import Workplace, private_workplace

logger = logging.getLogger(__name__)

ENGINES = {
    "thumbnails": "asset_pipeline.extraction.previews:Thumbnails",
    "drawn_pages": "asset_pipeline.extraction.previews:DrawnPages",
    "blank_pages": "asset_pipeline.extraction.previews:BlankPages",
}
"""By name only: their libraries decode what strangers wrote and are imported in decoder processes, never here."""

BUNDLE_PICTURES = 64
BUNDLE_BYTES = 64 * 1024 * 1024
PAGES_AT_ONCE = 40
SECONDS = 60.0
"""Deadline of one bundle or range of pages."""

THREADS_A_DECODER = 4
"""While one thread waits for a decoder, the others wait for the store."""

LOST_PAGES = 3
"""A document that costs this many decoders gets no further page drawn."""


@contextmanager
def open_previews(inst: Installation, workers: int | None = None) -> Iterator[DecoderPreviews]:
    """A maker of previews with decoder processes of its own."""
    count = worker_count(inst, workers)
    with (
        ThreadPoolExecutor(THREADS_A_DECODER * count, thread_name_prefix="preview") as threads,
        DecoderPool(count, inst.policy, engines=ENGINES, warm=list(ENGINES), caged=inst.settings.sandbox) as pool,
    ):
        yield DecoderPreviews(inst, pool, threads)


class DecoderPreviews:
    """Satisfies ``archive.gallery.publish.Previews``."""

    def __init__(self, inst: Installation, pool: DecoderPool, threads: ThreadPoolExecutor) -> None:
        self._inst = inst
        self._pool = pool
        self._threads = threads

    def thumbnails(self, displays: dict[str, int], keep: Callable[[str, Path, str], None]) -> None:
        """Thumbnails of display renditions, by the bundle."""
        calls = [self._threads.submit(self._bundle, bundle, keep) for bundle in _bundles(displays)]
        for call in calls:
            call.result()

    def pages(self, source_hash: str, wanted: Sequence[tuple[int, bool]], keep: Callable[[PageImage], None]) -> None:
        """Previews of pages of one source; none when the source is gone (its working time may be over)."""
        with private_workplace(self._inst.settings.work_folder) as place:
            try:
                fetch_source(self._inst, source_hash, place)
            except IntegrityError:
                return
            left = [LOST_PAGES]
            calls = [
                self._threads.submit(self._range, source_hash, place.document, numbers, drawn, keep, left)
                for numbers, drawn in _ranges(wanted)
            ]
            for call in calls:
                call.result()

    def _bundle(self, digests: list[str], keep: Callable[[str, Path, str], None]) -> None:
        with private_workplace(self._inst.settings.work_folder) as place:
            digests = self._write_bundle(digests, place.document)
            if not digests:
                return
            try:
                answer = self._extract("thumbnails", place, place.document, 1, 1)
            except DecoderLost as lost:
                if len(digests) == 1:
                    logger.warning("no thumbnail of %s: %s", digests[0], lost.reason.value)
                    return
            else:
                for _, number, row in _numbered(answer):
                    if row.picture and number <= len(digests):
                        keep(digests[number - 1], place.out / f"{row.picture}.webp", row.picture)
                return
        half = len(digests) // 2
        self._bundle(digests[:half], keep)
        self._bundle(digests[half:], keep)

    def _write_bundle(self, digests: list[str], target: Path) -> list[str]:
        """Write the pictures that are there into one file; their digests in its order."""
        written = []
        with tarfile.open(target, "w:") as bundle:
            for digest in digests:
                try:
                    with self._inst.archive.open(object_key(digest)) as stream:
                        body = stream.read()
                except KeyError:
                    continue
                member = tarfile.TarInfo(digest)
                member.size = len(body)
                bundle.addfile(member, io.BytesIO(body))
                written.append(digest)
        return written

    def _range(
        self,
        source_hash: str,
        document: Path,
        numbers: list[int],
        drawn: bool,
        keep: Callable[[PageImage], None],
        left: list[int],
    ) -> None:
        if left[0] <= 0:
            return
        with private_workplace(self._inst.settings.work_folder) as place:
            try:
                engine = "drawn_pages" if drawn else "blank_pages"
                answer = self._extract(engine, place, document, numbers[0], numbers[-1], source_hash)
            except DecoderLost as lost:
                left[0] -= len(numbers) == 1
                logger.warning("no preview of %d pages of %s: %s", len(numbers), source_hash, lost.reason.value)
            else:
                for page, _, row in _numbered(answer):
                    if row.picture:
                        file = place.out / f"{row.picture}.webp"
                        keep(PageImage(page, row.bbox[2], row.bbox[3], drawn, file, row.picture))
                return
        if len(numbers) > 1:
            half = len(numbers) // 2
            for part in (numbers[:half], numbers[half:]):
                self._range(source_hash, document, part, drawn, keep, left)

    def _extract(
        self, engine: str, place: Workplace, document: Path, first: int, last: int, sha256: str | None = None
    ) -> Extraction:
        with document.open("rb") as stream:
            digest = sha256 or hashlib.file_digest(stream, "sha256").hexdigest()
        request = Request(
            document=document,
            out=place.out,
            policy=self._inst.policy,
            source_sha256=digest,
            source_bytes=document.stat().st_size,
            media_type=None,
            first=first,
            last=last,
        )
        return self._pool.extract(engine, request, seconds=SECONDS)


def _numbered(extraction: Extraction) -> Iterator[tuple[int, int, Placement]]:
    """Page, number and row of every preview in an answer."""
    for page in extraction.pages:
        for row in page.placements:
            yield page.page, int(row.name.rpartition("-")[2]), row


def _bundles(displays: dict[str, int]) -> Iterator[list[str]]:
    bundle: list[str] = []
    size = 0
    for digest, count in displays.items():
        if bundle and (len(bundle) == BUNDLE_PICTURES or size + count > BUNDLE_BYTES):
            yield bundle
            bundle, size = [], 0
        bundle.append(digest)
        size += count
    if bundle:
        yield bundle


def _ranges(wanted: Sequence[tuple[int, bool]]) -> Iterator[tuple[list[int], bool]]:
    """Runs of consecutive pages that are made alike, none longer than ``PAGES_AT_ONCE``."""
    ordered = sorted(wanted)
    for (drawn, _), group in groupby(enumerate(ordered), lambda entry: (entry[1][1], entry[1][0] - entry[0])):
        numbers = [number for _, (number, _) in group]
        for at in range(0, len(numbers), PAGES_AT_ONCE):
            yield numbers[at : at + PAGES_AT_ONCE], drawn
