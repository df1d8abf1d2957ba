"""Inspections: a queued job is looked at by one worker at a time, before it has units.

As with units, a claim is a lease with a fence, and a worker that vanished is counted: a document that takes along
whoever opens it ends as a dead letter. An inspection changes nothing but its job's state, so a late one is dropped
and not recorded as an attempt. What is worked after it, and by whom, belongs in ``units``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select, update

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger.jobs import dead_letter_job
from asset_pipeline.ledger.next_action import MAX_LOST_WORKERS
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class Look:
    """The right to inspect a job."""

    job_id: str
    fence: int


def may_be_inspected(now: datetime) -> ColumnElement[bool]:
    """Of ``jobs``: those that are queued and that nobody is looking at."""
    free = or_(jobs.c.inspected_until.is_(None), jobs.c.inspected_until <= now)
    return and_(jobs.c.state == "queued", free)


def count_queued(conn: Connection, month: str) -> int:
    """Jobs of ``month`` that are still to be inspected, those under inspection included."""
    query = select(func.count()).select_from(jobs).where(jobs.c.month == month, jobs.c.state == "queued")
    return int(conn.execute(query).scalar_one())


def claim_inspection(tx: Connection, job_id: str, lease: timedelta, now: datetime) -> Look | None:
    """Take the job for inspection. None when it is another's, or not queued.

    One of which one worker after the other was lost is not given out again: it ends here, as a dead letter.
    """
    overtaking = case((jobs.c.inspected_until.is_not(None), 1), else_=0)
    statement = (
        update(jobs)
        .where(jobs.c.job_id == job_id, may_be_inspected(now))
        .values(
            inspections=jobs.c.inspections + 1,
            inspected_until=now + lease,
            lost_workers=jobs.c.lost_workers + overtaking,
        )
        .returning(jobs.c.inspections, jobs.c.lost_workers)
    )
    row = tx.execute(statement).one_or_none()
    if row is None:
        return None
    if row.lost_workers >= MAX_LOST_WORKERS:
        dead_letter_job(tx, job_id, Reason.WORKER_LOST, now)
        return None
    return Look(job_id, row.inspections)


def renew_inspection(tx: Connection, look: Look, lease: timedelta, now: datetime) -> None:
    """Hold the job until ``now + lease``. Raises LeaseLost."""
    if not _change(tx, look, now + lease):
        raise LeaseLost(look.job_id)


def end_inspection(tx: Connection, look: Look) -> bool:
    """Give the job back, locked until the transaction ends. False when another looks at it, or it has moved on.

    The worker is heard of, then, so it does not count as lost.
    """
    if _change(tx, look, None):
        return True
    overtaken = jobs.c.job_id == look.job_id, jobs.c.inspections > look.fence, jobs.c.lost_workers > 0
    tx.execute(update(jobs).where(*overtaken).values(lost_workers=jobs.c.lost_workers - 1))
    return False


def _change(tx: Connection, look: Look, until: datetime | None) -> bool:
    held = jobs.c.job_id == look.job_id, jobs.c.inspections == look.fence, jobs.c.state == "queued"
    return tx.execute(update(jobs).where(*held).values(inspected_until=until)).rowcount == 1
