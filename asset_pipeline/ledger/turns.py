"""Whose turn it is: what of a month may be begun now, in turns over collections and over the jobs of each.

In a round every collection has one turn and the one with least waiting has two, so that a few documents beside a bulk
import wait less than twice as long as they would alone. Asked a few at a time and again for the next ones: a document
that came in a moment ago waits for no more than those. Within a collection, units come before inspections: what has
begun is ended first, and few documents are ever inspected ahead of their work. Claiming belongs in ``units`` and
``inspections``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, case, func, literal, null, select, union_all

from asset_pipeline.ledger.inspections import may_be_inspected
from asset_pipeline.ledger.next_action import SUSPECT_AFTER
from asset_pipeline.ledger.schema import jobs, units
from asset_pipeline.ledger.units import may_be_claimed


@dataclass(frozen=True, slots=True)
class Turn:
    """Something that may be begun: a unit, or where there is none yet, the inspection of a job."""

    job_id: str
    unit_id: str | None

    @property
    def ident(self) -> str:
        """What its task is called with."""
        return self.unit_id or self.job_id


def next_turns(conn: Connection, month: str, now: datetime, limit: int) -> list[Turn]:
    """The next ``limit`` things of ``month`` that may be begun now."""
    return _turns(conn, month, now, limit, jobs.c.lost_workers < SUSPECT_AFTER, units.c.lost_workers < SUSPECT_AFTER)


def next_suspects(conn: Connection, month: str, now: datetime, limit: int) -> list[Turn]:
    """As ``next_turns``: what was at hand when workers were lost. To be done one by one, with nothing beside it."""
    return _turns(conn, month, now, limit, jobs.c.lost_workers >= SUSPECT_AFTER, units.c.lost_workers >= SUSPECT_AFTER)


def _turns(
    conn: Connection,
    month: str,
    now: datetime,
    limit: int,
    which_jobs: ColumnElement[bool],
    which_units: ColumnElement[bool],
) -> list[Turn]:
    of_job = func.row_number().over(partition_by=units.c.job_id, order_by=units.c.sequence)
    begun = (
        _columns(literal(0), of_job, units.c.unit_id)
        .join(jobs, jobs.c.job_id == units.c.job_id)
        .where(jobs.c.month == month, jobs.c.state == "running", may_be_claimed(now), which_units)
    )
    waiting = _columns(literal(1), literal(1), null()).where(jobs.c.month == month, may_be_inspected(now), which_jobs)
    found = union_all(begun, waiting).subquery()
    in_order = (found.c.stage, found.c.nth, found.c.queued_at, found.c.job_id)
    size = func.count().over(partition_by=found.c.collection)
    turn = func.row_number().over(partition_by=found.c.collection, order_by=in_order)
    ranked = select(found, size.label("size"), turn.label("turn")).subquery()
    least = func.min(ranked.c.size).over()
    rounds = select(
        ranked, case((ranked.c.size == least, (ranked.c.turn + 1) // 2), else_=ranked.c.turn).label("round")
    )
    told = rounds.subquery()
    query = select(told.c.job_id, told.c.unit_id).limit(limit)
    return [
        Turn(*row) for row in conn.execute(query.order_by(told.c.round, told.c.size, told.c.collection, told.c.turn))
    ]


def _columns(stage: ColumnElement[int], nth: ColumnElement[int], unit_id: Any) -> Select[Any]:
    return select(
        jobs.c.collection,
        jobs.c.queued_at,
        jobs.c.job_id,
        stage.label("stage"),
        nth.label("nth"),
        unit_id.label("unit_id"),
    )
