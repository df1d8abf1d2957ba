"""Writes the manifest of each settled report of a month, in editions.

The newest edition has the plain key, so that readers need no index; each earlier one is kept, byte for
byte, below ``editions/``. Unchanged content writes nothing. The bytes depend on the ledger alone, so a
crash between the store and the ledger is healed by doing it again. What is in a manifest belongs in
``content``; signatures belong in ``evidence``.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import rfc8785
from sqlalchemy import Connection, RowMapping, insert, select
from sqlalchemy.exc import IntegrityError as DuplicateRow

from asset_pipeline.archive.content import Edition, ReportState, read_report, sha256_hex
from asset_pipeline.archive.schema import check_manifest
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import events, reading
from asset_pipeline.ledger.schema import manifests
from asset_pipeline.reasons import Reason


@dataclass(frozen=True, slots=True)
class PublishedManifest:
    """The newest edition of one report's manifest. ``written`` tells whether this call made it."""

    report_id: str
    job_id: str
    edition: int
    digest: str
    content_digest: str
    key: str
    written: bool


def manifest_key(month: str, report_id: str) -> str:
    """Key of the newest edition."""
    return f"manifests/{month}/{report_id}.json"


def edition_key(month: str, report_id: str, edition: int) -> str:
    """Key of an earlier edition."""
    return f"manifests/{month}/editions/{report_id}-{edition}.json"


def publish_manifests(inst: Installation, month: str, now: datetime) -> list[PublishedManifest]:
    """Bring the manifests of ``month`` up to date; the newest of every settled report, by report id.

    Raises StorageError when the archive is away. Where what lies there is not what was written, that report is left
    alone, the others are published, and IntegrityError names it at the end.
    """
    published: list[PublishedManifest] = []
    contradicted: list[tuple[str, IntegrityError]] = []
    with inst.ledger.read() as conn:
        documents = reading.documents_of_month(conn, month)
    for document in documents:
        try:
            published += _publish_job(inst, document.job_id, now)
        except IntegrityError as error:
            contradicted.append((document.report_id, error))
    if contradicted:
        reports = ", ".join(report_id for report_id, _ in contradicted)
        _, first = contradicted[0]
        raise IntegrityError(f"{first.what} Reports: {reports}.", first.remedy, first.reason)
    return sorted(published, key=lambda row: row.report_id)


def latest_edition(conn: Connection, report_id: str) -> RowMapping | None:
    """The ledger's row of the newest edition."""
    query = select(manifests).where(manifests.c.report_id == report_id).order_by(manifests.c.edition.desc()).limit(1)
    return conn.execute(query).mappings().first()


def _publish_job(inst: Installation, job_id: str, now: datetime) -> list[PublishedManifest]:
    """The manifest of the job's report; empty while the report is still worked."""
    with inst.ledger.read() as conn:
        report = read_report(conn, job_id)
        latest = latest_edition(conn, report.job["report_id"]) if report else None
    return [] if report is None else [_publish_one(inst, report, latest, now)]


def _publish_one(
    inst: Installation, report: ReportState, latest: RowMapping | None, now: datetime
) -> PublishedManifest:
    month, report_id = report.job["month"], report.job["report_id"]
    key, content_digest = manifest_key(month, report_id), report.content_digest
    if latest is not None and latest["content_digest"] == content_digest and latest["job_id"] == report.job["job_id"]:
        if not inst.archive.exists(key):
            _restore(inst, report, latest, key)
        return _published(report, latest["edition"], latest["digest"], content_digest, written=False)

    edition = Edition(latest["edition"] + 1, latest["digest"]) if latest is not None else Edition()
    envelope = report.envelope(edition)
    check_manifest(envelope)
    body = rfc8785.dumps(envelope)
    if latest is not None:
        _keep(inst, month, report_id, latest)
    inst.archive.put_current(key, body)
    if not _record(inst, report, edition, content_digest, sha256_hex(body), now):
        return _yield_to_other(inst, report, key, sha256_hex(body))
    return _published(report, edition.number, sha256_hex(body), content_digest, written=True)


def _published(
    report: ReportState, edition: int, digest: str, content_digest: str, *, written: bool
) -> PublishedManifest:
    month, report_id, job_id = report.job["month"], report.job["report_id"], report.job["job_id"]
    return PublishedManifest(
        report_id, job_id, edition, digest, content_digest, manifest_key(month, report_id), written
    )


def _restore(inst: Installation, report: ReportState, latest: RowMapping, key: str) -> None:
    """Put a manifest back that is gone from the store: the ledger gives the same bytes again."""
    body = rfc8785.dumps(report.envelope(Edition(latest["edition"], latest["previous_digest"])))
    if sha256_hex(body) != latest["digest"]:
        raise IntegrityError("A manifest is gone and cannot be built again as it was.", "Restore it from a backup.")
    inst.archive.put_current(key, body)


def _keep(inst: Installation, month: str, report_id: str, latest: RowMapping) -> None:
    """Keep the bytes of the edition that is about to be replaced.

    They are at the plain key unless a crash came after the replacement; then they are kept already.
    """
    kept = edition_key(month, report_id, latest["edition"])
    if inst.archive.exists(kept):
        return
    try:
        with inst.archive.open(manifest_key(month, report_id)) as stream:
            body = stream.read()
    except KeyError:
        body = b""
    if sha256_hex(body) != latest["digest"]:
        raise IntegrityError("A manifest in the archive is not the one that was written.", "Restore it from a backup.")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "manifest.json")
        copy.write_bytes(body)
        inst.archive.put_once(kept, copy, latest["digest"])


def _record(
    inst: Installation, report: ReportState, edition: Edition, content_digest: str, digest: str, now: datetime
) -> bool:
    """Row and event in one transaction. False when another worker recorded the same edition first."""
    job = report.job
    row = {
        "report_id": job["report_id"],
        "edition": edition.number,
        "month": job["month"],
        "job_id": job["job_id"],
        "content_digest": content_digest,
        "digest": digest,
        "previous_digest": edition.previous_digest,
        "published_at": now,
    }
    payload = {key: row[key] for key in ("report_id", "edition", "content_digest", "digest", "previous_digest")}
    payload["extractor_version"], payload["policy_digest"] = job["extractor_version"], job["policy_digest"]
    try:
        with inst.ledger.begin() as tx:
            tx.execute(insert(manifests).values(**row))
            events.record_event(
                tx, "manifest_published", month=job["month"], job_id=job["job_id"], payload=payload, now=now
            )
    except DuplicateRow:
        return False
    return True


def _yield_to_other(inst: Installation, report: ReportState, key: str, ours: str) -> PublishedManifest:
    """Another worker recorded this edition first: its bytes stand, and ours may have replaced them."""
    with inst.ledger.read() as conn:
        latest = latest_edition(conn, report.job["report_id"])
        current = read_report(conn, latest["job_id"]) if latest else None
    if latest is None or current is None:
        raise IntegrityError("The record of a manifest is gone.", "Tell the operator.", Reason.RECEIPT_CONFLICT)
    if latest["digest"] != ours:
        _restore(inst, current, latest, key)
    return _published(current, latest["edition"], latest["digest"], latest["content_digest"], written=False)
