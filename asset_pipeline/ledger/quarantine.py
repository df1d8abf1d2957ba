"""Pictures that are held back, and what a person decides about one: released into the archive, or rejected.

A held picture has no receipt, so a release writes the one it lacks and changes no other: its placement becomes
what the new reading says, the account of the document is derived again by the same rule as at completion, and the
next manifest is a new edition. Reading it anew belongs in ``work.release``. Who decided is in the row and the event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Select, func, insert, select, update

from asset_pipeline.evidence.actor import current_actor
from asset_pipeline.ledger.completion import settle_again
from asset_pipeline.ledger.jobs import job_of, record_job
from asset_pipeline.ledger.objects import hold_objects
from asset_pipeline.ledger.rows import placement_row
from asset_pipeline.ledger.schema import jobs, pages, placements, quarantine, receipts, units, uploads
from asset_pipeline.model import Picture, Placement
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class HeldPicture:
    """A picture that was held back, of a job that succeeded; ``upload`` is the document's name in the inbox.

    ``sha256`` and ``bytes`` are of what the document stores for it; None where that was not kept.
    """

    job_id: str
    name: str
    page: int
    reason: Reason
    state: str
    recorded_at: datetime
    decided_at: datetime | None
    decided_by: str | None
    sha256: str | None
    bytes: int | None
    month: str
    collection: str
    upload: str | None
    report_id: str
    source_hash: str
    engine: str
    width: int
    height: int
    kind: str


def held_pictures(conn: Connection, month: str | None = None, states: Sequence[str] = ("held",)) -> list[HeldPicture]:
    """Pictures in one of ``states`` (of ``month``, when given), by month, collection, document and name."""
    query = _pictures().where(quarantine.c.state.in_(states))
    if month is not None:
        query = query.where(jobs.c.month == month)
    return [_held(row) for row in conn.execute(query)]


def find_picture(conn: Connection, job_id: str, name: str) -> HeldPicture | None:
    """The picture ``name`` of a job, when it was ever held back."""
    row = conn.execute(_pictures().where(quarantine.c.job_id == job_id, quarantine.c.name == name)).one_or_none()
    return None if row is None else _held(row)


def reject_picture(tx: Connection, picture: HeldPicture, now: datetime) -> bool:
    """held → rejected: it stays out, and somebody has seen to it. False when it was decided already."""
    if not _decide(tx, picture, "rejected", now):
        return False
    facts = {"name": picture.name, "page": picture.page, "reason": picture.reason.value}
    record_job(tx, "picture_rejected", picture.job_id, now, facts)
    return True


def release_picture(
    tx: Connection,
    picture: HeldPicture,
    read: Placement,
    files: Sequence[Picture],
    rules: tuple[str, str],
    now: datetime,
) -> bool:
    """held → released, with the placement ``read`` under ``rules`` (extractor version, policy digest) of today.

    ``files`` are its pictures, which the archive holds. False, and nothing changed, when it was decided already.
    Raises IntegrityError when the account would not add up, ObjectsSwept when a file must be put again.
    """
    job = job_of(tx, picture.job_id, lock=True)
    if job["state"] != "succeeded" or job["expired_at"] or not _decide(tx, picture, "released", now):
        return False
    hold_objects(tx, files, now)
    key = (placements.c.job_id == picture.job_id, placements.c.name == picture.name)
    ordinal = tx.execute(select(placements.c.ordinal).where(*key)).scalar_one()
    row = placement_row(picture.job_id, picture.page, ordinal, read)
    tx.execute(update(placements).where(*key).values(row))
    unit = tx.execute(
        select(units.c.unit_id, units.c.fence)
        .join(pages, pages.c.unit_id == units.c.unit_id)
        .where(pages.c.job_id == picture.job_id, pages.c.page == picture.page)
    ).one()
    tx.execute(
        insert(receipts).values(
            job_id=picture.job_id,
            asset_index=picture.name,
            unit_id=unit.unit_id,
            fence=unit.fence,
            source_hash=picture.source_hash,
            extractor_version=rules[0],
            content_hash=read.picture,
            display_hash=read.display,
            recorded_at=now,
        )
    )
    settle_again(tx, job)
    facts = {
        "name": picture.name,
        "page": picture.page,
        "reason": picture.reason.value,
        "picture": read.picture,
        "display": read.display,
        "read_by": rules[0],
        "read_under": rules[1],
    }
    record_job(tx, "picture_released", picture.job_id, now, facts)
    return True


def _decide(tx: Connection, picture: HeldPicture, state: str, now: datetime) -> bool:
    held = (quarantine.c.job_id == picture.job_id, quarantine.c.name == picture.name, quarantine.c.state == "held")
    decided = {"state": state, "decided_at": now, "decided_by": current_actor().name}
    return tx.execute(update(quarantine).where(*held).values(decided)).rowcount == 1


def _pictures() -> Select[tuple[object, ...]]:
    upload = select(func.min(uploads.c.name)).where(uploads.c.report_id == jobs.c.report_id).scalar_subquery()
    named = {"upload", *(column.name for column in quarantine.c), "width", "height", "kind"}
    of_job = [jobs.c[name] for name in HeldPicture.__slots__ if name not in named]
    shape = [placements.c[name] for name in ("width", "height", "kind")]
    return (
        select(*[quarantine.c[name] for name in HeldPicture.__slots__ if name in quarantine.c], *of_job, *shape)
        .add_columns(upload.label("upload"))
        .join(jobs, jobs.c.job_id == quarantine.c.job_id)
        .join(
            placements,
            (placements.c.job_id == quarantine.c.job_id) & (placements.c.name == quarantine.c.name),
        )
        .where(jobs.c.state == "succeeded", jobs.c.expired_at.is_(None))
        .order_by(jobs.c.month, jobs.c.collection, upload, quarantine.c.job_id, quarantine.c.name)
    )


def _held(row: object) -> HeldPicture:
    values = dict(row._mapping)  # type: ignore[attr-defined]
    return HeldPicture(**values | {"reason": Reason(values["reason"])})
