"""Answers one question: which source produced this picture? By the picture's name, or by the digest of its file.

From receipts, which are never changed or deleted, so the answer stays when the files are gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, RowMapping, func, or_, select

from asset_pipeline.ledger.schema import audit_events, jobs, manifests, receipts, uploads

MOST = 200
"""Answers at most: a common name without a report may fit every document."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a picture comes from, and which signed event says so (None: recorded before events were signed)."""

    name: str
    page: int
    month: str
    collection: str
    document: str | None
    report_id: str
    revision: int
    source_sha256: str
    original: str
    display: str | None
    extractor_version: str
    policy_digest: str
    job_id: str
    recorded_at: str
    event_seq: int | None
    manifest_edition: int | None


def origins(conn: Connection, wanted: str, report: str | None, *, show_names: bool) -> Sequence[Origin]:
    """Origins of the picture called ``wanted`` (or with that SHA-256), in one report or in all; newest first."""
    query = select(receipts, *[jobs.c[name] for name in _OF_JOB]).join(jobs, jobs.c.job_id == receipts.c.job_id)
    query = query.where(
        or_(receipts.c.asset_index == wanted, receipts.c.content_hash == wanted, receipts.c.display_hash == wanted)
    )
    if report is not None:
        query = query.where(jobs.c.report_id == report)
    query = query.order_by(receipts.c.recorded_at.desc(), receipts.c.job_id, receipts.c.asset_index)
    found = conn.execute(query.limit(MOST)).mappings().all()
    return [_origin(conn, row, show_names) for row in found]


_OF_JOB = ("report_id", "month", "collection", "revision", "policy_digest")


def _origin(conn: Connection, row: RowMapping, show_names: bool) -> Origin:
    published = select(func.min(audit_events.c.seq)).where(
        audit_events.c.job_id == row["job_id"],
        audit_events.c.type == "unit_published",
        audit_events.c.payload.contains(f'"unit_id":"{row["unit_id"]}"', autoescape=True),
    )
    edition = select(func.max(manifests.c.edition)).where(manifests.c.job_id == row["job_id"])
    name = select(uploads.c.name).where(uploads.c.report_id == row["report_id"]).limit(1)
    return Origin(
        name=row["asset_index"],
        page=int(row["asset_index"].split("-")[1]),
        month=row["month"],
        collection=row["collection"],
        document=conn.execute(name).scalar() if show_names else None,
        report_id=row["report_id"],
        revision=row["revision"],
        source_sha256=row["source_hash"],
        original=row["content_hash"],
        display=row["display_hash"],
        extractor_version=row["extractor_version"],
        policy_digest=row["policy_digest"],
        job_id=row["job_id"],
        recorded_at=row["recorded_at"].isoformat(),
        event_seq=conn.execute(published).scalar(),
        manifest_edition=conn.execute(edition).scalar(),
    )
