"""What the ledger says, as plain values: documents, pages and pictures of a month, and its sums.

Reads only. A report counts once, by its *current* job: the highest revision, then the most recently
queued extractor version. Pages and pictures count only where that job succeeded, as in its manifest.
Names are returned as they are; whether to show them is for the caller's policy. Uploads that became no
job are listed by ``uploads``.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import CompoundSelect, Connection, Select, func, or_, select, union

from asset_pipeline.ledger.current import current_jobs, latest_manifests, page_accounts
from asset_pipeline.ledger.rows import COUNTS, page_of, placement_of
from asset_pipeline.ledger.schema import (
    attempts,
    jobs,
    objects,
    pages,
    placements,
    quarantine,
    receipts,
    source_documents,
    uploads,
)
from asset_pipeline.model import Page, Placement


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """One report of a month. Counts of its pages are 0 until its job succeeded; receipts are counted as they come.

    ``unread_pages`` have a reason of their own; ``unaccounted`` is 0, or something is wrong.
    """

    report_id: str
    job_id: str
    correlation_id: str
    month: str
    collection: str
    name: str | None
    revision: int
    parent_revision: int | None
    source_hash: str
    source_bytes: int
    media_type: str | None
    engine: str
    extractor_version: str
    policy_digest: str
    state: str
    reason: str | None
    encrypted: str | None
    pages: int | None
    drawn: int
    archived: int
    collapsed: int
    decorative: int
    consumed: int
    not_shown: int
    quarantined: int
    derived_archived: int
    derived_quarantined: int
    unread_pages: int
    unaccounted: int
    receipts: int
    tries: int
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    working_until: datetime
    archive_until: datetime
    expired_at: datetime | None
    edition: int | None
    content_digest: str | None
    manifest_digest: str | None


@dataclass(frozen=True, slots=True)
class MonthSummary:
    """The sums of a month. ``quarantined`` counts placements, derived ones included; ``objects`` different files."""

    month: str
    documents: int
    outcomes: dict[str, int]
    unfinished: int
    refused_by_reason: dict[str, int]
    dead_lettered_by_reason: dict[str, int]
    pages: int
    drawn: int
    archived: int
    collapsed: int
    decorative: int
    consumed: int
    not_shown: int
    quarantined: int
    quarantined_by_reason: dict[str, int]
    derived: int
    unread_pages: int
    unread_by_reason: dict[str, int]
    unaccounted: int
    receipts: int
    objects: int
    object_bytes: int
    source_bytes: int
    waiting_uploads: int
    duplicate_uploads: int
    rejected_uploads: int
    rejected_by_reason: dict[str, int]


@dataclass(frozen=True, slots=True)
class UnreadPage:
    """A page of a succeeded job whose drawing was not read, and why: nothing of it is archived."""

    job_id: str
    page: int
    label: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class PictureRow:
    """One stored file of a job, with the first placement that shows it and how many do."""

    sha256: str
    renditions: tuple[str, ...]
    name: str
    page: int
    placements: int
    media_type: str
    bytes: int
    width: int
    height: int
    bits: int
    mode: str
    has_alpha: bool
    icc: str | None
    pixel_sha256: str | None
    phash: str | None


@dataclass(frozen=True, slots=True)
class ShownPicture:
    """An archived placement and the file to show for it."""

    report_id: str
    job_id: str
    name: str
    page: int
    display: str
    media_type: str
    bytes: int
    width: int
    height: int


def months(conn: Connection) -> list[str]:
    """Months with a job or an upload, in order."""
    known = union(select(jobs.c.month), select(uploads.c.month).where(uploads.c.month.is_not(None)))
    return sorted(conn.execute(known).scalars())


def documents_of_month(conn: Connection, month: str) -> list[DocumentRow]:
    """Reports of ``month`` with their current jobs, by collection, name and report id."""
    current = current_jobs(month)
    accounts = page_accounts(current)
    receipted = (
        select(receipts.c.job_id, func.count().label("receipts"))
        .join(current, current.c.job_id == receipts.c.job_id)
        .group_by(receipts.c.job_id)
        .subquery()
    )
    latest = latest_manifests(month)
    # The same for every upload of a report, because the report id is made from it.
    name = select(func.min(uploads.c.name)).where(uploads.c.report_id == current.c.report_id).scalar_subquery()
    query = (
        select(
            *[column for column in current.c if column.name in DocumentRow.__slots__],
            name.label("name"),
            source_documents.c.bytes.label("source_bytes"),
            source_documents.c.media_type,
            *[column for column in accounts.c if column.name != "job_id"],
            receipted.c.receipts,
            latest.c.edition,
            latest.c.content_digest,
            latest.c.digest.label("manifest_digest"),
        )
        .join(source_documents, source_documents.c.sha256 == current.c.source_hash)
        .outerjoin(accounts, accounts.c.job_id == current.c.job_id)
        .outerjoin(receipted, receipted.c.job_id == current.c.job_id)
        .outerjoin(latest, latest.c.report_id == current.c.report_id)
    )
    rows = [_document(dict(row)) for row in conn.execute(query).mappings()]
    return sorted(rows, key=lambda row: (row.collection, row.name or "", row.report_id))


def month_summary(conn: Connection, month: str) -> MonthSummary:
    """The sums over the documents of ``month``, its uploads and its files."""
    documents = documents_of_month(conn, month)
    outcomes = Counter(row.state for row in documents)
    found = _uploads_by_state(conn, month)
    rejected = {reason: count for (state, reason), count in found.items() if state == "rejected"}
    files, size = _files(conn, month)
    unread = Counter(page.reason for page in unread_pages(conn, month))
    return MonthSummary(
        month=month,
        documents=len(documents),
        outcomes=dict(outcomes),
        unfinished=outcomes["queued"] + outcomes["running"],
        refused_by_reason=_reasons(documents, "failed_permanently"),
        dead_lettered_by_reason=_reasons(documents, "dead_lettered"),
        pages=sum(row.pages or 0 for row in documents if row.state == "succeeded"),
        drawn=sum(row.drawn for row in documents),
        archived=sum(row.archived for row in documents),
        collapsed=sum(row.collapsed for row in documents),
        decorative=sum(row.decorative for row in documents),
        consumed=sum(row.consumed for row in documents),
        not_shown=sum(row.not_shown for row in documents),
        quarantined=sum(row.quarantined + row.derived_quarantined for row in documents),
        quarantined_by_reason=_quarantined_by_reason(conn, month),
        derived=sum(row.derived_archived for row in documents),
        unread_pages=unread.total(),
        unread_by_reason=dict(sorted(unread.items())),
        unaccounted=sum(row.unaccounted for row in documents),
        receipts=sum(row.receipts for row in documents),
        objects=files,
        object_bytes=size,
        source_bytes=sum(row.source_bytes for row in documents),
        waiting_uploads=sum(count for (state, _), count in found.items() if state == "waiting"),
        duplicate_uploads=sum(count for (state, _), count in found.items() if state == "duplicate"),
        rejected_uploads=sum(rejected.values()),
        rejected_by_reason=rejected,
    )


def pages_of(conn: Connection, job_id: str) -> list[Page]:
    """Every recorded page of a job, in order, as extraction told it and completion settled it."""
    found: dict[int, list[Placement]] = defaultdict(list)
    query = select(placements).where(placements.c.job_id == job_id)
    for row in conn.execute(query.order_by(placements.c.page, placements.c.ordinal)).mappings().all():
        found[row["page"]].append(placement_of(row))
    recorded = conn.execute(select(pages).where(pages.c.job_id == job_id).order_by(pages.c.page)).mappings().all()
    return [page_of(row, found[row["page"]]) for row in recorded]


def pictures_of(conn: Connection, job_id: str) -> list[PictureRow]:
    """Every stored file that the placements of a job name, in the order in which they first come."""
    columns = (placements.c.name, placements.c.page, placements.c.picture, placements.c.display)
    named: dict[str, list[tuple[str, int]]] = defaultdict(list)
    originals, displays = set(), set()
    query = select(*columns).where(placements.c.job_id == job_id)
    for name, page, original, display in conn.execute(query.order_by(placements.c.page, placements.c.ordinal)):
        originals.add(original)
        displays.add(display)
        for digest in {original, display} - {None}:
            named[digest].append((name, page))
    used = select(placements.c.picture).where(placements.c.job_id == job_id)
    shown = select(placements.c.display).where(placements.c.job_id == job_id)
    facts = select(*[column for column in objects.c if column.name in PictureRow.__slots__])
    rows = conn.execute(facts.where(or_(objects.c.sha256.in_(used), objects.c.sha256.in_(shown)))).mappings()
    by_digest = {row["sha256"]: dict(row) for row in rows}
    return [
        PictureRow(
            **by_digest[digest] | {"has_alpha": bool(by_digest[digest]["has_alpha"])},
            renditions=(("original",) if digest in originals else ()) + (("display",) if digest in displays else ()),
            name=where[0][0],
            page=where[0][1],
            placements=len(where),
        )
        for digest, where in named.items()
    ]


def kept_files(conn: Connection, month: str) -> dict[str, dict[str, int]]:
    """Bytes of each file that the month's succeeded jobs name and keep, by job and digest."""
    named = _kept(month, "job_id").subquery()
    query = select(named.c.job_id, named.c.sha256, objects.c.bytes).join(objects, objects.c.sha256 == named.c.sha256)
    kept: dict[str, dict[str, int]] = defaultdict(dict)
    for job_id, sha256, size in conn.execute(query).all():
        kept[job_id][sha256] = size
    return dict(kept)


