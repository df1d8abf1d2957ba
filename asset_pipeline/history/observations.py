"""What the ledger knows about how the work goes: the queries behind the measures, the checks and the alerts.

Reads only, and one moment at a time: what is told as "now" needs the moment passed in. Percentiles are nearest rank.
What a figure is worth (budgets, classes) belongs in ``measures``.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from asset_pipeline.ledger import breaches
from asset_pipeline.ledger.schema import attempts, jobs, manifests, placements, source_documents, units, uploads

DELIVERED = ("published", "acknowledged")


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at: one month, or everything that happened since a moment, or both."""

    month: str | None = None
    since: datetime | None = None

    def of(self, month: ColumnElement[str], moment: ColumnElement[datetime]) -> list[ColumnElement[bool]]:
        """The conditions on a query with these two columns."""
        wanted = [] if self.month is None else [month == self.month]
        return wanted if self.since is None else [*wanted, moment >= self.since]


@dataclass(slots=True)
class Attempts:
    """Attempts that ended: seconds of each stage, and what was noted beside."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    breached: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    retries: Counter[str] = field(default_factory=Counter)
    first: int = 0
    first_delivered: int = 0
    count: int = 0
    peak_rss_bytes: int = 0
    bytes_written: list[int] = field(default_factory=list)

    @property
    def first_attempt_share(self) -> float | None:
        """Units whose first attempt delivered a validated result, of all that were attempted; None for none."""
        return self.first_delivered / self.first if self.first else None


@dataclass(frozen=True, slots=True)
class Waiting:
    """Work that is queued now. Ages are in seconds; an empty queue has none."""

    ages: Sequence[float]
    by_collection: dict[str, int]
    bytes: int
    pages: int

    @property
    def oldest(self) -> float:
        """Age of the oldest job that has not ended, 0 when there is none."""
        return max(self.ages, default=0.0)


@dataclass(frozen=True, slots=True)
class Done:
    """Work that ended."""

    documents: int
    bytes: int
    pages: int
    pictures: int


def percentile(values: Iterable[float], share: float) -> float | None:
    """The value that ``share`` (0 to 1) of ``values`` do not exceed, itself one of them; None of none."""
    ranked = sorted(values)
    return ranked[max(math.ceil(share * len(ranked)), 1) - 1] if ranked else None


def ended_attempts(conn: Connection, scope: Scope) -> Attempts:
    """Every attempt that ended in ``scope``."""
    names = ("fence", "outcome", "reason", "fetch_ms", "decode_ms", "publish_ms", "peak_rss_bytes", "bytes_written")
    query = (
        select(*(attempts.c[name] for name in names), attempts.c.breach)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(attempts.c.ended_at.is_not(None), *scope.of(jobs.c.month, attempts.c.started_at))
    )
    found = Attempts()
    for row in conn.execute(query.execution_options(yield_per=5_000)):
        found.count += 1
        found.first += row.fence == 1
        found.first_delivered += row.fence == 1 and row.outcome in DELIVERED
        if row.outcome in ("retried", "fenced"):
            found.retries[row.reason or ""] += 1
        for stage in ("fetch", "decode", "publish"):
            spent = getattr(row, f"{stage}_ms")
            if spent is not None:
                found.seconds[stage].append(spent / 1000)
        for stage, kind in breaches.read(row.breach).items():
            found.breached[stage][kind] += 1
        found.peak_rss_bytes = max(found.peak_rss_bytes, row.peak_rss_bytes or 0)
        if row.bytes_written is not None:
            found.bytes_written.append(row.bytes_written)
    return found


def queue_seconds(conn: Connection, scope: Scope) -> list[float]:
    """Of each job that was begun: from queued to the first attempt at it."""
    query = (
        select(jobs.c.queued_at, func.min(attempts.c.started_at))
        .join(attempts, attempts.c.job_id == jobs.c.job_id)
        .where(*scope.of(jobs.c.month, jobs.c.queued_at))
        .group_by(jobs.c.job_id, jobs.c.queued_at)
    )
    return [_seconds(*row) for row in conn.execute(query).tuples()]


def admission_seconds(conn: Connection, scope: Scope) -> list[float]:
    """Of each upload that was taken in: from its first sight to its job."""
    query = select(uploads.c.first_seen_at, uploads.c.admitted_at).where(
        uploads.c.admitted_at.is_not(None), *scope.of(uploads.c.month, uploads.c.admitted_at)
    )
    return [_seconds(*row) for row in conn.execute(query).tuples()]


def completion_seconds(conn: Connection, scope: Scope) -> list[float]:
    """Of each job that ended: from queued to its end."""
    query = select(jobs.c.queued_at, jobs.c.finished_at).where(
        jobs.c.finished_at.is_not(None), *scope.of(jobs.c.month, jobs.c.finished_at)
    )
    return [_seconds(*row) for row in conn.execute(query).tuples()]


def end_to_end_seconds(conn: Connection, scope: Scope) -> list[float]:
    """Of each job with a manifest: from the first sight of its upload to the first manifest that tells of it."""
    seen = (
        select(uploads.c.job_id, func.min(uploads.c.first_seen_at).label("at"))
        .where(uploads.c.state == "admitted")
        .group_by(uploads.c.job_id)
        .subquery()
    )
    query = (
        select(seen.c.at, func.min(manifests.c.published_at))
        .join(manifests, manifests.c.job_id == seen.c.job_id)
        .where(*scope.of(manifests.c.month, manifests.c.published_at))
        .group_by(seen.c.job_id, seen.c.at)
    )
    return [_seconds(*row) for row in conn.execute(query).tuples()]


def waiting_work(conn: Connection, now: datetime, month: str | None = None) -> Waiting:
    """Jobs that have not ended: queued, or with a unit that nobody works on."""
    idle = select(units.c.unit_id).where(units.c.job_id == jobs.c.job_id, units.c.state == "queued").exists()
    query = (
        select(jobs.c.collection, jobs.c.queued_at, jobs.c.pages, source_documents.c.bytes)
        .join(source_documents, source_documents.c.sha256 == jobs.c.source_hash)
        .where(
            or_(jobs.c.state == "queued", and_(jobs.c.state == "running", idle)),
            *Scope(month).of(jobs.c.month, jobs.c.queued_at),
        )
    )
    rows = conn.execute(query).all()
    return Waiting(
        ages=[_seconds(row.queued_at, now) for row in rows],
        by_collection=dict(sorted(Counter(row.collection for row in rows).items())),
        bytes=sum(row.bytes for row in rows),
        pages=sum(row.pages or 0 for row in rows),
    )


def done_work(conn: Connection, scope: Scope) -> Done:
    """Documents that ended in ``scope``, and what they held."""
    ended = [jobs.c.finished_at.is_not(None), *scope.of(jobs.c.month, jobs.c.finished_at)]
    documents, size, pages = conn.execute(
        select(func.count(), func.sum(source_documents.c.bytes), func.sum(jobs.c.pages))
        .select_from(jobs)
        .join(source_documents, source_documents.c.sha256 == jobs.c.source_hash)
        .where(*ended)
    ).one()
    pictures = conn.execute(
        select(func.count())
        .select_from(placements)
        .join(jobs, jobs.c.job_id == placements.c.job_id)
        .where(placements.c.status == "archived", *ended)
    ).scalar_one()
    return Done(int(documents), int(size or 0), int(pages or 0), int(pictures))


def dead_letters(conn: Connection, scope: Scope) -> dict[tuple[str, str], list[tuple[str, datetime]]]:
    """Jobs that were given up, with the moment, by month and reason."""
    query = (
        select(jobs.c.month, jobs.c.reason, jobs.c.job_id, jobs.c.finished_at)
        .where(jobs.c.state == "dead_lettered", *scope.of(jobs.c.month, jobs.c.finished_at))
        .order_by(jobs.c.month, jobs.c.reason, jobs.c.job_id)
    )
    found: dict[tuple[str, str], list[tuple[str, datetime]]] = defaultdict(list)
    for month, reason, job_id, ended in conn.execute(query):
        found[month, reason or ""].append((job_id, ended))
    return dict(found)


def _seconds(began: datetime, ended: datetime) -> float:
    return max((ended - began).total_seconds(), 0.0)
