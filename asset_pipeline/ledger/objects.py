"""Which stored files there are, and how one that nothing names goes: stored → deleting → deleted.

Deleting bytes and naming them must exclude each other, so both lock the object's row. A publication holds every row
it names (``hold_objects``) and fails when one is on its way out; a deletion marks rows that nothing names, and later,
in a transaction that holds the row while the bytes go, takes only those that still wait to be deleted. Whoever needs
such a file puts it again while holding the row (``lock_object``, ``mark_stored``). Bytes belong in ``archive``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, or_, select, update

from asset_pipeline.errors import StorageError
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.rows import object_row
from asset_pipeline.ledger.schema import deletions, jobs, objects, placements
from asset_pipeline.ledger.statements import insert_new, portions
from asset_pipeline.model import Picture
from asset_pipeline.reasons import Reason

_UNKNOWN: dict[str, Any] = {
    "media_type": "unknown",
    "width": 0,
    "height": 0,
    "bits": 0,
    "mode": "",
    "has_alpha": 0,
    "state": "deleting",
    "stored_at": datetime(1970, 1, 1, tzinfo=UTC),
}


class ObjectsSwept(StorageError):
    """Files of a result were deleted after they were looked for: another attempt puts them again."""

    def __init__(self) -> None:
        super().__init__("Files of a result are being deleted.", "It is tried again by itself.", Reason.LEASE_CONFLICT)


def object_states(conn: Connection, digests: Iterable[str]) -> dict[str, str]:
    """The state of those of ``digests`` that are known."""
    known: dict[str, str] = {}
    for some in portions(sorted(set(digests))):
        query = select(objects.c.sha256, objects.c.state).where(objects.c.sha256.in_(some))
        known.update(conn.execute(query).tuples().all())
    return known


def hold_objects(tx: Connection, pictures: Iterable[Picture], now: datetime) -> None:
    """Record files that are stored, and keep all of them from being deleted until the transaction ends.

    Raises ObjectsSwept when one is being deleted or is gone. Sorted, so that two publications that share pictures
    lock them in the same order.
    """
    rows = {picture.sha256: _stored_row(picture, now) for picture in pictures}
    insert_new(tx, objects, [rows[digest] for digest in sorted(rows)])
    for some in portions(sorted(rows)):
        held = select(objects.c.state).where(objects.c.sha256.in_(some)).order_by(objects.c.sha256)
        if any(state != "stored" for state in tx.execute(held.with_for_update(read=True)).scalars()):
            raise ObjectsSwept


def lock_object(tx: Connection, sha256: str) -> str | None:
    """State of a file that nobody else changes until the transaction ends; None when it is not known."""
    return tx.execute(select(objects.c.state).where(objects.c.sha256 == sha256).with_for_update()).scalar()


def mark_stored(tx: Connection, picture: Picture, now: datetime) -> None:
    """Record that a file is there again. The caller holds its row and has put the bytes."""
    row = _stored_row(picture, now)
    tx.execute(update(objects).where(objects.c.sha256 == picture.sha256).values(row))


def unnamed_of(conn: Connection, digests: Sequence[str]) -> list[str]:
    """Those of ``digests`` that no placement names, known or not.

    Expired jobs do not count once a file was deleted: if it came back, then as what a stopped publication left.
    """
    named: set[str] = set()
    for column in (placements.c.picture, placements.c.display):
        query = select(column).join(jobs, jobs.c.job_id == placements.c.job_id)
        query = query.outerjoin(objects, objects.c.sha256 == column)
        counts = or_(jobs.c.expired_at.is_(None), objects.c.state != "deleted")
        for some in portions(digests):
            named.update(conn.execute(query.where(column.in_(some), counts).distinct()).scalars())
    return [digest for digest in digests if digest not in named]


def half_deleted(conn: Connection) -> list[str]:
    """Files that nothing names and whose deletion was begun and not ended; what retention began, it ends."""
    query = select(objects.c.sha256).where(objects.c.state == "deleting")
    return list(conn.execute(query.where(objects.c.sha256.not_in(select(deletions.c.sha256)))).scalars())


def begin_deletion(tx: Connection, found: Mapping[str, int], stored_before: datetime, now: datetime) -> list[str]:
    """Mark files as being deleted that nothing names and that were stored before ``stored_before``; which ones.

    ``found``: bytes, by digest, of files that lie in the archive since before then. One that the ledger does not know
    gets a row that says nothing else, so that its deletion can be locked like any other.
    """
    insert_new(tx, objects, [_UNKNOWN | {"sha256": digest, "bytes": found[digest]} for digest in sorted(found)])
    query = select(objects.c.sha256).where(objects.c.sha256.in_(found)).order_by(objects.c.sha256)
    tx.execute(query.with_for_update())
    # Asked anew: whoever held a row until now may have named it.
    old = list(tx.execute(query.where(objects.c.stored_at < stored_before)).scalars())
    due = unnamed_of(tx, old)
    if due:
        tx.execute(update(objects).where(objects.c.sha256.in_(due)).values(state="deleting"))
        record_event(tx, "objects_deleting", payload={"count": len(due), "objects": due}, now=now)
    return due


def still_deleting(tx: Connection, digests: Sequence[str]) -> list[str]:
    """Those of ``digests`` whose bytes may be deleted now: nobody puts them again until the transaction ends."""
    query = select(objects.c.sha256, objects.c.state).where(objects.c.sha256.in_(digests)).order_by(objects.c.sha256)
    return [digest for digest, state in tx.execute(query.with_for_update()) if state == "deleting"]


def end_deletion(tx: Connection, digests: Sequence[str], now: datetime) -> None:
    """Record that the bytes of files are gone, in the transaction that asked ``still_deleting``."""
    if digests:
        tx.execute(update(objects).where(objects.c.sha256.in_(digests)).values(state="deleted"))
        record_event(tx, "objects_deleted", payload={"count": len(digests), "objects": list(digests)}, now=now)


def _stored_row(picture: Picture, now: datetime) -> dict[str, Any]:
    return object_row(picture) | {"state": "stored", "stored_at": now}
