"""Rows of the history out of the ledger, a page at a time: memory does not grow with the log.

Newest first where a table has times, so that a limit means the latest; pictures come in the order of their documents.
Each page is a reading transaction of its own, because one that lasts as long as somebody reads would keep a
database from cleaning up. Rows are plain values by the names in ``columns``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, select, tuple_

from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import (
    attempts,
    audit_events,
    jobs,
    manifests,
    objects,
    pages,
    placements,
    units,
    uploads,
)

Row = dict[str, Any]

PAGE = 2_000


def attempt_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Attempts at units of work, the latest first. ``since`` is about their start."""
    query = (
        select(
            attempts,
            *(
                jobs.c[name]
                for name in ("month", "collection", "report_id", "engine", "extractor_version", "queued_at")
            ),
            units.c.first_page,
            units.c.last_page,
        )
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .join(units, units.c.unit_id == attempts.c.unit_id)
        .where(*_in(jobs.c.month, month), *_from(attempts.c.started_at, since))
    )
    for row in islice(_paged(inst, query, (attempts.c.started_at, attempts.c.attempt_id)), limit):
        row["queued_ms"] = _milliseconds(row.pop("queued_at"), row["started_at"])
        row["collection"] = row["collection"] if inst.policy.show_names else None
        del row["attempt_id"]
        yield row


def retry_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Attempts that were given back to be tried again, the latest first, with what came of it."""
    following = attempts.alias("following")
    query = (
        select(
            attempts.c.ended_at.label("at"),
            *(attempts.c[name] for name in ("attempt_id", "started_at", "job_id", "unit_id", "fence", "reason")),
            jobs.c.month,
            jobs.c.report_id,
            following.c.outcome.label("next_outcome"),
            following.c.started_at.label("next_at"),
        )
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .outerjoin(
            following,
            and_(following.c.unit_id == attempts.c.unit_id, following.c.fence == attempts.c.fence + 1),
        )
        .where(attempts.c.outcome.in_(("retried", "fenced")))
        .where(*_in(jobs.c.month, month), *_from(attempts.c.started_at, since))
    )
    for row in islice(_paged(inst, query, (attempts.c.started_at, attempts.c.attempt_id)), limit):
        row["waited_ms"] = _milliseconds(row["at"], row.pop("next_at"))
        del row["started_at"], row["attempt_id"]
        yield row


def event_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Audit events, the latest first."""
    columns = [audit_events.c[name] for name in ("seq", "at", "type", "month", "job_id", "payload")]
    query = select(*columns).where(*_in(audit_events.c.month, month), *_from(audit_events.c.at, since))
    yield from islice(_paged(inst, query, (audit_events.c.seq,)), limit)


def edition_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Manifests that were published, the latest first."""
    names = ("published_at", "month", "report_id", "job_id", "edition", "content_digest", "digest", "previous_digest")
    seen = select(func.min(uploads.c.first_seen_at)).where(uploads.c.job_id == manifests.c.job_id).scalar_subquery()
    before, its_job = manifests.alias("before"), jobs.alias("its_job")
    why = case(
        (manifests.c.edition == 1, "first"),
        (and_(manifests.c.deleted_at.is_not(None), before.c.deleted_at.is_(None)), "expired"),
        (jobs.c.revision > its_job.c.revision, "new_revision"),
        (manifests.c.job_id != before.c.job_id, "read_again"),
        else_="changed",
    )
    query = (
        select(*(manifests.c[name] for name in names), jobs.c.revision, seen.label("first_seen_at"), why.label("why"))
        .join(jobs, jobs.c.job_id == manifests.c.job_id)
        .outerjoin(
            before,
            and_(before.c.report_id == manifests.c.report_id, before.c.edition == manifests.c.edition - 1),
        )
        .outerjoin(its_job, its_job.c.job_id == before.c.job_id)
        .where(*_in(manifests.c.month, month), *_from(manifests.c.published_at, since))
    )
    keys = (manifests.c.published_at, manifests.c.report_id, manifests.c.edition)
    yield from islice(_paged(inst, query, keys), limit)


def page_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Pages of the current documents that were read, by month, document and page. ``since`` as for pictures."""
    yield from islice(_of_documents(inst, month, since, _pages_of), limit)


