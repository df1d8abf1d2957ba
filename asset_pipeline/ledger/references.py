"""What the records of jobs refer to: files, sources, and whether receipts and placements say the same.

For those who prove or repair an archive, so it looks at every job, not only at the current ones. Reads only; bytes
belong in ``archive``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, or_, select

from asset_pipeline.account import unaccounted
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import jobs, objects, placements, receipts, source_documents, units
from asset_pipeline.ledger.statements import portions


@dataclass(frozen=True, slots=True)
class JobRef:
    """A job, as far as one must know it to look for what it refers to. An expired one keeps no file any more."""

    job_id: str
    report_id: str
    month: str
    state: str
    pages: int | None
    source_hash: str
    expired: bool


@dataclass(frozen=True, slots=True)
class Mention:
    """A placement that names a file, and the unit that its page was worked in."""

    job_id: str
    report_id: str
    month: str
    name: str
    page: int
    first_page: int
    last_page: int | None


def job_refs(conn: Connection, months: Collection[str] | None = None) -> list[JobRef]:
    """Every job (of ``months``), by month, report and id."""
    columns = (jobs.c.job_id, jobs.c.report_id, jobs.c.month, jobs.c.state, jobs.c.pages, jobs.c.source_hash)
    query = select(*columns, jobs.c.expired_at.is_not(None)).order_by(jobs.c.month, jobs.c.report_id, jobs.c.job_id)
    if months is not None:
        query = query.where(jobs.c.month.in_(months))
    return [JobRef(*row) for row in conn.execute(query)]


def files_of(conn: Connection, job_id: str) -> dict[str, int | None]:
    """Bytes, by digest, of every file that placements or receipts of a job name; None for one that is deleted."""
    named: set[str | None] = set()
    for table, columns in ((placements, ("picture", "display")), (receipts, ("content_hash", "display_hash"))):
        for row in conn.execute(select(*[table.c[name] for name in columns]).where(table.c.job_id == job_id)):
            named.update(row)
    found: dict[str, int | None] = dict.fromkeys(digest for digest in named if digest)
    for some in portions(sorted(found)):
        query = select(objects.c.sha256, objects.c.bytes).where(objects.c.sha256.in_(some), objects.c.state == "stored")
        found.update(conn.execute(query).tuples().all())
    return found


def contradictions(conn: Connection, job_id: str) -> int:
    """Placements with a picture that have no receipt saying the same, and receipts without such a placement."""
    placed = select(placements.c.name, placements.c.picture, placements.c.display)
    receipted = select(receipts.c.asset_index, receipts.c.content_hash, receipts.c.display_hash)
    said = set(conn.execute(placed.where(placements.c.job_id == job_id, placements.c.picture.is_not(None))).tuples())
    return len(said ^ set(conn.execute(receipted.where(receipts.c.job_id == job_id)).tuples()))


def unaccounted_pages(conn: Connection, job: JobRef) -> list[int]:
    """Pages of a succeeded job that are missing or do not add up."""
    return unaccounted(reading.pages_of(conn, job.job_id), job.pages or 0) if job.state == "succeeded" else []


def stored_sources(conn: Connection, digests: Collection[str]) -> dict[str, int]:
    """Bytes, by digest, of those sources that are kept."""
    found: dict[str, int] = {}
    for some in portions(sorted(digests)):
        query = select(source_documents.c.sha256, source_documents.c.bytes)
        query = query.where(source_documents.c.sha256.in_(some), source_documents.c.stored == 1)
        found.update(conn.execute(query).tuples().all())
    return found


def mentions(conn: Connection, digests: Collection[str]) -> Iterator[tuple[str, Mention]]:
    """Where files are named by jobs that succeeded: digest and mention, in the order of pages."""
    query = (
        select(
            placements.c.picture,
            placements.c.display,
            placements.c.job_id,
            jobs.c.report_id,
            jobs.c.month,
            placements.c.name,
            placements.c.page,
            units.c.first_page,
            units.c.last_page,
        )
        .join(jobs, jobs.c.job_id == placements.c.job_id)
        .join(units, units.c.job_id == placements.c.job_id)
        .where(
            jobs.c.state == "succeeded",
            units.c.first_page <= placements.c.page,
            or_(units.c.last_page.is_(None), units.c.last_page >= placements.c.page),
        )
        .order_by(jobs.c.queued_at.desc(), placements.c.job_id, placements.c.page, placements.c.ordinal)
    )
    for some in portions(sorted(digests)):
        named = or_(placements.c.picture.in_(some), placements.c.display.in_(some))
        for picture, display, *facts in conn.execute(query.where(named)):
            yield from ((digest, Mention(*facts)) for digest in {picture, display} & set(some))
