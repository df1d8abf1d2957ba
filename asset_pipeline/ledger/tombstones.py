"""What stays known of files that retention deleted: digest, kind, for which job it was kept last, when, why. No bytes.

Append-only. The same content may be deleted more than once, when it came in again in between.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from asset_pipeline.ledger.schema import tombstones
from asset_pipeline.ledger.statements import insert_new, portions


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A row of ``tombstones``. ``why`` is ``archive_deadline`` or ``working_deadline``."""

    deletion_id: str
    kind: str
    sha256: str
    bytes: int
    job_id: str | None
    month: str | None
    why: str
    deadline: datetime
    intended_at: datetime
    deleted_at: datetime


@dataclass(frozen=True, slots=True)
class DeletedMonth:
    """Sums over a month's tombstones of one kind."""

    month: str | None
    kind: str
    files: int
    bytes: int
    last_deleted_at: datetime


def write_tombstones(tx: Connection, written: Sequence[Tombstone]) -> None:
    """Keep what is known of files whose bytes are gone."""
    insert_new(tx, tombstones, [asdict(row) for row in written])


def tombstones_of(conn: Connection, digests: Collection[str]) -> list[Tombstone]:
    """Every tombstone of ``digests``, in the order of digests and times."""
    found: list[Tombstone] = []
    for some in portions(sorted(set(digests))):
        query = select(tombstones).where(tombstones.c.sha256.in_(some))
        rows = conn.execute(query.order_by(tombstones.c.sha256, tombstones.c.deleted_at, tombstones.c.kind)).mappings()
        found += [Tombstone(**row) for row in rows]
    return found


def deleted_by_month(conn: Connection) -> list[DeletedMonth]:
    """What was deleted of each month and kind; of no month last."""
    sums = (func.count(), func.sum(tombstones.c.bytes), func.max(tombstones.c.deleted_at))
    query = select(tombstones.c.month, tombstones.c.kind, *sums).group_by(tombstones.c.month, tombstones.c.kind)
    found = [
        DeletedMonth(month, kind, files, int(size), last) for month, kind, files, size, last in conn.execute(query)
    ]
    return sorted(found, key=lambda row: (row.month is None, row.month or "", row.kind))
