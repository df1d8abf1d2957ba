"""Writes the manifest of each settled report of a month, in editions.

The newest edition has the plain key, so that readers need no index; each earlier one is kept, byte for
byte, below ``editions/``. Unchanged content writes nothing. The bytes depend on the ledger and its key alone, so a
crash between the store and the ledger is healed by doing it again, and an altered manifest is built again as
it was. One that the ledger does not know is never replaced. What is in a manifest belongs in ``content``, how it is
signed in ``envelope``.
"""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select
from sqlalchemy.exc import IntegrityError as DuplicateRow

from asset_pipeline.archive.content import Edition, ReportState, read_report, sha256_hex
from asset_pipeline.archive.envelope import open_manifest, put_together, seal
from asset_pipeline.errors import IntegrityError
from asset_pipeline.evidence.chain import moment
from asset_pipeline.evidence.dsse import Envelope
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import events, reading
from asset_pipeline.ledger.schema import jobs, manifests
from asset_pipeline.ledger.signing import recorded_trust
from asset_pipeline.reasons import Reason

PARALLEL_READS = 16
"""Requests at a time: a bucket's latency is waited for once, not once a report."""


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

    One that is gone or altered is built again as it was, with an event. Raises StorageError when the archive is away.
    Where that cannot be done, or where the archive holds a manifest that the ledger does not know, that report is
    left alone, the others are published, and IntegrityError names it at the end.
    """
    published: list[PublishedManifest] = []
    contradicted: list[tuple[str, IntegrityError]] = []
    with inst.ledger.read() as conn:
        documents = reading.documents_of_month(conn, month)
    keys = [manifest_key(month, document.report_id) for document in documents]
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="manifests") as threads:
        found = list(threads.map(lambda key: stored_digest(inst, key), keys))
    for document, digest in zip(documents, found, strict=True):
        try:
            published += _publish_job(inst, document.job_id, digest, now)
        except IntegrityError as error:
            contradicted.append((document.report_id, error))
    if contradicted:
        reports = ", ".join(report_id for report_id, _ in contradicted)
        _, first = contradicted[0]
        raise IntegrityError(f"{first.what} Reports: {reports}.", first.remedy, first.reason)
    return sorted(published, key=lambda row: row.report_id)


def stored_digest(inst: Installation, key: str) -> str | None:
    """SHA-256 (hex) of the manifest that the archive holds at ``key``; None when nothing is there."""
    body = _bytes_at(inst, key)
    return None if body is None else sha256_hex(body)


def rebuild(conn: Connection, row: RowMapping) -> bytes:
    """The bytes of a recorded edition, from the ledger. IntegrityError when they would not be the same."""
    report = read_report(conn, row["job_id"])
    body = b""
    if report is not None:
        told = report.envelope(Edition(row["edition"], row["previous_digest"], row["deleted_at"]))
        body = put_together(told, row["key_id"], row["signature"])
    if sha256_hex(body) != row["digest"]:
        raise IntegrityError("A manifest cannot be built again as it was written.", "Restore it from a backup.")
    return body


def restore_current(inst: Installation, latest: RowMapping, now: datetime) -> bool:
    """Put the newest recorded edition back where the archive holds other bytes or none; True when that was needed.

    IntegrityError when it cannot be built again, or when what is there is a manifest that the ledger does not know.
    """
    key = manifest_key(latest["month"], latest["report_id"])
    body = _bytes_at(inst, key)
    if body is not None and sha256_hex(body) == latest["digest"]:
        return False
    with inst.ledger.read() as conn:
        if body is not None and _is_newer(body, latest):
            if _is_ours(conn, body, latest["report_id"]):
                return False  # the next edition, not recorded yet: a crash came between, or another worker is at it
            raise _unknown()
        rebuilt = rebuild(conn, latest)
    inst.archive.put_current(key, rebuilt)
    payload = {name: latest[name] for name in ("report_id", "edition", "digest")}
    payload |= {"found": "nothing" if body is None else sha256_hex(body)}
    with inst.ledger.begin() as tx:
        events.record_event(
            tx, "manifest_restored", month=latest["month"], job_id=latest["job_id"], payload=payload, now=now
        )
    return True


def latest_edition(conn: Connection, report_id: str) -> RowMapping | None:
    """The ledger's row of the newest edition."""
    query = select(manifests).where(manifests.c.report_id == report_id).order_by(manifests.c.edition.desc()).limit(1)
    return conn.execute(query).mappings().first()


def _publish_job(inst: Installation, job_id: str, found: str | None, now: datetime) -> list[PublishedManifest]:
    """The manifest of the job's report; empty while the report is still worked. ``found``: digest in the archive."""
    with inst.ledger.read() as conn:
        report = read_report(conn, job_id)
        latest = latest_edition(conn, report.job["report_id"]) if report else None
    return [] if report is None else [_publish_one(inst, report, latest, found, now)]


