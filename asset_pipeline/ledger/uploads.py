"""What was seen in the inbox, and what became of it.

An upload is one (key, tag): the same name with other content is another upload, and the older one, when it was
not taken in yet, is superseded. States: waiting (seen, not yet admitted), rejected (its place in the inbox makes
no sense), admitted (it became a job; ``reason`` is set when that job was refused at the door), duplicate (``job_id``
names the job that it repeats), superseded (changed, moved or removed before it was admitted).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection, bindparam, select, update

from asset_pipeline.ledger.identity import new_id
from asset_pipeline.ledger.schema import uploads
from asset_pipeline.ledger.statements import insert_new, portions
from asset_pipeline.reasons import Reason


class UploadState(StrEnum):
    """Where an upload stands."""

    WAITING = "waiting"
    ADMITTED = "admitted"
    DUPLICATE = "duplicate"
    REJECTED = "rejected"
    SUPERSEDED = "superseded"


OPEN = (UploadState.WAITING, UploadState.REJECTED)
"""States that still change with what is in the inbox."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """One file as a listing shows it; with a ``reason`` it cannot become an upload."""

    key: str
    tag: str
    bytes: int
    collection: str | None = None
    month: str | None = None
    name: str | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Upload:
    """A row of ``uploads``."""

    upload_id: str
    key: str
    tag: str
    bytes: int
    collection: str | None
    month: str | None
    name: str | None
    state: UploadState
    reason: Reason | None
    sightings: int
    first_seen_at: datetime
    last_seen_at: datetime
    admitted_at: datetime | None
    correlation_id: str | None
    source_hash: str | None
    report_id: str | None
    job_id: str | None

    def settled(self, settle: timedelta) -> bool:
        """Whether it stayed the same between two sightings at least ``settle`` apart (REQUIREMENTS R1.2)."""
        return self.last_seen_at - self.first_seen_at >= settle


_COLUMNS = [uploads.c[field.name] for field in fields(Upload)]


def _upload(row: Any) -> Upload:
    values = dict(row._mapping)
    values["state"] = UploadState(values["state"])
    values["reason"] = Reason(values["reason"]) if values["reason"] else None
    return Upload(**values)


def known_states(conn: Connection, keys: Collection[str]) -> dict[str, dict[str, tuple[str, str | None]]]:
    """State and reason of every upload of ``keys``, by key and tag: one query, light enough for a whole inbox."""
    rows = conn.execute(
        select(uploads.c.key, uploads.c.tag, uploads.c.state, uploads.c.reason).where(uploads.c.key.in_(keys))
    )
    known: dict[str, dict[str, tuple[str, str | None]]] = {}
    for key, tag, state, reason in rows:
        known.setdefault(key, {})[tag] = (state, reason)
    return known


def known_uploads(conn: Connection, keys: Collection[str]) -> dict[tuple[str, str], Upload]:
    """Every upload of ``keys``, by key and tag."""
    found = map(_upload, conn.execute(select(*_COLUMNS).where(uploads.c.key.in_(keys))))
    return {(upload.key, upload.tag): upload for upload in found}


def list_uploads(
    conn: Connection, *, month: str | None = None, states: Collection[UploadState] | None = None
) -> list[Upload]:
    """Uploads in key order, of one month and in some states when given."""
    query = select(*_COLUMNS).order_by(uploads.c.key, uploads.c.first_seen_at)
    if month is not None:
        query = query.where(uploads.c.month == month)
    if states is not None:
        query = query.where(uploads.c.state.in_(states))
    return [_upload(row) for row in conn.execute(query)]


def record_sightings(tx: Connection, sightings: Sequence[Sighting], now: datetime) -> None:
    """Record that these files are in the inbox now; what changed since it was last seen starts anew."""
    known = known_uploads(tx, {sighting.key for sighting in sightings})
    tags = {sighting.key: sighting.tag for sighting in sightings}
    rivals = [row.upload_id for row in known.values() if row.state in OPEN and tags[row.key] != row.tag]
    if rivals:
        superseded = update(uploads).where(uploads.c.upload_id.in_(rivals), uploads.c.state.in_(OPEN))
        tx.execute(superseded.values(state=UploadState.SUPERSEDED))
    new, again, anew = [], [], []
    for sighting in sightings:
        row = known.get((sighting.key, sighting.tag))
        if row is None:
            new.append(sighting)
        elif row.state in (UploadState.ADMITTED, UploadState.DUPLICATE):
            continue
        elif row.state is _state(sighting) and row.bytes == sighting.bytes and row.reason is sighting.reason:
            again.append(row.upload_id)
        else:
            anew.append({"id": row.upload_id} | _first_sight(sighting, now))
    _insert_new(tx, new, now)
    if again:
        tx.execute(
            update(uploads)
            .where(uploads.c.upload_id.in_(again), uploads.c.state.in_(OPEN), uploads.c.last_seen_at < now)
            .values(last_seen_at=now, sightings=uploads.c.sightings + 1)
        )
    if anew:
        changed: dict[str, Any] = {name: bindparam(name) for name in _first_sight(sightings[0], now)}
        open_again = (*OPEN, UploadState.SUPERSEDED)
        tx.execute(
            update(uploads)
            .where(uploads.c.upload_id == bindparam("id"), uploads.c.state.in_(open_again))
            .values(changed),
            sorted(anew, key=lambda row: str(row["id"])),
        )


def _insert_new(tx: Connection, sightings: Iterable[Sighting], now: datetime) -> None:
    rows = [
        {
            "upload_id": new_id(),
            "key": sighting.key,
            "tag": sighting.tag,
            # Assigned before any work is done for it (REQUIREMENTS R1.8).
            "correlation_id": new_id(),
        }
        | _first_sight(sighting, now)
        for sighting in sightings
    ]
    # Another listing may have recorded the same (key, tag) meanwhile: the first one counts.
    insert_new(tx, uploads, rows)


def _first_sight(sighting: Sighting, now: datetime) -> dict[str, Any]:
    return {
        "bytes": sighting.bytes,
        "collection": sighting.collection,
        "month": sighting.month,
        "name": sighting.name,
        "state": _state(sighting),
        "reason": sighting.reason,
        "sightings": 1,
        "first_seen_at": now,
        "last_seen_at": now,
    }


def _state(sighting: Sighting) -> UploadState:
    return UploadState.REJECTED if sighting.reason else UploadState.WAITING


def open_ids(conn: Connection, month: str | None = None) -> set[str]:
    """Ids of what is waiting or rejected (in ``month``, when given)."""
    query = select(uploads.c.upload_id).where(uploads.c.state.in_(OPEN))
    return set(conn.execute(query if month is None else query.where(uploads.c.month == month)).scalars())


def supersede_vanished(tx: Connection, upload_ids: Collection[str], now: datetime) -> None:
    """Supersede open uploads that are no longer in the inbox, unless somebody saw them at ``now`` or later."""
    for portion in portions(sorted(upload_ids)):
        still_open = uploads.c.state.in_(OPEN), uploads.c.last_seen_at < now
        tx.execute(
            update(uploads).where(uploads.c.upload_id.in_(portion), *still_open).values(state=UploadState.SUPERSEDED)
        )


def lock_upload(tx: Connection, upload: Upload) -> Upload | None:
    """The upload as it is now, with every upload of its key locked: one transaction at a time admits to a report."""
    query = select(*_COLUMNS).where(uploads.c.key == upload.key).order_by(uploads.c.upload_id).with_for_update()
    rows = {row.upload_id: row for row in map(_upload, tx.execute(query))}
    return rows.get(upload.upload_id)


def close_upload(
    tx: Connection,
    upload: Upload,
    state: UploadState,
    *,
    source_hash: str,
    report_id: str,
    job_id: str,
    reason: Reason | None,
    now: datetime,
) -> None:
    """Record what became of a locked upload: ``admitted`` or ``duplicate``, and of which job."""
    tx.execute(
        update(uploads)
        .where(uploads.c.upload_id == upload.upload_id, uploads.c.state == upload.state)
        .values(
            state=state, source_hash=source_hash, report_id=report_id, job_id=job_id, reason=reason, admitted_at=now
        )
    )