def attempts_in(conn: Connection, month: str) -> int:
    """How often a unit of ``month`` was tried: the same before and after a run that found nothing to do."""
    query = select(func.count()).select_from(attempts).join(jobs, jobs.c.job_id == attempts.c.job_id)
    return int(conn.execute(query.where(jobs.c.month == month)).scalar_one())


def quarantined_by_job(conn: Connection, month: str) -> dict[str, dict[str, int]]:
    """Held pictures of the month's current jobs: how many for each reason, by job."""
    current = current_jobs(month)
    query = (
        select(quarantine.c.job_id, quarantine.c.reason, func.count())
        .join(current, current.c.job_id == quarantine.c.job_id)
        .where(current.c.state == "succeeded", quarantine.c.state == "held", current.c.expired_at.is_(None))
        .group_by(quarantine.c.job_id, quarantine.c.reason)
        .order_by(quarantine.c.job_id, quarantine.c.reason)
    )
    held: dict[str, dict[str, int]] = defaultdict(dict)
    for job_id, reason, count in conn.execute(query):
        held[job_id][reason] = count
    return dict(held)


def unread_pages(conn: Connection, month: str) -> list[UnreadPage]:
    """Pages of the month's current jobs that could not be read, by job and page."""
    current = current_jobs(month)
    query = (
        select(pages.c.job_id, pages.c.page, pages.c.label, pages.c.reason)
        .join(current, current.c.job_id == pages.c.job_id)
        .where(current.c.state == "succeeded", pages.c.reason.is_not(None))
        .order_by(pages.c.job_id, pages.c.page)
    )
    return [UnreadPage(*row) for row in conn.execute(query)]


