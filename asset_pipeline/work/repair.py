"""Puts right what ``archive.fsck`` found, where the source or the ledger gives the very same bytes again.

A picture that is gone or damaged: the pages that draw it are read again in a decoder process, as they were read the
first time (same range, policy and extractor version), and what has the right digest is put in its place. When the
same extractor gives other bytes, nothing is put: that is an incident, recorded. A manifest is built from the ledger.
A source can only come from a backup.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from sqlalchemy import RowMapping, select

from asset_pipeline.archive.fsck import Fault, Finding, Proof
from asset_pipeline.archive.manifest import edition_key, latest_edition, rebuild, restore_current
from asset_pipeline.errors import IntegrityError
from asset_pipeline.extraction.engine import Request, extractor_version, load_engine
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import references
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.jobs import job_of
from asset_pipeline.ledger.objects import lock_object, mark_stored
from asset_pipeline.ledger.schema import manifests
from asset_pipeline.model import Extraction, Picture
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import fetch_source, job_input
from asset_pipeline.work.workplace import private_workplace

Progress = Callable[[str, int, int], None]

_PICTURES = frozenset({Fault.PICTURE_MISSING, Fault.PICTURE_DAMAGED, Fault.PICTURE_DELETED})
_MANIFESTS = frozenset({Fault.MANIFEST_MISSING, Fault.MANIFEST_DAMAGED})

MOST_NAMED = 20
"""Pictures that an incident names: enough to find them all."""

OTHER_BYTES = "Reading the document again gives other bytes; nothing was put in its place."
OTHER_EXTRACTOR = "The extractor that read it is not installed any more."
NO_SOURCE = "Its document cannot be read again."


@dataclass(frozen=True, slots=True)
class _Range:
    """Pages of one job to read again."""

    job_id: str
    first: int
    last: int | None


def repair(
    inst: Installation, proof: Proof, *, workers: int = 2, progress: Progress | None = None, clock: Clock = utc_now
) -> Proof:
    """``proof`` with its findings marked as repaired, or with why they could not be. Raises StorageError."""
    lost = {found.subject for found in proof.findings if found.fault in _PICTURES}
    outcomes = _Pictures(inst, lost, clock, progress).repair(workers) if lost else {}
    findings = []
    for found in proof.findings:
        if found.fault in _PICTURES:
            why = outcomes[found.subject]
            found = replace(found, repaired=not why, detail=why)
        elif found.fault in _MANIFESTS:
            found = _repair_manifest(inst, found, clock())
        findings.append(found)
    return replace(proof, findings=findings)


class _Pictures:
    """Reads documents again until every lost picture is there or every document that shows it was tried."""

    def __init__(self, inst: Installation, lost: set[str], clock: Clock, progress: Progress | None) -> None:
        self._inst = inst
        self._clock = clock
        self._progress = progress or _unseen
        self._why = dict.fromkeys(lost, NO_SOURCE)
        self._named: dict[_Range, set[tuple[str, str]]] = defaultdict(set)
        """Of each range: placements with the digests that they should have."""

    def repair(self, workers: int) -> dict[str, str]:
        """Why each picture could not be put back; nothing for one that was."""
        with self._inst.ledger.read() as conn:
            for digest, mention in references.mentions(conn, self._why):
                place = _Range(mention.job_id, mention.first_page, mention.last_page)
                self._named[place].add((mention.name, digest))
        ranges = list(self._named)
        caged = self._inst.settings.sandbox
        with (
            ThreadPoolExecutor(workers) as threads,
            DecoderPool(workers, self._inst.policy, caged=caged) as pool,
        ):
            for done, _ in enumerate(threads.map(lambda place: self._read_again(pool, place), ranges), start=1):
                self._progress("read again", done, len(ranges))
        return self._why

    def _read_again(self, pool: DecoderPool, place: _Range) -> None:
        wanted = {digest for _, digest in self._named[place] if self._why[digest]}
        if not wanted:
            return
        with self._inst.ledger.read() as conn:
            job = job_of(conn, place.job_id)
        try:
            with private_workplace(self._inst.settings.work_folder) as work:
                source, policy = job_input(self._inst, job["source_hash"], job["policy_digest"])
                if extractor_version(load_engine(job["engine"]), policy) != job["extractor_version"]:
                    self._explain(wanted, OTHER_EXTRACTOR)
                    return
                fetch_source(self._inst, job["source_hash"], work)
                request = Request(
                    document=work.document,
                    out=work.out,
                    policy=policy,
                    source_sha256=job["source_hash"],
                    source_bytes=source.bytes,
                    media_type=source.media_type,
                    first=place.first,
                    last=place.last,
                    figures=policy.figures.enabled,
                )
                told = pool.extract(job["engine"], request, seconds=policy.limits.document_seconds)
                self._put_back(told, work.out, wanted)
        except (IntegrityError, DecoderLost):
            return  # the source is gone or altered, and told as such
        if told.outcome == "ok" and (other := {digest for digest in wanted if self._why[digest]}):
            self._explain(other, OTHER_BYTES)
            self._record_conflict(job, place, told, other)

    def _explain(self, digests: Iterable[str], why: str) -> None:
        for digest in digests:
            if self._why[digest]:
                self._why[digest] = why

    def _put_back(self, told: Extraction, folder: Path, wanted: set[str]) -> None:
        for picture in told.pictures:
            if picture.sha256 in wanted:
                self._put(picture, folder / picture.file)
                self._why[picture.sha256] = ""

    def _put(self, picture: Picture, file: Path) -> None:
        """While the object's row is held, as everything that puts what was deleted."""
        now = self._clock()
        with self._inst.ledger.begin() as tx:
            state = lock_object(tx, picture.sha256)
            replaced = self._inst.archive.repair(object_key(picture.sha256), file, picture.sha256)
            if state != "stored":
                mark_stored(tx, picture, now)
            payload = {"sha256": picture.sha256, "bytes": picture.bytes, "state": state, "replaced": replaced}
            record_event(tx, "object_repaired", payload=payload, now=now)

    def _record_conflict(self, job: RowMapping, place: _Range, told: Extraction, other: set[str]) -> None:
        """The extractor is the same and the result is not: an incident that must not go unnoticed."""
        named = sorted((name, digest) for name, digest in self._named[place] if digest in other)
        found = {row.name: row.picture for page in told.pages for row in page.placements}
        payload = {
            "report_id": job["report_id"],
            "extractor_version": job["extractor_version"],
            "conflicts": len(named),
            "assets": [
                {"asset": name, "recorded": digest, "found": found.get(name)} for name, digest in named[:MOST_NAMED]
            ],
        }
        with self._inst.ledger.begin() as tx:
            record_event(
                tx, "repair_conflict", month=job["month"], job_id=job["job_id"], payload=payload, now=self._clock()
            )


def _unseen(_stage: str, _done: int, _total: int) -> None:
    return None


def _repair_manifest(inst: Installation, found: Finding, now: datetime) -> Finding:
    edition = int(found.subject.removeprefix("edition "))
    try:
        with inst.ledger.read() as conn:
            latest = latest_edition(conn, found.report_id)
        if latest is not None and latest["edition"] == edition:
            restore_current(inst, latest, now)
        else:
            _restore_edition(inst, found.report_id, edition, now)
    except IntegrityError as error:
        return replace(found, detail=f"{error.what} {error.remedy}")
    return replace(found, repaired=True)


def _restore_edition(inst: Installation, report_id: str, edition: int, now: datetime) -> None:
    """Put an earlier edition back."""
    query = select(manifests).where(manifests.c.report_id == report_id, manifests.c.edition == edition)
    with inst.ledger.read() as conn:
        row = conn.execute(query).mappings().one()
        body = rebuild(conn, row)
    inst.archive.put_current(edition_key(row["month"], report_id, edition), body)
    payload = {"report_id": report_id, "edition": edition, "digest": row["digest"]}
    with inst.ledger.begin() as tx:
        record_event(tx, "manifest_restored", month=row["month"], job_id=row["job_id"], payload=payload, now=now)
