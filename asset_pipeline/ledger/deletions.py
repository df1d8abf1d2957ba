"""Deletions that can be proved: what is going is told first, then the bytes go, then it is told that they are gone.

``expire_jobs`` takes note of deadlines that have passed, ``intend`` tells which files go (an event, a row each, and
pictures on their way out as ``objects`` has it), ``settle`` ends a portion in the transaction that holds its rows
while the bytes go: tombstones and an event. Whatever stops a pass in between, the next one ends what was intended;
nothing goes that was not told before. What is put again, is owned again or came under a hold meanwhile is called off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, not_, select, update

from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.expiry import DueFile, DueJob, Kind, unkept_pictures, unkept_sources
from asset_pipeline.ledger.holds import deleting, is_held, keeps_unowned
from asset_pipeline.ledger.identity import new_id
from asset_pipeline.ledger.jobs import OPEN, refuse_job
from asset_pipeline.ledger.schema import deletions, jobs, objects, source_documents, units
from asset_pipeline.ledger.statements import insert_new
from asset_pipeline.ledger.tombstones import Tombstone, write_tombstones
from asset_pipeline.reasons import Reason


def expire_jobs(tx: Connection, due: Sequence[DueJob], now: datetime) -> list[str]:
    """Record that the time of these jobs of one month is over; which of them it is still true of.

    One that is still worked ends here, and its workers lose their leases: nothing of it comes in any more.
    """
    deleting(tx)
    wanted = sorted(row.job_id for row in due)
    # Units before the job, as everything that locks both.
    tx.execute(select(units.c.unit_id).where(units.c.job_id.in_(wanted)).order_by(units.c.unit_id).with_for_update())
    over = (jobs.c.archive_until <= now, jobs.c.expired_at.is_(None), not_(is_held()))
    query = select(jobs.c.job_id, jobs.c.state).where(jobs.c.job_id.in_(wanted), *over).order_by(jobs.c.job_id)
    found = tx.execute(query.with_for_update(key_share=True)).tuples().all()
    for job_id, state in found:
        if state in OPEN:
            refuse_job(tx, job_id, Reason.RETENTION_EXPIRED, now)
            ended = {"state": "failed", "reason": Reason.RETENTION_EXPIRED.value, "lease_until": None}
            late = (units.c.job_id == job_id, units.c.state.in_(("queued", "running")))
            tx.execute(update(units).where(*late).values(ended | {"fence": units.c.fence + 1}))
    expired = [job_id for job_id, _ in found]
    if expired:
        tx.execute(update(jobs).where(jobs.c.job_id.in_(expired)).values(expired_at=now))
        facts = {"count": len(expired), "jobs": expired}
        record_event(tx, "jobs_expired", month=due[0].month, payload=facts, now=now)
    return expired


def intend(tx: Connection, kind: Kind, found: Sequence[DueFile], now: datetime) -> list[DueFile]:
    """Tell that these files go, those that may still go: which ones. An event for each month."""
    deleting(tx)
    due = _still_due(tx, kind, found, now)
    for month, files in _by_month(due).items():
        deletion_id = new_id()
        rows = [_row(row) | {"deletion_id": deletion_id, "intended_at": now} for row in files]
        insert_new(tx, deletions, rows)
        if kind is Kind.PICTURE:
            tx.execute(update(objects).where(objects.c.sha256.in_(_digests(files))).values(state="deleting"))
        _tell(tx, "deletion_intended", deletion_id, kind, month, files, now)
    return due


def settle(
    tx: Connection,
    kind: Kind,
    found: Sequence[DueFile],
    delete_bytes: Callable[[Sequence[DueFile]], None],
    is_there: Callable[[DueFile], bool],
    now: datetime,
) -> list[DueFile]:
    """End intended deletions while their rows are held: the bytes go, or what may not go any more is called off.

    Returns what was deleted. Of what is called off, bytes that went before a pass was stopped are told as deleted:
    they are gone. Raises what ``delete_bytes`` raises; nothing is recorded then, and the intent stands.
    """
    deleting(tx)
    held = {row.key: row for row in _intents(tx, kind, [row.key for row in found])}
    mine = [row for row in found if row.key in held]
    due = _still_due(tx, kind, mine, now, state="deleting")
    stay = set(_keys(mine)) - set(_keys(due))
    off = [row for row in mine if row.key in stay and (_is_put_again(tx, row) or is_there(row))]
    gone = [row for row in mine if row.key in stay and row not in off]
    delete_bytes(due)
    _bury(tx, kind, [*due, *gone], held, now)
    if off:
        if kind is Kind.PICTURE:
            kept = (objects.c.sha256.in_(_digests(off)), objects.c.state == "deleting")
            tx.execute(update(objects).where(*kept).values(state="stored"))
        _drop(tx, kind, off)
        for (deletion_id, month), files in _by_intent(off, held).items():
            _tell(tx, "deletion_called_off", deletion_id, kind, month, files, now)
    return [*due, *gone]


def lock_source(tx: Connection, sha256: str) -> None:
    """Hold a source's row, if there is one: until the transaction ends nobody deletes its bytes."""
    tx.execute(select(source_documents.c.sha256).where(source_documents.c.sha256 == sha256).with_for_update())


