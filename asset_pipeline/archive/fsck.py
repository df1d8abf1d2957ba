"""Proves an archive: every record has its bytes, every byte that is named hashes to its name, every sum adds up.

Unlike the quick look of ``audit`` it reads and hashes everything again: sources, pictures, manifests and their earlier
editions, of every job of the months in question, replaced ones included. Finds only; putting things right belongs in
``work.repair``, because that needs decoders. Files that nothing names are told apart: they are no fault (``sweep``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice

from sqlalchemy import RowMapping, select

from asset_pipeline.archive.content import read_report
from asset_pipeline.archive.manifest import edition_key, manifest_key, stored_digest
from asset_pipeline.archive.sweep import Unnamed, unnamed_files
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading, references
from asset_pipeline.ledger.references import JobRef
from asset_pipeline.ledger.schema import manifests
from asset_pipeline.storage.store import Store, holds_digest, object_key

BATCH = 1_000
"""Files handed to the threads at a time: their number does not grow with the archive."""

Progress = Callable[[str, int, int], None]


class Fault(StrEnum):
    """What can be wrong."""

    PICTURE_MISSING = "picture_missing"
    PICTURE_DAMAGED = "picture_damaged"
    PICTURE_DELETED = "picture_deleted"
    SOURCE_MISSING = "source_missing"
    SOURCE_DAMAGED = "source_damaged"
    MANIFEST_MISSING = "manifest_missing"
    MANIFEST_DAMAGED = "manifest_damaged"
    MANIFEST_OUTDATED = "manifest_outdated"
    RECEIPTS_DIFFER = "receipts_differ"
    PAGES_UNACCOUNTED = "pages_unaccounted"


_REPAIR = "Run fsck with --repair: the document is read again."
_REBUILD = "Run fsck with --repair: the ledger gives the same bytes again."
_BACKUP = "Restore it from a backup."

WORDS: Mapping[Fault, tuple[str, str]] = {
    Fault.PICTURE_MISSING: ("A picture is gone from the archive.", _REPAIR),
    Fault.PICTURE_DAMAGED: ("The bytes of a picture are not those that were archived.", _REPAIR),
    Fault.PICTURE_DELETED: ("A picture is recorded as deleted although a report names it.", _REPAIR),
    Fault.SOURCE_MISSING: ("An admitted document is gone.", "Restore it from a backup, or drop it in again."),
    Fault.SOURCE_DAMAGED: ("The bytes of an admitted document are not those that came in.", _BACKUP),
    Fault.MANIFEST_MISSING: ("A manifest is gone from the archive.", _REBUILD),
    Fault.MANIFEST_DAMAGED: ("A manifest is not the one that was written.", _REBUILD),
    Fault.MANIFEST_OUTDATED: (
        "The newest manifest does not say what the ledger says.",
        "Run the month; where a run is at it, that writes the manifest at its end.",
    ),
    Fault.RECEIPTS_DIFFER: ("Receipts and placements contradict each other.", "Keep the ledger; tell the developers."),
    Fault.PAGES_UNACCOUNTED: ("Pages do not add up.", "Keep the ledger; tell the developers."),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. ``subject``: digest of a file, edition of a manifest, or a count."""

    fault: Fault
    month: str
    report_id: str
    job_id: str
    subject: str
    repaired: bool = False
    detail: str = ""

    @property
    def what(self) -> str:
        """In words."""
        return f"{WORDS[self.fault][0]} {self.detail}".rstrip()

    @property
    def remedy(self) -> str:
        """What a person can do."""
        return "" if self.repaired else WORDS[self.fault][1]