def picture_rows(
    inst: Installation, *, month: str | None = None, since: datetime | None = None, limit: int | None = None
) -> Iterator[Row]:
    """Placements of pictures in the current documents, by month, document, page and paint order.

    ``since`` is about the end of the document's job.
    """
    yield from islice(_of_documents(inst, month, since, _pictures_of), limit)


def _of_documents(
    inst: Installation,
    month: str | None,
    since: datetime | None,
    rows_of: Callable[[Installation, reading.DocumentRow], Iterator[Row]],
) -> Iterator[Row]:
    for known in [month] if month else _months(inst):
        with inst.ledger.read() as conn:
            documents = reading.documents_of_month(conn, known)
        for document in documents:
            finished = document.finished_at
            if document.state == "succeeded" and finished and (since is None or finished >= since):
                yield from rows_of(inst, document)


def _document(inst: Installation, document: reading.DocumentRow) -> Row:
    named = inst.policy.show_names
    return {
        "month": document.month,
        "collection": document.collection if named else None,
        "report_id": document.report_id,
        "document": document.name if named else None,
        "job_id": document.job_id,
    }


def _pages_of(inst: Installation, document: reading.DocumentRow) -> Iterator[Row]:
    columns = [column for column in pages.c if column.name not in ("job_id", "unit_id", "unit_kind")]
    query = select(*columns).where(pages.c.job_id == document.job_id)
    of_document = _document(inst, document)
    for row in _paged(inst, query, (pages.c.page,), descending=False):
        row["label"] = row["label"] if inst.policy.show_names else None
        yield of_document | row


def _pictures_of(inst: Installation, document: reading.DocumentRow) -> Iterator[Row]:
    named = inst.policy.show_names
    versions = {"revision": document.revision, "extractor_version": document.extractor_version}
    of_document = _document(inst, document) | versions
    facts = [placements.c[name] for name in ("page", "ordinal", "name", "kind", "status", "reason", "picture")]
    query = (
        select(
            *facts,
            *(placements.c[name] for name in ("display", "width", "height", "detail")),
            objects.c.media_type,
            objects.c.bytes,
        )
        .outerjoin(objects, objects.c.sha256 == placements.c.picture)
        .where(placements.c.job_id == document.job_id)
    )
    for row in _paged(inst, query, (placements.c.page, placements.c.ordinal), descending=False):
        detail = row.pop("detail")
        del row["ordinal"]
        row["visible"] = detail.get("visible")
        row["ppi"] = min(detail.get("ppi") or [None])
        row["caption"] = detail.get("caption") if named else None
        row["alt"] = detail.get("alt") if named else None
        yield of_document | row


def _months(inst: Installation) -> list[str]:
    with inst.ledger.read() as conn:
        return reading.months(conn)


def _paged(
    inst: Installation, query: Select[Any], keys: Sequence[ColumnElement[Any]], *, descending: bool = True
) -> Iterator[Row]:
    """All rows of ``query``, which selects the unique ``keys``, in their order; ``PAGE`` rows in memory."""
    names = [key.key for key in keys]
    order = [key.desc() if descending else key.asc() for key in keys]
    last: list[Any] | None = None
    while True:
        page = query.order_by(*order).limit(PAGE)
        if last is not None:
            # Spelled with the columns' types: a bare moment would be written in another form than it is stored in.
            reached = tuple_(*(literal(value, key.type) for value, key in zip(last, keys, strict=True)))
            page = page.where(tuple_(*keys) < reached if descending else tuple_(*keys) > reached)
        with inst.ledger.read() as conn:
            rows = [dict(row) for row in conn.execute(page).mappings()]
        for row in rows:
            last = [row[str(name)] for name in names]
            yield row
        if len(rows) < PAGE:
            return


def _in(column: ColumnElement[Any], month: str | None) -> list[ColumnElement[bool]]:
    return [] if month is None else [column == month]


def _from(column: ColumnElement[Any], since: datetime | None) -> list[ColumnElement[bool]]:
    return [] if since is None else [column >= since]


def _milliseconds(began: datetime | None, ended: datetime | None) -> float | None:
    return None if began is None or ended is None else round((ended - began).total_seconds() * 1000, 3)


ROWS: dict[str, Callable[..., Iterator[Row]]] = {
    "attempts": attempt_rows,
    "pictures": picture_rows,
    "events": event_rows,
    "retries": retry_rows,
    "pages": page_rows,
    "editions": edition_rows,
}
