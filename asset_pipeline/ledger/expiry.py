"""What is past its deadline: jobs whose archive clock has run out, and files that no job keeps any more.

A job *keeps* what it names until its ``archive_until``; under a hold it goes on keeping it. A file goes when no job
keeps it, so shared content goes with the last of its owners. The source is kept for as long as the pictures, because
repair, release from quarantine and a second look need it. Reads only; deleting belongs in ``deletions``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, case, exists, func, not_, or_, select, union

from asset_pipeline.ledger.holds import is_held
from asset_pipeline.ledger.schema import deletions, jobs, manifests, objects, placements, source_documents
from asset_pipeline.ledger.statements import portions
from asset_pipeline.storage.store import object_key


class Kind(StrEnum):
    """What can be deleted because of its time."""

    PICTURE = "picture"
    SOURCE = "source"
    QUARANTINE = "quarantine"


ARCHIVE_DEADLINE = "archive_deadline"
WORKING_DEADLINE = "working_deadline"


@dataclass(frozen=True, slots=True)
class DueJob:
    """A job whose time is over and of which that is not recorded yet."""

    job_id: str
    report_id: str
    month: str
    state: str
    archive_until: datetime


@dataclass(frozen=True, slots=True)
class DueFile:
    """A file that nothing keeps. ``job_id`` is the last job that it was kept for, ``deadline`` that job's."""

    kind: Kind
    sha256: str
    key: str
    bytes: int
    job_id: str | None
    month: str | None
    deadline: datetime
    why: str = ARCHIVE_DEADLINE


def keeps(now: datetime) -> ColumnElement[bool]:
    """Condition on a row of ``jobs``: it keeps its source and pictures."""
    return or_(and_(jobs.c.expired_at.is_(None), jobs.c.archive_until > now), is_held())


def due_jobs(conn: Connection, now: datetime) -> list[DueJob]:
    """Jobs past their deadline and under no hold that are not recorded as expired, by month and id."""
    columns = [jobs.c[name] for name in DueJob.__slots__]
    due = (jobs.c.archive_until <= now, jobs.c.expired_at.is_(None), not_(is_held()))
    return [DueJob(*row) for row in conn.execute(select(*columns).where(*due).order_by(jobs.c.month, jobs.c.job_id))]


def due_pictures(conn: Connection, now: datetime) -> Iterator[DueFile]:
    """Stored pictures that no job keeps, in order of their digests."""
    over = select(jobs.c.job_id).where(jobs.c.archive_until <= now, not_(keeps(now)))
    if conn.execute(over.limit(1)).first() is None:
        return  # the usual case, in which nobody need look at every placement
    named = union(
        *(
            select(column.label("sha256")).where(column.is_not(None), placements.c.job_id.in_(over))
            for column in (placements.c.picture, placements.c.display)
        )
    ).subquery()
    stored = select(objects.c.sha256).where(objects.c.state == "stored", objects.c.sha256.in_(select(named.c.sha256)))
    for some in portions(list(conn.execute(stored.order_by(objects.c.sha256)).scalars())):
        yield from unkept_pictures(conn, some, now)


def unkept_pictures(conn: Connection, digests: Sequence[str], now: datetime) -> list[DueFile]:
    """Those of ``digests`` that some job names and no job keeps."""
    owners: Owners = defaultdict(set)
    for column in (placements.c.picture, placements.c.display):
        query = _owners(column, now).join(placements, placements.c.job_id == jobs.c.job_id)
        _gather(owners, conn, query.where(column.in_(digests)).distinct())
    sizes = select(objects.c.sha256, objects.c.bytes).where(objects.c.sha256.in_(digests))
    return list(_due(Kind.PICTURE, owners, conn.execute(sizes.order_by(objects.c.sha256)).tuples()))


def due_sources(conn: Connection, now: datetime) -> Iterator[DueFile]:
    """Stored sources that no job keeps and whose deletion is not under way, in order of their digests."""
    over = select(jobs.c.source_hash).where(jobs.c.archive_until <= now, not_(keeps(now)))
    begun = select(deletions.c.sha256).where(deletions.c.kind == Kind.SOURCE.value)
    stored = select(source_documents.c.sha256).where(
        source_documents.c.stored == 1, source_documents.c.sha256.in_(over), source_documents.c.sha256.not_in(begun)
    )
    for some in portions(list(conn.execute(stored.order_by(source_documents.c.sha256)).scalars())):
        yield from unkept_sources(conn, some, now)