def _still_due(
    tx: Connection, kind: Kind, found: Sequence[DueFile], now: datetime, *, state: str = "stored"
) -> list[DueFile]:
    """Those that may go, asked anew with their rows held: whoever held one until now may have named it."""
    if not found:
        return []
    digests = _digests(found)
    match kind:
        case Kind.PICTURE:
            query = select(objects.c.sha256, objects.c.state).where(objects.c.sha256.in_(digests))
            locked = tx.execute(query.order_by(objects.c.sha256).with_for_update()).tuples()
            some = [digest for digest, known in locked if known == state]
            due = unkept_pictures(tx, some, now) if some else []
        case Kind.SOURCE:
            query = select(source_documents.c.sha256).where(source_documents.c.sha256.in_(digests))
            some = list(tx.execute(query.order_by(source_documents.c.sha256).with_for_update()).scalars())
            due = unkept_sources(tx, some, now)
        case Kind.QUARANTINE:
            due = [] if keeps_unowned(tx) else list(found)
    free = set(_keys(due))
    return [row for row in found if row.key in free]


def _is_put_again(tx: Connection, row: DueFile) -> bool:
    """Whether somebody who holds the right bytes put the picture again since the intent."""
    if row.kind is not Kind.PICTURE:
        return False
    return tx.execute(select(objects.c.state).where(objects.c.sha256 == row.sha256)).scalar() == "stored"


def _bury(tx: Connection, kind: Kind, gone: Sequence[DueFile], intents: Mapping[str, Any], now: datetime) -> None:
    if not gone:
        return
    if kind is Kind.PICTURE:
        tx.execute(update(objects).where(objects.c.sha256.in_(_digests(gone))).values(state="deleted"))
    if kind is Kind.SOURCE:
        tx.execute(update(source_documents).where(source_documents.c.sha256.in_(_digests(gone))).values(stored=0))
    write_tombstones(
        tx,
        [
            Tombstone(
                intents[row.key].deletion_id,
                kind.value,
                row.sha256,
                row.bytes,
                row.job_id,
                row.month,
                row.why,
                row.deadline,
                intents[row.key].intended_at,
                now,
            )
            for row in gone
        ],
    )
    _drop(tx, kind, gone)
    for (deletion_id, month), files in _by_intent(gone, intents).items():
        _tell(tx, "deleted", deletion_id, kind, month, files, now)


def _intents(tx: Connection, kind: Kind, keys: Sequence[str]) -> Iterable[Any]:
    query = select(deletions.c.key, deletions.c.deletion_id, deletions.c.intended_at)
    query = query.where(deletions.c.kind == kind.value, deletions.c.key.in_(keys)).order_by(deletions.c.key)
    return tx.execute(query.with_for_update()).all()


def _drop(tx: Connection, kind: Kind, files: Sequence[DueFile]) -> None:
    tx.execute(delete(deletions).where(deletions.c.kind == kind.value, deletions.c.key.in_(_keys(files))))


def _tell(
    tx: Connection, event: str, deletion_id: str, kind: Kind, month: str | None, files: Sequence[DueFile], now: datetime
) -> None:
    """An event names every file by digest, with the last job that it was kept for."""
    facts = {
        "deletion_id": deletion_id,
        "kind": kind.value,
        "reason": files[0].why,
        "count": len(files),
        "bytes": sum(row.bytes for row in files),
        "objects": [[row.sha256, row.job_id] for row in files],
    }
    record_event(tx, event, month=month, payload=facts, now=now)


def _row(row: DueFile) -> dict[str, Any]:
    return {name: getattr(row, name) for name in DueFile.__slots__} | {"kind": row.kind.value}


def _by_month(files: Iterable[DueFile]) -> dict[str | None, list[DueFile]]:
    found: dict[str | None, list[DueFile]] = defaultdict(list)
    for row in files:
        found[row.month].append(row)
    return found


def _by_intent(files: Iterable[DueFile], intents: Mapping[str, Any]) -> dict[tuple[str, str | None], list[DueFile]]:
    found: dict[tuple[str, str | None], list[DueFile]] = defaultdict(list)
    for row in files:
        found[intents[row.key].deletion_id, row.month].append(row)
    return found


def _digests(files: Iterable[DueFile]) -> list[str]:
    return [row.sha256 for row in files]


def _keys(files: Iterable[DueFile]) -> list[str]:
    return [row.key for row in files]
