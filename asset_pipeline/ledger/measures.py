"""Measures over a month that nobody decides anything by: how long its work took, and what its results are worth.

Reads only; for people and for data versions. Sums and listings belong in ``reading``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, Result, Text, cast, select, union

from asset_pipeline.ledger.current import current_jobs
from asset_pipeline.ledger.reading import DocumentRow, PictureRow, documents_of_month
from asset_pipeline.ledger.schema import attempts, jobs, objects, pages, placements
from asset_pipeline.ledger.statements import portions
from asset_pipeline.ledger.uploads import OPEN, list_uploads

_FETCHED = 500
"""Rows at a time: by ones, asking for a row costs more than hashing it."""

_PARTICULAR = frozenset(
    {"job_id", "correlation_id", "parent_revision", "policy_digest", "receipts", "tries"}
    | {"queued_at", "started_at", "finished_at", "working_until", "archive_until", "expired_at"}
    | {"edition", "content_digest", "manifest_digest"}
)
"""What a document's row says of one installation, run or edition, and no table or gallery tells of it."""


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
        for job_id, *facts in conn.execute(select(*columns, *files).where(placements.c.job_id.in_(portion))).all():
            lines.append(" ".join((report_of[job_id], *(fact or "" for fact in facts))))
    digest.update("\n".join(sorted(lines)).encode("ascii"))
    return digest.hexdigest()


def told_digest(conn: Connection, month: str, *, names: bool) -> str:
    """A digest over every row that the gallery and the catalogue of ``month`` are made of, as the ledger has them.

    Much cheaper than making either: rows are hashed as they come. ``names``: whether names of documents are told, and
    so count. No id and no time of an installation is in it.
    """
    digest = hashlib.sha256()
    hidden = _PARTICULAR if names else _PARTICULAR | {"collection", "name"}
    told = [field.name for field in fields(DocumentRow) if field.name not in hidden]
    for document in documents_of_month(conn, month):
        if document.expired_at is None:
            digest.update(repr([getattr(document, name) for name in told]).encode())
    for upload in list_uploads(conn, month=month, states=OPEN):
        digest.update(
            repr([upload.upload_id, upload.reason, *([upload.collection, upload.name] if names else [])]).encode()
        )
    current = current_jobs(month)
    kept = (current.c.state == "succeeded", current.c.expired_at.is_(None))
    for table, in_order in ((pages, pages.c.page), (placements, placements.c.ordinal)):
        # JSON as the text that it is kept as: nothing has to be parsed for being hashed.
        columns = [
            cast(column, Text) if column.name == "detail" else column
            for column in table.c
            if column.name not in ("job_id", "unit_id")
        ]
        rows = select(current.c.report_id, *columns).join(current, current.c.job_id == table.c.job_id).where(*kept)
        _add_rows(digest, conn.execute(rows.order_by(current.c.report_id, table.c.page, in_order)))
    named = [
        select(column).join(current, current.c.job_id == placements.c.job_id).where(*kept)
        for column in (placements.c.picture, placements.c.display)
    ]
    facts = [column for column in objects.c if column.name in PictureRow.__slots__]
    files = select(*facts).where(objects.c.sha256.in_(union(*named)))
    _add_rows(digest, conn.execute(files.order_by(objects.c.sha256)))
    return digest.hexdigest()


def _add_rows(digest: hashlib._Hash, rows: Result[Any]) -> None:
    for portion in rows.partitions(_FETCHED):
        digest.update(repr([tuple(row) for row in portion]).encode())
