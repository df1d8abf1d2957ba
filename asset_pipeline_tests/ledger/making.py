"""Made-up uploads, jobs and results for the ledger's tests: whole, small, and the same every time."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from sqlalchemy import insert

from asset_pipeline.ledger import completion, jobs, publication, turns, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.identity import new_id, report_id
from asset_pipeline.ledger.schema import source_documents, uploads
from asset_pipeline.model import Extraction, Kind, Page, Picture, Placement, Source, Status
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

NOW = datetime(2026, 9, 30, 12, tzinfo=UTC)
LEASE = timedelta(seconds=90)
MONTH = "2026-09"
VERSION = "pdf/1+policy-0123456789abcdef"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def queue(ledger: Ledger, name: str = "tides.pdf", collection: str = "field-notes", **changes: object) -> str:
    """A queued job with its upload; ``changes`` are fields of NewJob."""
    with ledger.begin() as tx:
        facts = {
            "report_id": report_id(b"install key", collection, MONTH, name),
            "month": MONTH,
            "collection": collection,
            "revision": 1,
            "parent_revision": None,
            "source_hash": sha(f"bytes of {name}"),
            "engine": "pdf",
            "extractor_version": VERSION,
            "policy_digest": Policy().digest,
            "correlation_id": new_id(),
            "working_until": NOW + timedelta(days=7),
            "archive_until": NOW + timedelta(days=3650),
        } | changes
        new = jobs.NewJob(**facts)
        if not tx.execute(source_documents.select().where(source_documents.c.sha256 == new.source_hash)).first():
            tx.execute(
                insert(source_documents).values(
                    sha256=new.source_hash, bytes=1000, media_type="application/pdf", stored=1, admitted_at=NOW
                )
            )
        jobs.record_policy(tx, Policy(), NOW)
        job_id, created = jobs.queue_job(tx, new, NOW)
        if created:
            add_upload(tx, collection, name, state="admitted", report_id=new.report_id, job_id=job_id)
    return job_id


def add_upload(tx, collection: str, name: str, state: str, month: str = MONTH, **values: object) -> None:
    upload = {
        "upload_id": new_id(),
        "key": f"{collection}/{month}/{name}",
        "tag": new_id(),
        "bytes": 1000,
        "collection": collection,
        "month": month,
        "name": name,
        "state": state,
        "sightings": 2,
        "first_seen_at": NOW,
        "last_seen_at": NOW,
    }
    tx.execute(insert(uploads).values(**upload | values))


def start(ledger: Ledger, name: str = "tides.pdf", pages: int = 1, per_unit: int = 200, **changes) -> str:
    """A running job with its units."""
    job_id = queue(ledger, name, **changes)
    ranges = [(first, min(first + per_unit - 1, pages)) for first in range(1, pages + 1, per_unit)]
    with ledger.begin() as tx:
        jobs.start_job(tx, job_id, pages=pages, encrypted="none", now=NOW)
        units.plan_units(tx, job_id, ranges)
    return job_id


def claim(ledger: Ledger, unit_id: str, now: datetime = NOW, worker: str = "host:1:1") -> units.Claim | None:
    with ledger.begin() as tx:
        return units.claim_unit(tx, unit_id, worker, LEASE, now)


def claimable(ledger: Ledger, now: datetime = NOW, month: str = MONTH, which=turns.next_turns) -> list[str]:
    """Units that may be claimed, in the order of their turns."""
    with ledger.read() as conn:
        return [turn.unit_id for turn in which(conn, month, now, 1_000_000) if turn.unit_id]


def claim_next(ledger: Ledger, now: datetime = NOW) -> units.Claim:
    taken = claim(ledger, claimable(ledger, now)[0], now)
    assert taken is not None
    return taken


def placement(page: int, ordinal: int = 1, picture: str | None = "tern", **changes) -> Placement:
    """A shown raster picture; without ``picture``, a quarantined one."""
    digest = sha(picture) if picture else None
    facts = {
        "name": f"page-{page:03d}-image-{ordinal:03d}",
        "picture": digest,
        "object_id": 12,
        "kind": Kind.RASTER,
        "width": 60,
        "height": 40,
        "filter": ["DCTDecode"],
        "colour_space": "DeviceRGB",
        "bits": 8,
        "matrix": (120.5, 0, 0, 80, 20, 20),
        "bbox": (20, 20, 140.5, 100),
        "display_bbox": (20, 100, 140.5, 180),
        "visible": 1.0,
        "ppi": (36.0, 36.0),
        "print_mm": (42.3, 28.2),
        "flags": [],
        "caption": "Common tern",
        "display": digest,
        "status": Status.ARCHIVED if picture else Status.QUARANTINED,
        "reason": None if picture else Reason.TRUNCATED_STREAM,
    }
    return Placement(**facts | changes)


def page(number: int, *placements: Placement) -> Page:
    from asset_pipeline.account import count

    return count(Page(page=number, label=str(number), drawn=0, placements=list(placements)))


def extraction(claim: units.Claim, pages: Sequence[Page], **changes) -> Extraction:
    """The result of ``claim`` with these pages, holding each picture they name."""
    named = [digest for page in pages for row in page.placements for digest in (row.picture, row.display) if digest]
    pictures = [
        Picture(
            sha256=digest,
            file=f"{digest}.jpg",
            renditions=["original", "display"],
            media_type="image/jpeg",
            bytes=500,
            width=60,
            height=40,
            bits=8,
            mode="RGB",
            has_alpha=False,
            icc=None,
            pixel_sha256=None,
            phash="00ff00ff00ff00ff",
        )
        for digest in dict.fromkeys(named)
    ]
    facts = {
        "source": Source(
            sha256=claim.source_hash, bytes=1000, media_type="application/pdf", pages=len(pages), encrypted="none"
        ),
        "outcome": "ok",
        "extractor_version": claim.extractor_version,
        "pages": list(pages),
        "pictures": pictures,
        "peak_rss_bytes": 50_000_000,
    }
    return Extraction(**facts | changes)


def publish(ledger: Ledger, claim: units.Claim, *pages: Page, now: datetime = NOW) -> publication.Publication:
    with ledger.begin() as tx:
        timings = publication.Timings(fetch=1, decode=2, publish=3)
        return publication.publish_unit(tx, claim, extraction(claim, pages), timings, 500, now)


def complete(ledger: Ledger, job_id: str, now: datetime = NOW) -> bool:
    with ledger.begin() as tx:
        return completion.complete_job(tx, job_id, now)


def finish(ledger: Ledger, name: str, *pages: Page, **changes) -> str:
    """A succeeded job with these pages."""
    job_id = start(ledger, name, pages=len(pages), **changes)
    taken = claim(ledger, f"{job_id}-00000")
    assert taken is not None
    publish(ledger, taken, *pages)
    assert complete(ledger, job_id)
    return job_id


def rows(ledger: Ledger, table, **where) -> list:
    query = table.select().where(*[table.c[name] == value for name, value in where.items()])
    with ledger.read() as conn:
        return list(conn.execute(query.order_by(*table.primary_key)).mappings())