def shown_pictures(conn: Connection, month: str, limit: int) -> list[ShownPicture]:
    """Archived pictures of the month's succeeded jobs, to show a sample: first one of each document, then a second."""
    current = current_jobs(month)
    in_order = (placements.c.page, placements.c.ordinal)
    turn = func.row_number().over(partition_by=current.c.job_id, order_by=in_order).label("turn")
    ranked = (
        select(
            current.c.report_id,
            current.c.job_id,
            placements.c.name,
            placements.c.page,
            placements.c.display,
            objects.c.media_type,
            objects.c.bytes,
            objects.c.width,
            objects.c.height,
            current.c.collection,
            turn,
        )
        .join(placements, placements.c.job_id == current.c.job_id)
        .join(objects, objects.c.sha256 == placements.c.display)
        .where(current.c.state == "succeeded", placements.c.status == "archived", objects.c.state == "stored")
        .where(current.c.expired_at.is_(None))
        .subquery()
    )
    query = select(ranked).order_by(ranked.c.turn, ranked.c.collection, ranked.c.report_id).limit(limit)
    return [ShownPicture(*row[:-2]) for row in conn.execute(query)]


def input_digest(conn: Connection, month: str) -> str:
    """Data version of what came in: a digest over the reports of ``month`` and the bytes of each."""
    current = current_jobs(month)
    return _digest(conn.execute(select(current.c.report_id, current.c.source_hash)))