def _publish_one(
    inst: Installation, report: ReportState, latest: RowMapping | None, found: str | None, now: datetime
) -> PublishedManifest:
    month, report_id = report.job["month"], report.job["report_id"]
    key, content_digest = manifest_key(month, report_id), report.content_digest
    if latest is not None and found != latest["digest"]:
        restore_current(inst, latest, now)
    if latest is not None and report.is_told_by(latest):
        return _published(report, latest["edition"], latest["digest"], content_digest, written=False)

    number, before = (1, None) if latest is None else (latest["edition"] + 1, latest["digest"])
    edition = Edition(number, before, report.job["expired_at"])
    envelope = seal(report.envelope(edition), inst.signer())
    body = envelope.dumps()
    if latest is not None:
        _keep(inst, month, report_id, latest)
    elif found not in (None, sha256_hex(body)):
        _check_ours(inst, key, report_id)
    inst.archive.put_current(key, body)
    reached(Failpoint.MANIFEST_LINKED)
    if not _record(inst, report, edition, envelope, now):
        return _yield_to_other(inst, report, sha256_hex(body), now)
    return _published(report, edition.number, sha256_hex(body), content_digest, written=True)


def _published(
    report: ReportState, edition: int, digest: str, content_digest: str, *, written: bool
) -> PublishedManifest:
    month, report_id, job_id = report.job["month"], report.job["report_id"], report.job["job_id"]
    return PublishedManifest(
        report_id, job_id, edition, digest, content_digest, manifest_key(month, report_id), written
    )


def _bytes_at(inst: Installation, key: str) -> bytes | None:
    try:
        with inst.archive.open(key) as stream:
            return stream.read()
    except KeyError:
        return None


def _told(body: bytes) -> dict[str, Any]:
    """The record of a stored manifest; nothing when the bytes are none."""
    try:
        manifest = open_manifest(body).body
    except IntegrityError:
        return {}
    record: dict[str, Any] = manifest["record"]
    return record


def _is_newer(body: bytes, latest: RowMapping) -> bool:
    told = _told(body)
    return bool(told) and told["report_id"] == latest["report_id"] and told["edition"] > latest["edition"]


def _is_ours(conn: Connection, body: bytes, report_id: str) -> bool:
    """Whether this ledger says just that and its key signed it: an edition that was written and not recorded."""
    told = _told(body)
    known = select(jobs.c.report_id).where(jobs.c.job_id == told.get("job_id"))
    if conn.execute(known).scalar() != report_id:
        return False
    report = read_report(conn, told["job_id"])
    if report is None:
        return False
    deleted_at = report.job["expired_at"] if "deleted_at" in told else None
    stored, ours = open_manifest(body), report.envelope(Edition(told["edition"], told["previous_digest"], deleted_at))
    return stored.body == ours and stored.is_signed_under(recorded_trust(conn, None))


def _check_ours(inst: Installation, key: str, report_id: str) -> None:
    """Raise IntegrityError when the archive holds a manifest where the ledger knows of none."""
    body = _bytes_at(inst, key)
    with inst.ledger.read() as conn:
        if body is not None and not _is_ours(conn, body, report_id):
            raise _unknown()


def _unknown() -> IntegrityError:
    return IntegrityError(
        "The archive holds a manifest that the ledger does not know; it was not replaced.",
        "Restore the ledger from a backup. If it is lost, move the manifests of the month out of the archive.",
    )


def _keep(inst: Installation, month: str, report_id: str, latest: RowMapping) -> None:
    """Keep the bytes of the edition that is about to be replaced.

    They are at the plain key unless a crash came after the replacement; then they are kept already.
    """
    kept = edition_key(month, report_id, latest["edition"])
    if inst.archive.exists(kept):
        return
    body = _bytes_at(inst, manifest_key(month, report_id))
    if body is None or sha256_hex(body) != latest["digest"]:
        with inst.ledger.read() as conn:
            body = rebuild(conn, latest)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "manifest.json")
        copy.write_bytes(body)
        inst.archive.put_once(kept, copy, latest["digest"])


def _record(inst: Installation, report: ReportState, edition: Edition, envelope: Envelope, now: datetime) -> bool:
    """Row and event in one transaction. False when another worker recorded the same edition first."""
    job = report.job
    row = {
        "report_id": job["report_id"],
        "edition": edition.number,
        "month": job["month"],
        "job_id": job["job_id"],
        "content_digest": report.content_digest,
        "digest": sha256_hex(envelope.dumps()),
        "previous_digest": edition.previous_digest,
        "key_id": envelope.signatures[0].key_id,
        "signature": envelope.signatures[0].value.hex(),
        "published_at": now,
        "deleted_at": edition.deleted_at,
    }
    payload = {key: row[key] for key in ("report_id", "edition", "content_digest", "digest", "previous_digest")}
    payload |= {name: job[name] for name in ("extractor_version", "policy_digest", "correlation_id", "source_hash")}
    if edition.deleted_at:
        payload |= {"deleted_at": moment(edition.deleted_at)}
    try:
        with inst.ledger.begin() as tx:
            tx.execute(insert(manifests).values(**row))
            events.record_event(
                tx, "manifest_published", month=job["month"], job_id=job["job_id"], payload=payload, now=now
            )
    except DuplicateRow:
        return False
    return True


def _yield_to_other(inst: Installation, report: ReportState, ours: str, now: datetime) -> PublishedManifest:
    """Another worker recorded this edition first: its bytes stand, and ours may have replaced them."""
    with inst.ledger.read() as conn:
        latest = latest_edition(conn, report.job["report_id"])
        current = read_report(conn, latest["job_id"]) if latest else None
    if latest is None or current is None:
        raise IntegrityError("The record of a manifest is gone.", "Tell the operator.", Reason.RECEIPT_CONFLICT)
    if latest["digest"] != ours:
        restore_current(inst, latest, now)
    return _published(current, latest["edition"], latest["digest"], latest["content_digest"], written=False)
