"""Units of work: a document, or a range of its pages, held by one worker at a time.

A claim raises the unit's fence number, and every later write names the fence it was given: a worker
that lost its lease while it slept finds a newer fence, gets ``LeaseLost`` and changes nothing. The
fence decides, not the clock: a lease that ran out but that nobody took over is still good. A worker that
vanished is counted apart from failures, and what it was at is then worked alone, so that a document that
kills its worker ends by itself and takes no other with it. Which comes next is told by ``turns``, what a unit
delivers is recorded by ``publication``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, exists, func, insert, or_, select, update

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import breaches
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.identity import attempt_id_of, unit_id_of
from asset_pipeline.ledger.jobs import OPEN, job_of
from asset_pipeline.ledger.next_action import DECODER_LOST, MAX_LOST_WORKERS, final_state
from asset_pipeline.ledger.schema import attempts, jobs, units
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work a unit, and what a worker must know for it."""

    unit_id: str
    job_id: str
    fence: int
    first_page: int
    last_page: int | None
    source_hash: str
    engine: str
    extractor_version: str
    policy_digest: str
    lost_decoders: int
    tries: int


def plan_units(tx: Connection, job_id: str, ranges: Sequence[tuple[int, int | None]]) -> int:
    """Give an open job its units, once; returns how many were made. A job that has units keeps the ones it has."""
    planned = select(exists().where(units.c.job_id == job_id))
    if job_of(tx, job_id, lock=True)["state"] not in OPEN or tx.execute(planned).scalar_one():
        return 0
    rows = [
        {
            "unit_id": unit_id_of(job_id, sequence),
            "job_id": job_id,
            "sequence": sequence,
            "first_page": first,
            "last_page": last,
            "state": "queued",
            "fence": 0,
            "tries": 0,
            "lost_decoders": 0,
            "lost_workers": 0,
        }
        for sequence, (first, last) in enumerate(ranges)
    ]
    if rows:
        tx.execute(insert(units), rows)
    return len(rows)


def may_be_claimed(now: datetime) -> ColumnElement[bool]:
    """Of ``units``: those that are queued and due, and those whose lease has run out."""
    due = and_(units.c.state == "queued", or_(units.c.not_before.is_(None), units.c.not_before <= now))
    dropped = and_(units.c.state == "running", units.c.lease_until <= now)
    return or_(due, dropped)


def claim_unit(
    tx: Connection, unit_id: str, worker: str, lease: timedelta, now: datetime, cage: str | None = None
) -> Claim | None:
    """Take the unit, raise its fence and record the attempt, with the ``cage`` that its decoder will be in.

    None when it is another's, done or not yet due.

    A unit of which one worker after the other was lost is not given out again: it ends here, without a result.
    """
    overtaking = case((units.c.state == "running", 1), else_=0)
    running = exists().where(jobs.c.job_id == units.c.job_id, jobs.c.state == "running")
    statement = (
        update(units)
        .where(units.c.unit_id == unit_id, may_be_claimed(now), running)
        .values(
            state="running",
            fence=units.c.fence + 1,
            lease_until=now + lease,
            worker=worker,
            not_before=None,
            lost_workers=units.c.lost_workers + overtaking,
        )
        .returning(*[units.c[name] for name in _TAKEN], units.c.lost_workers)
    )
    row = tx.execute(statement).mappings().one_or_none()
    if row is None:
        return None
    taken = {name: row[name] for name in _TAKEN}
    job = job_of(tx, taken["job_id"])
    claim = Claim(
        unit_id=unit_id,
        source_hash=job["source_hash"],
        engine=job["engine"],
        extractor_version=job["extractor_version"],
        policy_digest=job["policy_digest"],
        **taken,
    )
    overtaken = update(attempts).where(attempts.c.unit_id == unit_id, attempts.c.ended_at.is_(None))
    tx.execute(overtaken.values(ended_at=now, outcome="fenced", reason=Reason.LEASE_CONFLICT.value))
    if row["lost_workers"] >= MAX_LOST_WORKERS:
        fail_unit(tx, claim, Reason.WORKER_LOST, now)
        return None
    tx.execute(
        insert(attempts).values(
            attempt_id=attempt_id_of(unit_id, claim.fence),
            unit_id=unit_id,
            job_id=claim.job_id,
            fence=claim.fence,
            worker=worker,
            cage=cage,
            started_at=now,
        )
    )
    record_attempt(tx, "attempt_started", claim, now, {})
    return claim


def note_return(tx: Connection, claim: Claim, now: datetime) -> None:
    """Record that a worker whose unit was taken over is alive after all: it does not count as lost."""
    mine = and_(attempts.c.attempt_id == attempt_id_of(claim.unit_id, claim.fence), attempts.c.returned_at.is_(None))
    late = exists().where(mine, attempts.c.outcome == "fenced")
    tx.execute(
        update(units)
        .where(units.c.unit_id == claim.unit_id, units.c.lost_workers > 0, late)
        .values(lost_workers=units.c.lost_workers - 1)
    )
    tx.execute(update(attempts).where(mine, attempts.c.outcome == "fenced").values(returned_at=now))