def content_digest(conn: Connection, month: str) -> str:
    """Data version of what came out: a digest over the newest manifest of each report of ``month``."""
    latest = latest_manifests(month)
    return _digest(conn.execute(select(latest.c.report_id, latest.c.content_digest)))


def _digest(rows: Iterable[Any]) -> str:
    lines = sorted(f"{report_id} {digest}\n" for report_id, digest in rows)
    return hashlib.sha256("".join(lines).encode("ascii")).hexdigest()


def _document(row: dict[str, Any]) -> DocumentRow:
    accounted = row.pop("accounted") or 0
    missing = (row["pages"] or 0) - accounted if row["state"] == "succeeded" else 0
    for name in (*COUNTS, "unread_pages", "receipts"):
        row[name] = int(row[name] or 0)
    return DocumentRow(**row, unaccounted=int(missing))


def _reasons(documents: Iterable[DocumentRow], state: str) -> dict[str, int]:
    return dict(Counter(row.reason or "" for row in documents if row.state == state))


def _quarantined_by_reason(conn: Connection, month: str) -> dict[str, int]:
    current = current_jobs(month)
    query = (
        select(quarantine.c.reason, func.count())
        .join(current, current.c.job_id == quarantine.c.job_id)
        .where(current.c.state == "succeeded", quarantine.c.state == "held", current.c.expired_at.is_(None))
        .group_by(quarantine.c.reason)
    )
    return dict(conn.execute(query).tuples().all())


def _uploads_by_state(conn: Connection, month: str) -> dict[tuple[str, str], int]:
    query = select(uploads.c.state, uploads.c.reason, func.count()).where(uploads.c.month == month)
    rows = conn.execute(query.group_by(uploads.c.state, uploads.c.reason))
    return {(state, reason or ""): count for state, reason, count in rows}


def _files(conn: Connection, month: str) -> tuple[int, int]:
    """Number and bytes of the different files that the month's succeeded jobs name and keep."""
    digests = _kept(month).subquery()
    query = select(func.count(), func.sum(objects.c.bytes)).join(digests, digests.c.sha256 == objects.c.sha256)
    count, size = conn.execute(query).one()
    return int(count), int(size or 0)


def _kept(month: str, *columns: str) -> CompoundSelect[Any]:
    """Digests of the files that the month's succeeded jobs name and keep, each once with those columns of its job."""
    current = current_jobs(month)

    def named(rendition: str) -> Select[Any]:
        told = (*[current.c[name] for name in columns], placements.c[rendition].label("sha256"))
        kept = (current.c.state == "succeeded", current.c.expired_at.is_(None))
        joined = select(*told).join(current, current.c.job_id == placements.c.job_id)
        return joined.where(*kept, placements.c[rendition].is_not(None))

    return union(named("picture"), named("display"))
