"""Puts a job that ended without a result back into the queue, because somebody decided so.

The same job goes on: what its units delivered stays (receipts are written once), units that are not done get a
fresh budget, fences only ever rise, and the two deadlines stay where admission put them. A late worker of the
job's first life finds its unit queued, or with a newer fence, and changes nothing. Who decided is in the event.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select, update

from asset_pipeline.ledger.current import current_jobs
from asset_pipeline.ledger.jobs import job_of, record_job
from asset_pipeline.ledger.schema import jobs, units
from asset_pipeline.reasons import Reason

DEAD = ("dead_lettered",)
"""Given up, which is no verdict on the document: an end that asks to be tried again when its cause is gone."""

WITHOUT_RESULT = (*DEAD, "failed_permanently")
"""Ends that somebody may ask to be tried again by naming the job."""


def requeue_job(tx: Connection, job_id: str, now: datetime, states: tuple[str, ...] = DEAD) -> bool:
    """One of ``states`` → queued. False, and nothing changed, when the job is in another state or has expired."""
    # Units before the job, as a worker that gives one back locks them.
    tx.execute(select(units.c.unit_id).where(units.c.job_id == job_id).order_by(units.c.sequence).with_for_update())
    before = job_of(tx, job_id, lock=True)
    again = {"state": "queued", "reason": None, "finished_at": None, "queued_at": now}
    movable = (jobs.c.job_id == job_id, jobs.c.state.in_(states), jobs.c.expired_at.is_(None))
    moved = update(jobs).where(*movable).values(again | {"inspected_until": None}).values(lost_workers=0)
    if tx.execute(moved).rowcount != 1:
        return False
    fresh = dict.fromkeys(("lease_until", "worker", "not_before", "reason"))
    budget = dict.fromkeys(("tries", "lost_decoders", "lost_workers"), 0)
    undone = update(units).where(units.c.job_id == job_id, units.c.state != "done")
    count = tx.execute(undone.values(state="queued", **fresh, **budget)).rowcount
    facts = {"was": before["state"], "reason": before["reason"], "units": count}
    record_job(tx, "job_requeued", job_id, now, facts)
    return True


def dead_letters(conn: Connection, month: str) -> list[str]:
    """Dead-lettered jobs of ``month`` that nothing has taken the place of since, oldest first."""
    current = current_jobs(month)
    query = select(current.c.job_id).where(current.c.state.in_(DEAD), current.c.expired_at.is_(None))
    return list(conn.execute(query.order_by(current.c.queued_at, current.c.job_id)).scalars())


def requeue_readers(tx: Connection, source_hash: str, now: datetime) -> int:
    """Requeue the jobs that died because the stored bytes ``source_hash`` were altered or gone; how many."""
    died = (jobs.c.source_hash == source_hash, jobs.c.reason == Reason.SOURCE_HASH_MISMATCH.value)
    found = tx.execute(select(jobs.c.job_id).where(*died, jobs.c.state.in_(DEAD)).order_by(jobs.c.job_id)).scalars()
    return sum([requeue_job(tx, job_id, now) for job_id in list(found)])
