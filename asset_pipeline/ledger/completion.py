"""Ends a job when its units are done: derives what only the whole document can tell, and checks the account.

Units come back in any order, from any machine, so ``collapsed`` is derived here, over all pages, by the
same rule as the small ``extract`` path. A job succeeds only when every page is accounted for; one that
is not is an incident: it is dead-lettered, or every later run of its month would stumble over it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, select, update

from asset_pipeline.account import collapse_repeats, unaccounted
from asset_pipeline.errors import IntegrityError
from asset_pipeline.ledger.incidents import Incident
from asset_pipeline.ledger.jobs import dead_letter_job, end_job, job_of, refuse_job
from asset_pipeline.ledger.next_action import is_verdict
from asset_pipeline.ledger.rows import counts_of, page_of
from asset_pipeline.ledger.schema import pages, placements, units
from asset_pipeline.ledger.statements import portions
from asset_pipeline.model import Flag, Kind, Page, Placement, Status
from asset_pipeline.reasons import Reason


def complete_job(tx: Connection, job_id: str, now: datetime) -> bool:
    """End a running job if its units allow it. True when this call ended it.

    A failed unit ends the job at once: what the others would still deliver is not waited for, or a hostile
    document could keep every worker busy with each of its page ranges. Raises IntegrityError when a page is
    unaccounted for; the job is a dead letter then.
    """
    job = job_of(tx, job_id, lock=True)
    if job["state"] != "running":
        return False
    planned = tx.execute(
        select(units.c.state, units.c.reason).where(units.c.job_id == job_id).order_by(units.c.sequence)
    ).all()
    for state, reason in planned:
        if state == "failed":
            return _fail(tx, job_id, Reason(reason), now)
    if not planned or any(state != "done" for state, _ in planned):
        return False
    return _succeed(tx, job, now)


def _fail(tx: Connection, job_id: str, reason: Reason, now: datetime) -> bool:
    end = refuse_job if is_verdict(reason) else dead_letter_job
    return end(tx, job_id, reason, now)


def settle_again(tx: Connection, job: RowMapping) -> None:
    """Derive the account of a job that succeeded anew, after one of its placements has changed.

    The caller holds the job's row. Raises IntegrityError when a page would not add up; nothing of the transaction
    stands then.
    """
    job_id = job["job_id"]
    read = list(_accounts(tx, job_id))
    settled = collapse_repeats(read)
    if unaccounted(settled, job["pages"]):
        raise IntegrityError("The account of the document would not add up.", "Tell the developers.")
    _update_pages(tx, job_id, read, settled)
    _update_placements(tx, job_id, read, settled)


def _succeed(tx: Connection, job: RowMapping, now: datetime) -> bool:
    job_id = job["job_id"]
    read = list(_accounts(tx, job_id))
    settled = collapse_repeats(read)
    page_count = max((page.page for page in read), default=0) if job["pages"] is None else job["pages"]
    # Counting again would hide an engine that counted other than it listed.
    miscounted = {before.page for before, after in zip(read, settled, strict=True) if before.drawn != after.drawn}
    wrong = sorted(miscounted.union(unaccounted(settled, page_count)))
    beyond = sum(page.page > page_count for page in read)
    if wrong or beyond:
        raise _unaccounted(job_id, len(wrong) + beyond, now)
    _update_pages(tx, job_id, read, settled)
    _update_placements(tx, job_id, read, settled)
    return end_job(tx, job_id, "succeeded", "job_succeeded", now, None, {"pages": page_count}, _totals(settled))


def _unaccounted(job_id: str, count: int, now: datetime) -> IntegrityError:
    def record(tx: Connection) -> None:
        dead_letter_job(tx, job_id, Reason.INTERNAL_ERROR, now)

    what = f"The account of a document does not add up on {count} of its pages."
    return Incident(what, "Tell the developers.", Reason.INTERNAL_ERROR, record)


def _accounts(tx: Connection, job_id: str) -> Iterator[Page]:
    """Pages in order with only what the account needs of each placement: thousands of pages fit in memory."""
    columns = [placements.c[name] for name in ("page", "name", "kind", "status", "picture")]
    query = select(*columns, placements.c.detail["flags"].label("flags")).where(placements.c.job_id == job_id)
    found = tx.execute(query.order_by(placements.c.page, placements.c.ordinal)).mappings()
    of_page: dict[int, list[Placement]] = {}
    for row in found:
        of_page.setdefault(row["page"], []).append(_light(row))
    for page in tx.execute(select(pages).where(pages.c.job_id == job_id).order_by(pages.c.page)).mappings():
        yield page_of(page, ()).model_copy(update={"placements": of_page.pop(page["page"], [])})


_NOT_ASKED: dict[str, Any] = {
    "object_id": None,
    "width": 0,
    "height": 0,
    "filter": [],
    "colour_space": None,
    "bits": None,
    "matrix": (0, 0, 0, 0, 0, 0),
    "bbox": (0, 0, 0, 0),
    "display_bbox": (0, 0, 0, 0),
    "visible": 0,
    "ppi": (0, 0),
    "print_mm": (0, 0),
    "parts": [],
    "display": None,
}
"""What the account does not look at; shared by all rows, never written back."""

_NO_FIELDS: set[str] = set()
"""Shared too: a set a row would double the memory of a long document."""


def _light(row: RowMapping) -> Placement:
    return Placement.model_construct(
        _fields_set=_NO_FIELDS,
        **_NOT_ASKED,
        name=row["name"],
        kind=Kind(row["kind"]),
        status=Status(row["status"]),
        picture=row["picture"],
        flags=[Flag(flag) for flag in row["flags"]],
    )


def _update_pages(tx: Connection, job_id: str, read: Sequence[Page], settled: Sequence[Page]) -> None:
    changed = [
        {"of_job": job_id, "of_page": after.page} | counts_of(after)
        for before, after in zip(read, settled, strict=True)
        if counts_of(before) != counts_of(after)
    ]
    if changed:
        statement = update(pages).where(pages.c.job_id == bindparam("of_job"), pages.c.page == bindparam("of_page"))
        tx.execute(statement, changed)


def _update_placements(tx: Connection, job_id: str, read: Sequence[Page], settled: Sequence[Page]) -> None:
    changed = {
        after.name: after
        for old, new in zip(read, settled, strict=True)
        for before, after in zip(old.placements, new.placements, strict=True)
        if (before.status, before.flags) != (after.status, after.flags)
    }
    statement = update(placements).where(
        placements.c.job_id == bindparam("of_job"), placements.c.name == bindparam("of_name")
    )
    for some in portions(sorted(changed)):
        query = select(placements.c.name, placements.c.detail)
        details = tx.execute(query.where(placements.c.job_id == job_id, placements.c.name.in_(some)))
        rows = [
            {
                "of_job": job_id,
                "of_name": name,
                "status": changed[name].status.value,
                "detail": detail | {"flags": [flag.value for flag in changed[name].flags]},
            }
            for name, detail in details
        ]
        tx.execute(statement.values(status=bindparam("status"), detail=bindparam("detail")), rows)


def _totals(settled: Sequence[Page]) -> dict[str, int]:
    totals: Counter[str] = Counter(pages=len(settled))
    for page in settled:
        totals.update({name: value for name, value in counts_of(page).items() if value})
    return dict(totals)