def unkept_sources(conn: Connection, digests: Sequence[str], now: datetime) -> list[DueFile]:
    """Those of ``digests`` that came in for some job and that no job keeps."""
    owners: Owners = defaultdict(set)
    _gather(owners, conn, _owners(jobs.c.source_hash, now).where(jobs.c.source_hash.in_(digests)))
    sizes = select(source_documents.c.sha256, source_documents.c.bytes).where(source_documents.c.sha256.in_(digests))
    return list(_due(Kind.SOURCE, owners, conn.execute(sizes.order_by(source_documents.c.sha256)).tuples()))


def intended(conn: Connection, kind: Kind | None = None) -> list[DueFile]:
    """Files whose deletion was begun and not ended, as they were told then."""
    columns = [deletions.c[name] for name in DueFile.__slots__]
    query = select(*columns).order_by(deletions.c.kind, deletions.c.key)
    if kind is not None:
        query = query.where(deletions.c.kind == kind.value)
    return [DueFile(**row | {"kind": Kind(row["kind"])}) for row in map(dict, conn.execute(query).mappings())]


def past_deadline(conn: Connection, now: datetime) -> list[DueFile]:
    """Every picture and source that is there although its time is over, deletions under way included."""
    return [*due_pictures(conn, now), *due_sources(conn, now), *intended(conn)]


def months_to_tell(conn: Connection) -> list[str]:
    """Months with an expired report whose newest manifest does not say so yet."""
    later, told = jobs.alias("later"), manifests.alias("told")
    newer = or_(
        later.c.revision > jobs.c.revision,
        and_(later.c.revision == jobs.c.revision, later.c.queued_at > jobs.c.queued_at),
        and_(
            later.c.revision == jobs.c.revision,
            later.c.queued_at == jobs.c.queued_at,
            later.c.job_id > jobs.c.job_id,
        ),
    )
    replaced = exists().where(later.c.report_id == jobs.c.report_id, newer)
    said = exists().where(told.c.job_id == jobs.c.job_id, told.c.deleted_at == jobs.c.expired_at)
    query = select(jobs.c.month).where(jobs.c.expired_at.is_not(None), not_(replaced), not_(said))
    return sorted(conn.execute(query.distinct()).scalars())


def next_deadlines(conn: Connection) -> list[tuple[str, datetime, datetime, int]]:
    """Of each month with jobs that have not expired: their earliest and latest deadline, and how many there are."""
    found: dict[str, list[datetime]] = defaultdict(list)
    for month, until in conn.execute(select(jobs.c.month, jobs.c.archive_until).where(jobs.c.expired_at.is_(None))):
        found[month].append(until)
    return [(month, min(untils), max(untils), len(untils)) for month, untils in sorted(found.items())]


def last_expired(conn: Connection) -> dict[str, datetime]:
    """When a report expired last, of each month in which some did and none is under a hold."""
    held = select(jobs.c.month).where(is_held())
    query = select(jobs.c.month, func.max(jobs.c.expired_at)).where(jobs.c.expired_at.is_not(None))
    found = conn.execute(query.where(jobs.c.month.not_in(held)).group_by(jobs.c.month).order_by(jobs.c.month))
    return dict(found.tuples().all())


Owners = dict[str, set[tuple[datetime, str, str, bool]]]
"""By digest: deadline, id, month of each job that names it, and whether it keeps it."""


def _owners(column: ColumnElement[Any], now: datetime) -> Select[Any]:
    kept = case((keeps(now), 1), else_=0)
    return select(column, jobs.c.archive_until, jobs.c.job_id, jobs.c.month, kept).select_from(jobs)


def _gather(owners: Owners, conn: Connection, query: Select[Any]) -> None:
    for digest, until, job_id, month, kept in conn.execute(query):
        owners[digest].add((until, job_id, month, bool(kept)))


def _due(kind: Kind, owners: Owners, sizes: Iterable[tuple[str, int]]) -> Iterator[DueFile]:
    for digest, size in sizes:
        found = owners.get(digest, set())
        if found and not any(kept for *_, kept in found):
            until, job_id, month, _ = max(found)
            yield DueFile(kind, digest, object_key(digest), size, job_id, month, until)
