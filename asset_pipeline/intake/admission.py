"""Taking documents in: each settled upload of a month becomes a job, or is said to repeat one.

The bytes are streamed once, into a private file, while they are hashed and judged; then they are stored for good;
then one transaction records source, revision, job and what became of the upload. A crash in between leaves stored
bytes that nothing names, and the upload waiting. A document that may not come in becomes a job that failed
permanently, so that it has a manifest like every other; one that is too large is hashed but not stored. Bytes that
were stored before are read once more, and put right where they are not what their name says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from pathlib import Path

from sqlalchemy import Connection, select

from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import engine_for, extractor_version, load_engine
from asset_pipeline.installation import Installation
from asset_pipeline.intake.deferral import FRESH_SECONDS, allowance_of
from asset_pipeline.intake.install_key import install_key
from asset_pipeline.intake.inventory import Inventory, take_inventory
from asset_pipeline.intake.keys import open_months
from asset_pipeline.intake.reading import read_upload, refusal
from asset_pipeline.intake.registration import Extractor, Outcome, register
from asset_pipeline.ledger.deletions import lock_source
from asset_pipeline.ledger.identity import report_id
from asset_pipeline.ledger.schema import jobs, source_documents
from asset_pipeline.ledger.uploads import Upload
from asset_pipeline.storage.store import object_key
from asset_pipeline.validation.documents import Signature
from asset_pipeline.work.workplace import private_workplace

Progress = Callable[[str, int, int], None]
"""Called with the stage (``settle`` or ``admit``), how much of it is done, and how much there is."""

PATIENCE = 3
"""For how many settle times a run started by hand waits for files that keep changing."""


@dataclass(slots=True)
class Admission:
    """What became of a month's uploads in one go. ``job_ids`` are the jobs that are new, refused ones included.

    ``requeued`` uploads repeat bytes whose job was given up, and which is worked again; ``deferred`` ones stay in the
    inbox until less of their collection is queued.
    """

    admitted: int = 0
    duplicates: int = 0
    requeued: int = 0
    refused: int = 0
    rejected: int = 0
    waiting: int = 0
    deferred: int = 0
    job_ids: list[str] = field(default_factory=list)


def admit_month(
    inst: Installation,
    month: str,
    now: Callable[[], datetime],
    *,
    wait: bool,
    progress: Progress | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> Admission:
    """Take in what is new in the inbox of ``month``. With ``wait``, let files settle first.

    Safe to repeat and to run twice at once. Raises UsageError for a month that takes no documents, StorageError
    when the inbox, the sources or the ledger are away; what was admitted before that stays admitted.
    """
    months = open_months(inst.settings, now())
    if month not in months:
        raise UsageError(
            f"The month {month!r} takes no documents.", f"It lies between {months.first} and {months.last}."
        )
    tell = progress or _silent
    inventory = _settle(inst, month, now, tell, sleep) if wait else take_inventory(inst, now(), month)
    admission = Admission(rejected=len(inventory.rejected), waiting=len(inventory.waiting))
    admission.deferred = len(inventory.deferred.get(month, []))
    settled, refused = inventory.settled.get(month, []), inventory.refused.get(month, [])
    if not settled and not refused:
        return admission
    extractors = _Extractors(inst)
    key = install_key(inst.settings)
    due = list(_in_turns(settled + _allowed_now(inst, refused, extractors)))
    allowance = allowance_of(inst, FRESH_SECONDS)
    for done, upload in enumerate(due):
        tell("admit", done, len(due))
        if not allowance.takes(upload):
            admission.deferred += 1
            continue
        _count(admission, _admit_upload(inst, upload, key, extractors, now))
    tell("admit", len(due), len(due))
    return admission


def _in_turns(due: Sequence[Upload]) -> Iterator[Upload]:
    """One of each collection, then the next of each: a small collection waits for no bulk import."""
    of_collections: dict[str | None, list[Upload]] = {}
    for upload in due:
        of_collections.setdefault(upload.collection, []).append(upload)
    for turn in zip_longest(*of_collections.values()):
        yield from (upload for upload in turn if upload is not None)


@dataclass(slots=True)
class _Extractors:
    """What new jobs are queued for: the engine of the settings for PDF, their own for office files."""

    inst: Installation
    _known: dict[str, Extractor] = field(default_factory=dict)

    def of(self, media_type: str | None) -> Extractor:
        name = engine_for(media_type, self.inst.settings.engine)
        if name not in self._known:
            self._known[name] = Extractor(name, extractor_version(load_engine(name), self.inst.policy))
        return self._known[name]


def _settle(
    inst: Installation, month: str, now: Callable[[], datetime], tell: Progress, sleep: Callable[[float], None]
) -> Inventory:
    """The inventory once everything in it has stayed the same long enough, or patience has run out."""
    settle = timedelta(seconds=inst.settings.settle_seconds)
    deadline = now() + PATIENCE * settle
    inventory = take_inventory(inst, now(), month)
    while inventory.waiting and now() < deadline:
        settled = len(inventory.settled.get(month, []))
        tell("settle", settled, settled + len(inventory.waiting))
        earliest = min(upload.first_seen_at for upload in inventory.waiting) + settle
        sleep(max((earliest - now()).total_seconds(), 0.05))
        inventory = take_inventory(inst, now(), month)
    return inventory


def _allowed_now(inst: Installation, refused: Sequence[Upload], extractors: _Extractors) -> list[Upload]:
    """Of uploads that were refused at the door, those that the policy of today lets in."""
    if not refused:
        return []
    query = (
        select(
            jobs.c.job_id, jobs.c.extractor_version, source_documents.c.media_type, source_documents.c.signature_offset
        )
        .join(source_documents, source_documents.c.sha256 == jobs.c.source_hash)
        .where(jobs.c.job_id.in_({upload.job_id for upload in refused}))
    )
    with inst.ledger.read() as conn:
        signatures = {
            job: Signature(media_type, offset)
            for job, version, media_type, offset in conn.execute(query)
            if version != extractors.of(media_type).version
        }
    return [
        upload
        for upload in refused
        if upload.job_id in signatures and refusal(upload, signatures[upload.job_id], inst.policy) is None
    ]


def _admit_upload(
    inst: Installation, upload: Upload, key: bytes, extractors: _Extractors, now: Callable[[], datetime]
) -> tuple[Outcome, str] | None:
    """Read, store and record one upload: outcome and job id; None when somebody else recorded it meanwhile."""
    with private_workplace(inst.settings.work_folder) as place:
        facts = read_upload(inst.inbox, upload, place.document, inst.policy)
        if facts is None:
            return Outcome.WAITING, ""
        repaired = facts.stored and _store_source(inst, facts.sha256, place.document)
        report = report_id(key, str(upload.collection), str(upload.month), str(upload.name))
        extractor = extractors.of(facts.signature.media_type)
        with inst.ledger.begin() as tx:
            if facts.stored:
                _hold_source(tx, inst, facts.sha256, place.document)
            return register(tx, upload, facts, report, extractor, inst.policy, now(), repaired=repaired)


def _store_source(inst: Installation, sha256: str, document: Path) -> bool:
    """Store the bytes; True when the ledger says that they are there, but they were altered or gone."""
    query = select(source_documents.c.stored).where(source_documents.c.sha256 == sha256)
    with inst.ledger.read() as conn:
        known = bool(conn.execute(query).scalar())
    key = object_key(sha256)
    written = inst.sources.put_once(key, document, sha256) or inst.sources.repair(key, document, sha256)
    return known and written


def _hold_source(tx: Connection, inst: Installation, sha256: str, document: Path) -> None:
    """Put the bytes again if retention deleted them since they were found, and keep it from doing so until the end."""
    lock_source(tx, sha256)
    if not inst.sources.exists(object_key(sha256)):
        inst.sources.put_once(object_key(sha256), document, sha256)


def _count(admission: Admission, result: tuple[Outcome, str] | None) -> None:
    match result:
        case Outcome.WAITING, _:
            admission.waiting += 1
        case Outcome.DUPLICATE, _:
            admission.duplicates += 1
        case Outcome.REQUEUED, _:
            admission.requeued += 1
        case Outcome.ADMITTED, job_id:
            admission.admitted += 1
            admission.job_ids.append(job_id)
        case Outcome.REFUSED, job_id:
            admission.refused += 1
            admission.job_ids.append(job_id)


def _silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""