@dataclass(slots=True)
class Proof:
    """What was looked at, and what was found. ``bytes`` were read and hashed."""

    months: set[str] = field(default_factory=set)
    jobs: int = 0
    pages: int = 0
    pictures: int = 0
    sources: int = 0
    manifests: int = 0
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    unnamed: list[Unnamed] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong (any more)."""
        return all(found.repaired for found in self.findings)


def prove(
    inst: Installation, months: Collection[str] | None = None, *, workers: int = 8, progress: Progress | None = None
) -> Proof:
    """Read the archive again (of ``months``) and compare it with the ledger. Raises StorageError when one is away.

    ``workers`` files are read at a time. Files that nothing names are listed only when all months are looked at.
    """
    with inst.ledger.read() as conn:
        found = references.job_refs(conn, months)
    proof = Proof(months={job.month for job in found}, jobs=len(found))
    tell = progress or _unseen
    pictures, sources = _look_at_records(inst, found, proof, tell)
    with ThreadPoolExecutor(workers, thread_name_prefix="fsck") as threads:
        _Bytes(inst.archive, threads, proof, tell).prove(
            "pictures", pictures, (Fault.PICTURE_MISSING, Fault.PICTURE_DAMAGED)
        )
        _Bytes(inst.sources, threads, proof, tell).prove(
            "sources", sources, (Fault.SOURCE_MISSING, Fault.SOURCE_DAMAGED)
        )
        _prove_manifests(inst, threads, proof, tell)
    proof.pictures, proof.sources = len(pictures), len(sources)
    if months is None and (pictures or proof.manifests):  # else there may be no archive yet
        proof.unnamed = list(unnamed_files(inst))
    proof.findings.sort(key=lambda row: (row.month, row.report_id, row.fault, row.subject))
    return proof


_Files = dict[str, tuple[int, JobRef]]
"""Bytes of a file by its digest, and the first job that names it."""


def _look_at_records(inst: Installation, found: list[JobRef], proof: Proof, tell: Progress) -> tuple[_Files, _Files]:
    """Sums and receipts of each job; the files to hash."""
    pictures: _Files = {}
    for done, job in enumerate(found, start=1):
        with inst.ledger.read() as conn:
            wrong = len(references.unaccounted_pages(conn, job))
            differing = references.contradictions(conn, job.job_id)
            files = {} if job.expired else references.files_of(conn, job.job_id)
        proof.pages += (job.pages or 0) if job.state == "succeeded" else 0
        if wrong:
            proof.findings.append(_of_job(Fault.PAGES_UNACCOUNTED, job, str(wrong)))
        if differing:
            proof.findings.append(_of_job(Fault.RECEIPTS_DIFFER, job, str(differing)))
        for digest, size in files.items():
            if size is None:
                proof.findings.append(_of_job(Fault.PICTURE_DELETED, job, digest))
            else:
                pictures.setdefault(digest, (size, job))
        tell("records", done, len(found))
    by_source = {job.source_hash: job for job in reversed(found) if not job.expired}
    with inst.ledger.read() as conn:
        kept = references.stored_sources(conn, by_source)
    return pictures, {digest: (size, by_source[digest]) for digest, size in kept.items()}


@dataclass(frozen=True, slots=True)
class _Bytes:
    """Hashes content-addressed files of one store."""

    store: Store
    threads: ThreadPoolExecutor
    proof: Proof
    tell: Progress

    def prove(self, stage: str, files: _Files, faults: tuple[Fault, Fault]) -> None:
        """Add a finding for each file that is gone (the first of ``faults``) or altered (the second)."""
        waiting, done = iter(sorted(files)), 0
        while batch := list(islice(waiting, BATCH)):
            for digest, right in zip(batch, self.threads.map(self._is_right, batch), strict=True):
                size, job = files[digest]
                done += 1
                self.tell(stage, done, len(files))
                if right:
                    self.proof.bytes += size
                else:
                    gone = not self.store.exists(object_key(digest))
                    self.proof.findings.append(_of_job(faults[0] if gone else faults[1], job, digest))

    def _is_right(self, digest: str) -> bool:
        return holds_digest(self.store, object_key(digest), digest)


def _prove_manifests(inst: Installation, threads: ThreadPoolExecutor, proof: Proof, tell: Progress) -> None:
    for month in sorted(proof.months):
        with inst.ledger.read() as conn:
            query = select(manifests).where(manifests.c.month == month)
            editions = list(conn.execute(query.order_by(manifests.c.report_id, manifests.c.edition)).mappings())
            documents = reading.documents_of_month(conn, month)
        newest = {row["report_id"]: row for row in editions}
        keys = [_key(row, newest) for row in editions]
        digests = threads.map(lambda key: stored_digest(inst, key), keys)
        for row, digest in zip(editions, digests, strict=True):
            proof.manifests += 1
            if digest != row["digest"]:
                fault = Fault.MANIFEST_MISSING if digest is None else Fault.MANIFEST_DAMAGED
                proof.findings.append(
                    Finding(fault, month, row["report_id"], row["job_id"], f"edition {row['edition']}")
                )
        for done, document in enumerate(documents, start=1):
            proof.findings += _outdated(inst, document, newest.get(document.report_id))
            tell(f"manifests of {month}", done, len(documents))


def _key(row: RowMapping, newest: Mapping[str, RowMapping]) -> str:
    if newest[row["report_id"]]["edition"] == row["edition"]:
        return manifest_key(row["month"], row["report_id"])
    return edition_key(row["month"], row["report_id"], row["edition"])


def _outdated(inst: Installation, document: reading.DocumentRow, latest: RowMapping | None) -> Iterator[Finding]:
    """A finding when a settled report has no manifest, or one that says something else than the ledger."""
    try:
        with inst.ledger.read() as conn:
            report = read_report(conn, document.job_id)
    except IntegrityError:
        return  # it names a picture that is told as deleted already
    if report is None:
        return
    if not report.is_told_by(latest):
        edition = "none" if latest is None else f"edition {latest['edition']}"
        yield Finding(Fault.MANIFEST_OUTDATED, document.month, document.report_id, document.job_id, edition)


def _of_job(fault: Fault, job: JobRef, subject: str) -> Finding:
    return Finding(fault, job.month, job.report_id, job.job_id, subject)


def _unseen(_stage: str, _done: int, _total: int) -> None:
    return None
