"""The one transaction that makes an upload a job, or the duplicate of one.

Source, revision, job and upload change together or not at all. Same bytes under the same report: one job. Changed
bytes under the same name: a new revision that names its parent. A newer extractor alone makes no new job
(REQUIREMENTS R2.1), unless the last one failed and somebody sends the document again. Bytes whose job was given
up are worked again when they are sent again: by the same job, requeued, or by one of the newer extractor. Bytes that
are sent again after their report has expired are a new admission: a new job with deadlines of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select, update

from asset_pipeline.intake.reading import Facts
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.jobs import NewJob, queue_job, refuse_job, use_policy
from asset_pipeline.ledger.requeue import requeue_job, requeue_readers
from asset_pipeline.ledger.schema import jobs, revisions, source_documents
from asset_pipeline.ledger.statements import insert_new
from asset_pipeline.ledger.uploads import Upload, UploadState, close_upload, lock_upload
from asset_pipeline.policy import Policy


class Outcome(StrEnum):
    """What became of an upload."""

    ADMITTED = "admitted"
    DUPLICATE = "duplicate"
    REQUEUED = "requeued"
    REFUSED = "refused"
    WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Extractor:
    """What new jobs are queued for."""

    engine: str
    version: str


def register(
    tx: Connection,
    upload: Upload,
    facts: Facts,
    report_id: str,
    extractor: Extractor,
    policy: Policy,
    now: datetime,
    *,
    repaired: bool = False,
) -> tuple[Outcome, str] | None:
    """Record ``upload``; outcome and job id, or None when somebody else recorded it meanwhile.

    ``repaired``: the stored bytes were altered or gone, and were put right with those of this upload.
    """
    locked = lock_upload(tx, upload)
    if locked is None or locked.state is not upload.state:
        return None
    _record_source(tx, facts, now)
    revision, parent = _record_revision(tx, upload, facts.sha256, report_id, now)
    last = _last_job(tx, report_id, facts.sha256)
    if repaired:
        payload = {"source_hash": facts.sha256, "bytes": facts.bytes}
        record_event(tx, "source_repaired", month=upload.month, payload=payload, now=now)
    if last is not None and last.expired_at is not None:
        last = None
    if last is not None and (last.extractor_version == extractor.version or last.state not in _FAILED):
        again = facts.reason is None and requeue_job(tx, last.job_id, now)
        outcome, job_id = Outcome.REQUEUED if again else Outcome.DUPLICATE, str(last.job_id)
    else:
        outcome = Outcome.REFUSED if facts.reason else Outcome.ADMITTED
        use_policy(tx, policy, now)
        job_id, created = queue_job(
            tx,
            NewJob(
                report_id=report_id,
                month=str(upload.month),
                collection=str(upload.collection),
                revision=revision,
                parent_revision=parent,
                source_hash=facts.sha256,
                engine=extractor.engine,
                extractor_version=extractor.version,
                policy_digest=policy.digest,
                correlation_id=str(upload.correlation_id),
                working_until=now + timedelta(days=policy.retention.working_days),
                archive_until=now + timedelta(days=policy.retention.archive_days),
            ),
            now,
        )
        if facts.reason:
            refuse_job(tx, job_id, facts.reason, now)
        elif not created:  # of the time before another extractor was tried
            outcome = Outcome.REQUEUED if requeue_job(tx, job_id, now) else Outcome.DUPLICATE
    if repaired:
        requeue_readers(tx, facts.sha256, now)
    close_upload(
        tx,
        locked,
        UploadState.DUPLICATE if outcome in (Outcome.DUPLICATE, Outcome.REQUEUED) else UploadState.ADMITTED,
        source_hash=facts.sha256,
        report_id=report_id,
        job_id=job_id,
        reason=facts.reason,
        now=now,
    )
    record_event(
        tx,
        f"upload_{outcome.value}",
        month=upload.month,
        job_id=job_id,
        payload={
            "upload_id": upload.upload_id,
            "report_id": report_id,
            "revision": revision,
            "source_hash": facts.sha256,
            "bytes": facts.bytes,
            "reason": facts.reason.value if facts.reason else None,
        },
        now=now,
    )
    return outcome, job_id


_FAILED = ("failed_permanently", "dead_lettered")


def _record_source(tx: Connection, facts: Facts, now: datetime) -> None:
    row = {
        "sha256": facts.sha256,
        "bytes": facts.bytes,
        "media_type": facts.signature.media_type,
        "signature_offset": facts.signature.offset,
        "stored": int(facts.stored),
        "admitted_at": now,
    }
    insert_new(tx, source_documents, [row])
    if facts.stored:
        # It may have been too large under an earlier policy.
        absent = source_documents.c.sha256 == facts.sha256, source_documents.c.stored == 0
        tx.execute(update(source_documents).where(*absent).values(stored=1))


def _record_revision(
    tx: Connection, upload: Upload, source_hash: str, report_id: str, now: datetime
) -> tuple[int, int | None]:
    """Revision and parent of these bytes in their report: a known one, or the next."""
    known = tx.execute(
        select(revisions.c.revision, revisions.c.parent_revision).where(
            revisions.c.report_id == report_id, revisions.c.source_hash == source_hash
        )
    ).one_or_none()
    if known is not None:
        return known.revision, known.parent_revision
    parent = tx.execute(select(func.max(revisions.c.revision)).where(revisions.c.report_id == report_id)).scalar()
    revision = (parent or 0) + 1
    tx.execute(
        insert(revisions).values(
            report_id=report_id,
            revision=revision,
            source_hash=source_hash,
            parent_revision=parent,
            month=upload.month,
            collection=upload.collection,
            upload_id=upload.upload_id,
            created_at=now,
        )
    )
    return revision, parent


def _last_job(tx: Connection, report_id: str, source_hash: str) -> Row[Any] | None:
    return tx.execute(
        select(jobs.c.job_id, jobs.c.state, jobs.c.extractor_version, jobs.c.expired_at)
        .where(jobs.c.report_id == report_id, jobs.c.source_hash == source_hash)
        .order_by(jobs.c.queued_at.desc(), jobs.c.job_id)
        .limit(1)
    ).one_or_none()
