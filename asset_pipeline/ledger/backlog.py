"""How much of each collection is queued or in work, and how fast it has been worked lately.

Counted in bytes of sources, because that is what an import brings and what admission knows before it reads a document.
Whether more may come in is decided in ``intake``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from asset_pipeline.ledger.jobs import OPEN
from asset_pipeline.ledger.schema import jobs, source_documents, uploads

LATELY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Pace:
    """Bytes of sources that were worked to their end, and in how many seconds."""

    bytes: int
    seconds: float

    def seconds_for(self, count: int) -> float:
        """How long ``count`` bytes take at this pace."""
        return count * self.seconds / self.bytes


def queued_bytes(conn: Connection) -> dict[str, int]:
    """Bytes of the sources of all open jobs, by collection; those without any are not in it."""
    size = func.sum(source_documents.c.bytes)
    query = (
        select(jobs.c.collection, size)
        .join(source_documents, source_documents.c.sha256 == jobs.c.source_hash)
        .where(jobs.c.state.in_(OPEN))
        .group_by(jobs.c.collection)
    )
    return {collection: int(total) for collection, total in conn.execute(query)}


def paces(conn: Connection, now: datetime) -> dict[str, Pace]:
    """How fast the collections of which something was worked ``LATELY`` were worked."""
    since = now - LATELY
    query = (
        select(jobs.c.collection, func.sum(source_documents.c.bytes), func.min(jobs.c.started_at))
        .join(source_documents, source_documents.c.sha256 == jobs.c.source_hash)
        .where(jobs.c.state == "succeeded", jobs.c.finished_at > since, jobs.c.finished_at <= now)
        .group_by(jobs.c.collection)
    )
    return {
        collection: Pace(int(total), max((now - max(began, since)).total_seconds(), 1.0))
        for collection, total, began in conn.execute(query)
        if total
    }


def last_admissions(conn: Connection) -> dict[str, datetime]:
    """When the last upload of each collection was taken in."""
    query = select(uploads.c.collection, func.max(uploads.c.admitted_at)).where(uploads.c.admitted_at.is_not(None))
    return dict(conn.execute(query.group_by(uploads.c.collection)).tuples().all())