def renew_lease(tx: Connection, claim: Claim, lease: timedelta, now: datetime) -> None:
    """Hold the unit until ``now + lease``. Raises LeaseLost."""
    change_held(tx, claim, lease_until=now + lease)


def retry_unit(
    tx: Connection,
    claim: Claim,
    reason: Reason,
    not_before: datetime,
    now: datetime,
    *,
    spends_budget: bool = True,
    **measured: Any,
) -> None:
    """Give the unit back, claimable from ``not_before`` on, with what was ``measured`` so far. Raises LeaseLost.

    A lost decoder is counted whatever the budget says; ``spends_budget`` False is for a provider that asked
    to wait, or a worker that was told to stop.
    """
    spent, lost = int(spends_budget), int(reason in DECODER_LOST)
    change_held(
        tx,
        claim,
        state="queued",
        lease_until=None,
        worker=None,
        not_before=not_before,
        reason=reason.value,
        tries=units.c.tries + spent,
        lost_decoders=units.c.lost_decoders + lost,
    )
    tx.execute(update(jobs).where(jobs.c.job_id == claim.job_id).values(tries=jobs.c.tries + spent))
    broken = end_attempt(tx, claim, now, "retried", reason, **measured)
    facts = {"outcome": "retried", "reason": reason.value, "spent": spent}
    record_attempt(tx, "attempt_ended", claim, now, facts | broken)


def fail_unit(tx: Connection, claim: Claim, reason: Reason, now: datetime, **measured: Any) -> None:
    """End the unit without a result; ``completion`` then ends its job. Raises LeaseLost."""
    lost = int(reason in DECODER_LOST)
    change_held(
        tx,
        claim,
        state="failed",
        lease_until=None,
        reason=reason.value,
        lost_decoders=units.c.lost_decoders + lost,
    )
    outcome = "refused" if final_state(reason) == "failed_permanently" else "dead_lettered"
    broken = end_attempt(tx, claim, now, outcome, reason, **measured)
    record_attempt(tx, "attempt_ended", claim, now, {"outcome": outcome, "reason": reason.value} | broken)


def busy(conn: Connection, month: str, now: datetime) -> tuple[int, datetime | None]:
    """Units of ``month`` that are not settled, and the earliest moment at which one may become claimable."""
    query = (
        select(units.c.state, func.count(), func.min(units.c.not_before), func.min(units.c.lease_until))
        .join(jobs, jobs.c.job_id == units.c.job_id)
        .where(jobs.c.month == month, jobs.c.state == "running", units.c.state.in_(("queued", "running")))
        .group_by(units.c.state, units.c.not_before.is_(None))
    )
    count, moments = 0, []
    for state, found, not_before, lease_until in conn.execute(query):
        count += found
        moments.append((not_before if state == "queued" else lease_until) or now)
    return count, max(min(moments), now) if moments else None


def change_held(tx: Connection, claim: Claim, **values: Any) -> None:
    """Change the claimed unit, locking it until the transaction ends. Raises LeaseLost when the fence is newer."""
    held = and_(units.c.unit_id == claim.unit_id, units.c.fence == claim.fence, units.c.state == "running")
    if tx.execute(update(units).where(held).values(**values)).rowcount != 1:
        raise LeaseLost(claim.unit_id)


def end_attempt(
    tx: Connection, claim: Claim, now: datetime, outcome: str, reason: Reason | None = None, **measured: Any
) -> dict[str, Any]:
    """Close the attempt's row with how it ended and what was measured; budgets it broke, for its event."""
    attempt_id = attempt_id_of(claim.unit_id, claim.fence)
    spent = {name.removesuffix("_ms"): value for name, value in measured.items() if name.endswith("_ms")}
    found = breaches.of_attempt(tx, attempt_id, claim.policy_digest, spent, measured.get("pixels"), reason)
    row = update(attempts).where(attempts.c.attempt_id == attempt_id)
    ended = {"ended_at": now, "outcome": outcome, "reason": reason.value if reason else None}
    tx.execute(row.values(**ended, breach=breaches.written(found), **measured))
    return {"breach": found} if found else {}


def record_attempt(tx: Connection, event: str, claim: Claim, now: datetime, payload: dict[str, Any]) -> None:
    """Record an event of this attempt, naming input, policy and code version."""
    facts = {
        "unit_id": claim.unit_id,
        "fence": claim.fence,
        "source_hash": claim.source_hash,
        "extractor_version": claim.extractor_version,
        "policy_digest": claim.policy_digest,
    }
    month = job_of(tx, claim.job_id)["month"]
    record_event(tx, event, month=month, job_id=claim.job_id, payload=facts | payload, now=now)


_TAKEN = ("job_id", "fence", "first_page", "last_page", "lost_decoders", "tries")
"""Columns of a claimed unit that its worker is told."""
