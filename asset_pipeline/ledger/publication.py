"""Records what a unit delivered: objects, receipts, placements, page accounts, quarantine, one event.

One transaction under the unit's fence: all of it or nothing, and nothing from a worker that lost its
lease. The bytes are in the archive before (``archive.publish``). A receipt is written once and never
changed: the same result again is acknowledged, another one is an incident that is recorded while the
first result stands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from asset_pipeline.errors import IntegrityError
from asset_pipeline.evidence.chain import moment
from asset_pipeline.ledger.incidents import Incident
from asset_pipeline.ledger.jobs import job_of
from asset_pipeline.ledger.objects import hold_objects
from asset_pipeline.ledger.rows import page_row, placement_row
from asset_pipeline.ledger.schema import pages, placements, quarantine, receipts
from asset_pipeline.ledger.statements import insert_new, portions
from asset_pipeline.ledger.units import Claim, change_held, end_attempt, record_attempt
from asset_pipeline.model import Extraction, Page, Placement, Status, Withheld
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds of the stages of an attempt."""

    fetch: float = 0
    decode: float = 0
    publish: float = 0


@dataclass(frozen=True, slots=True)
class Publication:
    """Receipts that are new, and receipts found with the same content."""

    receipts_added: int
    acknowledged: int


def publish_unit(
    tx: Connection, claim: Claim, extraction: Extraction, timings: Timings, bytes_written: int, now: datetime
) -> Publication:
    """Record the result of a claimed unit and end it.

    Raises LeaseLost when the fence is newer, ObjectsSwept when a file must be put again, IntegrityError when the
    result is not one of this unit or contradicts a recorded receipt (RECEIPT_CONFLICT). In each case nothing of it is
    recorded.
    """
    change_held(tx, claim, state="done", lease_until=None, reason=None)
    _check_belongs(claim, extraction)
    hold_objects(tx, extraction.pictures, now)
    publication = _record_receipts(tx, claim, extraction.pages, now)
    if not _is_recorded(tx, claim):
        _record_pages(tx, claim, extraction, now)
    broken = end_attempt(
        tx,
        claim,
        now,
        "acknowledged" if publication.acknowledged else "published",
        fetch_ms=timings.fetch,
        decode_ms=timings.decode,
        publish_ms=timings.publish,
        peak_rss_bytes=extraction.peak_rss_bytes,
        bytes_written=bytes_written,
        pixels=sum(row.width * row.height for row in extraction.pictures if "original" in row.renditions),
    )
    facts = _unit_record(tx, claim, extraction, timings) | _counts(extraction, publication, bytes_written)
    record_attempt(tx, "unit_published", claim, now, facts | broken)
    return publication


def _check_belongs(claim: Claim, extraction: Extraction) -> None:
    """Refuse a result of other bytes, of another extractor, of pages nobody asked for or without its pictures."""
    if extraction.source.sha256 != claim.source_hash:
        raise IntegrityError("The result is of another source than the unit.", "Tell the operator.")
    if extraction.extractor_version != claim.extractor_version:
        what = "The result is of another extractor version than the job."
        raise IntegrityError(what, "Run the month again.", Reason.EXTRACTOR_CHANGED)
    numbers = [page.page for page in extraction.pages]
    last = claim.last_page or max(numbers, default=0)
    expected = list(range(claim.first_page, last + 1))
    held = {picture.sha256 for picture in extraction.pictures}
    named = {digest for row in _placements(extraction.pages) for digest in (row.picture, row.display) if digest}
    if extraction.outcome != "ok" or sorted(numbers) != expected or not named <= held:
        what = "The result has other pages or pictures than it must have."
        raise IntegrityError(what, "Tell the developers.", Reason.INTERNAL_ERROR)


def _record_receipts(tx: Connection, claim: Claim, read: Sequence[Page], now: datetime) -> Publication:
    results = {row.name: (row.picture, row.display) for row in _placements(read) if row.picture}
    known = _recorded_receipts(tx, claim, list(results))
    conflicts = sorted(name for name, result in known.items() if results.get(name) != result)
    if conflicts:
        raise _conflict(claim, conflicts, now)
    rows = [
        {
            "job_id": claim.job_id,
            "asset_index": name,
            "unit_id": claim.unit_id,
            "fence": claim.fence,
            "source_hash": claim.source_hash,
            "extractor_version": claim.extractor_version,
            "content_hash": content,
            "display_hash": display,
            "recorded_at": now,
        }
        for name, (content, display) in results.items()
        if name not in known
    ]
    if rows:
        tx.execute(insert(receipts), rows)
    return Publication(receipts_added=len(rows), acknowledged=len(known))


