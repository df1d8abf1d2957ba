"""Jobs: one a (report, bytes, extractor), from queued to one of three ends.

A transition is a conditional update: it names the states it may come from, and one that finds the job
elsewhere changes nothing and says so. How a running job succeeds belongs in ``completion``, its units
in ``units``, and the way back from an end in ``requeue``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import chain, count
from typing import Any

from sqlalchemy import Connection, RowMapping, select, update

from asset_pipeline.evidence.types import POLICY_CHANGED
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.identity import job_id_of, job_key
from asset_pipeline.ledger.schema import jobs, policies
from asset_pipeline.ledger.statements import insert_new
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

OPEN = ("queued", "running")
"""States in which something is still to be done; every other state is an end."""


@dataclass(frozen=True, slots=True)
class NewJob:
    """What is known when a job is queued. Deadlines are set once: no retry ever extends them."""

    report_id: str
    month: str
    collection: str
    revision: int
    parent_revision: int | None
    source_hash: str
    engine: str
    extractor_version: str
    policy_digest: str
    correlation_id: str
    working_until: datetime
    archive_until: datetime


def record_policy(tx: Connection, policy: Policy, now: datetime) -> bool:
    """Keep ``policy`` by its digest, so that every job can name the rules it was worked under. True when it is new.

    A new one is to be told with ``record_policy_change``.
    """
    row = {"digest": policy.digest, "body": policy.model_dump(mode="json"), "first_used_at": now}
    return insert_new(tx, policies, [row]) == 1


def use_policy(tx: Connection, policy: Policy, now: datetime) -> None:
    """Record ``policy`` for what is decided under it; its first use is an event."""
    if record_policy(tx, policy, now):
        record_policy_change(tx, policy, now)


def record_policy_change(tx: Connection, policy: Policy, now: datetime) -> None:
    """Record that ``policy`` is used for the first time, and which one was the newest before."""
    others = select(policies.c.digest).where(policies.c.digest != policy.digest)
    before = tx.execute(others.order_by(policies.c.first_used_at.desc(), policies.c.digest).limit(1)).scalar()
    facts = {"extraction_digest": policy.extraction_digest, "version": policy.version, "previous_digest": before}
    record_event(tx, POLICY_CHANGED, payload={"policy_digest": policy.digest} | facts, now=now)


def queue_job(tx: Connection, new: NewJob, now: datetime) -> tuple[str, bool]:
    """Queue a job, or find the one that these bytes, report and extractor already have: its id, and if it is new.

    One that has expired does not count: what comes in again is another job, under the next key.
    """
    key = _free_key(tx, job_key(new.report_id, new.source_hash, new.extractor_version))
    job_id = job_id_of(key)
    row = asdict(new) | {"job_id": job_id, "job_key": key, "state": "queued", "tries": 0, "queued_at": now}
    created = insert_new(tx, jobs, [row]) == 1
    if created:
        record_job(tx, "job_queued", job_id, now, {"revision": new.revision, "correlation_id": new.correlation_id})
    return job_id, created


def _free_key(tx: Connection, first: str) -> str:
    """``first``, or where that job has expired, the first of ``first:2``, ``first:3``… that has not."""
    for key in chain([first], (f"{first}:{life}" for life in count(2))):
        expired = select(jobs.c.job_id).where(jobs.c.job_key == key, jobs.c.expired_at.is_not(None))
        if tx.execute(expired).first() is None:
            return key
    raise AssertionError("unreachable")


def start_job(tx: Connection, job_id: str, *, pages: int | None, encrypted: str | None, now: datetime) -> bool:
    """queued → running. True when the job is running now; False, and nothing changed, when it has ended."""
    moved = _move(tx, job_id, ("queued",), state="running", pages=pages, encrypted=encrypted, started_at=now)
    return moved or job_of(tx, job_id)["state"] == "running"


def refuse_job(
    tx: Connection,
    job_id: str,
    reason: Reason,
    now: datetime,
    *,
    pages: int | None = None,
    encrypted: str | None = None,
) -> bool:
    """queued or running → failed_permanently. False, and nothing changed, when the job has ended."""
    known = {name: value for name, value in (("pages", pages), ("encrypted", encrypted)) if value is not None}
    return end_job(tx, job_id, "failed_permanently", "job_failed", now, reason, known)


def dead_letter_job(tx: Connection, job_id: str, reason: Reason, now: datetime) -> bool:
    """queued or running → dead_lettered. False, and nothing changed, when the job has ended."""
    return end_job(tx, job_id, "dead_lettered", "job_dead_lettered", now, reason)


def end_job(
    tx: Connection,
    job_id: str,
    state: str,
    event: str,
    now: datetime,
    reason: Reason | None = None,
    values: dict[str, Any] | None = None,
    payload: dict[str, Any] | None = None,
) -> bool:
    """Move an open job to its end, with its event. False, and nothing changed, when it has ended already."""
    code = reason.value if reason else None
    moved = _move(tx, job_id, OPEN, state=state, reason=code, finished_at=now, **(values or {}))
    if moved:
        record_job(tx, event, job_id, now, ({"reason": code} if code else {}) | (payload or {}))
    return moved


def job_of(conn: Connection, job_id: str, *, lock: bool = False) -> RowMapping:
    """The job's row; with ``lock``, nobody else moves the job until the transaction ends."""
    query = select(jobs).where(jobs.c.job_id == job_id)
    return conn.execute(query.with_for_update(key_share=True) if lock else query).mappings().one()


def _move(tx: Connection, job_id: str, origins: tuple[str, ...], **values: Any) -> bool:
    statement = update(jobs).where(jobs.c.job_id == job_id, jobs.c.state.in_(origins)).values(**values)
    return tx.execute(statement).rowcount == 1


def record_job(tx: Connection, event: str, job_id: str, now: datetime, payload: dict[str, Any]) -> None:
    """Record an event of this job, naming report, input, policy and code version."""
    job = job_of(tx, job_id)
    facts = {name: job[name] for name in ("report_id", "source_hash", "extractor_version", "policy_digest")}
    record_event(tx, event, month=job["month"], job_id=job_id, payload=facts | payload, now=now)
