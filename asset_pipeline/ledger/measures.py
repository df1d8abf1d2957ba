"""Measures over a month that nobody decides anything by: how long its work took, and what its results are worth.

Reads only; for people and for data versions. Sums and listings belong in ``reading``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, select

from asset_pipeline.ledger.reading import documents_of_month
from asset_pipeline.ledger.schema import attempts, jobs, placements
from asset_pipeline.ledger.statements import portions


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and 95th percentile of some milliseconds (nearest rank), and how many there were."""

    count: int
    p50: int
    p95: int


def stage_times(conn: Connection, month: str) -> dict[str, Spread]:
    """Per stage that has figures: ``fetch``, ``decode``, ``publish`` (of an attempt that published), ``job``."""
    columns = {"fetch": attempts.c.fetch_ms, "decode": attempts.c.decode_ms, "publish": attempts.c.publish_ms}
    query = (
        select(*columns.values())
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(jobs.c.month == month, attempts.c.outcome.in_(("published", "acknowledged")))
    )
    stages: dict[str, list[float]] = {name: [] for name in (*columns, "job")}
    for row in conn.execute(query):
        for name, value in zip(columns, row, strict=True):
            if value is not None:
                stages[name].append(value)
    ends = select(jobs.c.queued_at, jobs.c.finished_at).where(jobs.c.month == month, jobs.c.finished_at.is_not(None))
    stages["job"] = [(finished - queued).total_seconds() * 1000 for queued, finished in conn.execute(ends)]
    return {name: spread(values) for name, values in stages.items() if values}


def spread(values: Iterable[float]) -> Spread:
    """Median and 95th percentile of at least one value."""
    ranked = sorted(values)

    def rank(share: float) -> int:
        return round(ranked[math.ceil(share * len(ranked)) - 1])

    return Spread(len(ranked), rank(0.5), rank(0.95))


def results_digest(conn: Connection, month: str) -> str:
    """Data version of a month's results: a digest over every outcome, every placement and its files.

    The same bytes read to the same result give the same digest, whoever did it and when.
    """
    documents = documents_of_month(conn, month)
    digest = hashlib.sha256()
    for row in sorted(documents, key=lambda row: row.report_id):
        digest.update(f"{row.report_id} {row.state} {row.reason or ''} {row.pages}\n".encode("ascii"))
    report_of = {row.job_id: row.report_id for row in documents if row.state == "succeeded"}
    columns = (placements.c.job_id, placements.c.name, placements.c.status, placements.c.reason)
    files = (placements.c.picture, placements.c.display)
    lines = []
    for portion in portions(sorted(report_of)):
        for job_id, *facts in conn.execute(select(*columns, *files).where(placements.c.job_id.in_(portion))):
            lines.append(" ".join((report_of[job_id], *(fact or "" for fact in facts))))
    digest.update("\n".join(sorted(lines)).encode("ascii"))
    return digest.hexdigest()