def _recorded_receipts(tx: Connection, claim: Claim, names: Sequence[str]) -> dict[str, tuple[str | None, str | None]]:
    """Receipts that exist for ``names``, and all that this unit left at an earlier time."""
    query = select(receipts.c.asset_index, receipts.c.content_hash, receipts.c.display_hash).where(
        receipts.c.job_id == claim.job_id
    )
    found = list(tx.execute(query.where(receipts.c.unit_id == claim.unit_id)))
    for some in portions(names):
        found += tx.execute(query.where(receipts.c.asset_index.in_(some)))
    return {name: (content, display) for name, content, display in found}


def _conflict(claim: Claim, names: Sequence[str], now: datetime) -> Incident:
    def record(tx: Connection) -> None:
        # The first few names are enough to find them all: the job is extracted again by whoever looks into it.
        record_attempt(tx, "receipt_conflict", claim, now, {"conflicts": len(names), "assets": list(names[:20])})

    what = "A second result of a unit differs from the recorded one; nothing was overwritten."
    return Incident(what, "Tell the operator.", Reason.RECEIPT_CONFLICT, record)


def _is_recorded(tx: Connection, claim: Claim) -> bool:
    """Whether an earlier publication of this unit stands: its rows are kept, and its receipts were the same."""
    query = select(pages.c.page).where(pages.c.job_id == claim.job_id, pages.c.unit_id == claim.unit_id).limit(1)
    return tx.execute(query).first() is not None


def _record_pages(tx: Connection, claim: Claim, extraction: Extraction, now: datetime) -> None:
    read = extraction.pages
    if read:
        tx.execute(insert(pages), [page_row(claim.job_id, claim.unit_id, page) for page in read])
    rows = [
        placement_row(claim.job_id, page.page, ordinal, row)
        for page in read
        for ordinal, row in enumerate(page.placements)
    ]
    if rows:
        tx.execute(insert(placements), rows)
    withheld = {row.name: row for row in extraction.withheld}
    held = [row for row in rows if row["status"] == Status.QUARANTINED]
    insert_new(tx, quarantine, [_quarantine_row(claim, row, withheld.get(row["name"]), now) for row in held])


def _quarantine_row(claim: Claim, row: dict[str, Any], stored: Withheld | None, now: datetime) -> dict[str, Any]:
    return {
        "job_id": claim.job_id,
        "name": row["name"],
        "page": row["page"],
        "reason": row["reason"] or Reason.INTERNAL_ERROR.value,
        "state": "held",
        "recorded_at": now,
        "sha256": stored.sha256 if stored else None,
        "bytes": stored.bytes if stored else None,
    }


def _counts(extraction: Extraction, publication: Publication, bytes_written: int) -> dict[str, Any]:
    rows = list(_placements(extraction.pages))
    held = Counter(row.reason.value for row in rows if row.status is Status.QUARANTINED and row.reason)
    return {
        "pages": len(extraction.pages),
        "placements": len(rows),
        "objects": len(extraction.pictures),
        "bytes_written": bytes_written,
        "receipts_added": publication.receipts_added,
        "acknowledged": publication.acknowledged,
        "quarantined": dict(held),
    }


def _unit_record(tx: Connection, claim: Claim, extraction: Extraction, timings: Timings) -> dict[str, Any]:
    """What stays provable of a unit when all files are gone: each picture by name and digests, and what was held."""
    job = job_of(tx, claim.job_id)
    rows = list(_placements(extraction.pages))
    return {
        "correlation_id": job["correlation_id"],
        "report_id": job["report_id"],
        "revision": job["revision"],
        "parent_revision": job["parent_revision"],
        "sequence": int(claim.unit_id.rpartition("-")[2]),
        "first_page": claim.first_page,
        "working_until": moment(job["working_until"]),
        "pictures": [[row.name, row.picture, row.display] for row in rows if row.picture],
        "held": [
            [row.name, row.reason.value if row.reason else None] for row in rows if row.status is Status.QUARANTINED
        ],
        "timings_ms": {name: round(getattr(timings, name), 1) for name in ("fetch", "decode", "publish")},
    }


def _placements(read: Iterable[Page]) -> Iterable[Placement]:
    return (row for page in read for row in page.placements)
