"""Legal holds: what must not be deleted, whatever its deadline says. Every path that deletes asks here.

A hold covers a report, a collection, a month or everything, also what comes in later, until it is lifted. What a
deletion may touch is asked in the transaction that deletes, after ``deleting`` has been called there: setting a hold
waits for deletions that are under way, and once it is set nothing that it covers goes any more. Material that belongs
to no report (files that nothing names, the quarantine store) may belong to a held one: it stays while any hold is in
force. Working copies of ended processes and half-written files are copies; only a hold on everything keeps them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, and_, exists, insert, or_, select, text, update

from asset_pipeline.errors import UsageError
from asset_pipeline.evidence.actor import current_actor
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.identity import derived_id, new_id
from asset_pipeline.ledger.schema import holds, jobs

HOLD_LOCK = 5_180_926_317_431_808
"""Key of the PostgreSQL advisory lock that deletions share and that setting a hold takes for itself."""

_CODE = re.compile(r"[a-z][a-z0-9_-]{0,63}")


class Scope(StrEnum):
    """What a hold covers."""

    REPORT = "report"
    COLLECTION = "collection"
    MONTH = "month"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold as it was set, and how it was lifted. ``subject`` None: everything."""

    hold_id: str
    scope: Scope
    subject: str | None
    why: str
    set_at: datetime
    set_by: str
    lifted_at: datetime | None
    lifted_by: str | None
    lifted_why: str | None


def set_hold(tx: Connection, scope: Scope, subject: str | None, why: str, now: datetime) -> str:
    """Set a hold, by whoever acts; its id. ``why`` is a code, as ``litigation``. Raises UsageError."""
    _check(why)
    _lock(tx, shared=False)
    hold_id = new_id()
    row = {"hold_id": hold_id, "scope": scope.value, "subject": subject, "why": why}
    tx.execute(insert(holds).values(**row, set_at=now, set_by=current_actor().name))
    record_event(tx, "hold_set", month=_month(scope, subject), payload=_facts(hold_id, scope, subject, why), now=now)
    return hold_id


def lift_hold(tx: Connection, hold_id: str, why: str, now: datetime) -> bool:
    """Lift a hold that is in force. False when there is none of that id. Raises UsageError."""
    _check(why)
    in_force = (holds.c.hold_id == hold_id, holds.c.lifted_at.is_(None))
    lifted = update(holds).where(*in_force).values(lifted_at=now, lifted_by=current_actor().name, lifted_why=why)
    row = tx.execute(lifted.returning(holds.c.scope, holds.c.subject)).one_or_none()
    if row is None:
        return False
    scope = Scope(row.scope)
    payload = _facts(hold_id, scope, row.subject, why)
    record_event(tx, "hold_lifted", month=_month(scope, row.subject), payload=payload, now=now)
    return True


def list_holds(conn: Connection, *, lifted: bool = False) -> list[Hold]:
    """Holds in force, oldest first; with ``lifted`` also those of the past."""
    query = select(holds).order_by(holds.c.set_at, holds.c.hold_id)
    if not lifted:
        query = query.where(holds.c.lifted_at.is_(None))
    return [Hold(**row | {"scope": Scope(row["scope"])}) for row in map(dict, conn.execute(query).mappings())]


def deleting(tx: Connection) -> None:
    """Say that this transaction deletes: until it ends, nobody sets a hold."""
    _lock(tx, shared=True)


def is_held() -> ColumnElement[bool]:
    """Condition on a row of ``jobs``: a hold covers it."""
    covers = or_(
        holds.c.scope == Scope.ALL.value,
        and_(holds.c.scope == Scope.REPORT.value, holds.c.subject == jobs.c.report_id),
        and_(holds.c.scope == Scope.COLLECTION.value, holds.c.subject == jobs.c.collection),
        and_(holds.c.scope == Scope.MONTH.value, holds.c.subject == jobs.c.month),
    )
    return exists(select(holds.c.hold_id).where(holds.c.lifted_at.is_(None), covers).correlate(jobs))


def keeps_unowned(conn: Connection) -> bool:
    """Whether material that belongs to no report has to stay: any hold is in force."""
    return conn.execute(select(holds.c.hold_id).where(holds.c.lifted_at.is_(None)).limit(1)).first() is not None


def keeps_everything(conn: Connection) -> bool:
    """Whether nothing at all may be deleted."""
    everything = (holds.c.lifted_at.is_(None), holds.c.scope == Scope.ALL.value)
    return conn.execute(select(holds.c.hold_id).where(*everything).limit(1)).first() is not None


def _lock(tx: Connection, *, shared: bool) -> None:
    """On SQLite there is one writing transaction at a time anyway."""
    if tx.dialect.name == "postgresql":
        how = "pg_advisory_xact_lock_shared" if shared else "pg_advisory_xact_lock"
        tx.execute(text(f"SELECT {how}(:key)"), {"key": HOLD_LOCK})


def _check(why: str) -> None:
    if not _CODE.fullmatch(why):
        raise UsageError("A reason is a short code.", "Use lower-case letters, digits, _ and -, as in `litigation`.")


def _facts(hold_id: str, scope: Scope, subject: str | None, why: str) -> dict[str, str | None]:
    """What events say: a collection is a name somebody chose, so it is told by its digest."""
    told = derived_id("collection", subject) if scope is Scope.COLLECTION and subject is not None else subject
    return {"hold_id": hold_id, "scope": scope.value, "subject": told, "reason": why}


def _month(scope: Scope, subject: str | None) -> str | None:
    return subject if scope is Scope.MONTH else None
