"""The four ways in which a month goes wrong before anybody trusts it, tried on real stores and a real ledger.

Each check works a month of its own in a ``rehearsal`` and returns what it saw, or raises ``NotHeld`` with what should
have been. What they ask is what an auditor would: how many jobs, attempts, receipts and manifests there are afterwards.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from sqlalchemy import func, select

from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.errors import LeaseLost, StorageError
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading, units
from asset_pipeline.ledger.schema import attempts, jobs, receipts
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason, ReasonClass, reason_class
from asset_pipeline.retention.held import holding
from asset_pipeline.retention.janitor import sweep
from asset_pipeline.storage.store import Store
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.plan import plan_job

COLLECTION = "gate"
PICTURES = 2
"""Pages of the document that is tried, with one picture each."""


class NotHeld(Exception):
    """A check found something else than it must."""


@dataclass(frozen=True, slots=True)
class GateCheck:
    """``run`` works ``month`` and says in one line what it saw. Raises NotHeld."""

    name: str
    meaning: str
    run: Callable[[Installation, str], str]


def duplicate_submission(inst: Installation, month: str) -> str:
    """The same bytes, handed in again under the same name and under another."""
    _drop(inst, month, "report.pdf", _document(month))
    _work(inst, month)
    tried = _attempts(inst, month)
    inst.inbox.put_current(f"{COLLECTION}/{month}/report.pdf", _document(month))
    _drop(inst, month, "copy.pdf", _document(month))
    _work(inst, month)
    documents = _documents(inst, month)
    _must(len(documents) == 2, f"two names are {len(documents)} reports")
    _must(_jobs(inst, month) == 2, "the second submission made a job of its own")
    for document in documents:
        _must_be_whole(inst, document)
    _must(_attempts(inst, month)[: len(tried)] == tried, "the first submission was worked again")
    with inst.ledger.read() as conn:
        summary = reading.month_summary(conn, month)
    return f"one job a report, {summary.receipts} receipts, {summary.duplicate_uploads} told as duplicates"


def transient_time_out(inst: Installation, month: str) -> str:
    """The archive store writes a picture, but its answer is lost."""
    _drop(inst, month, "report.pdf", _document(month))
    failing = _AnswerLost(inst.archive)
    _work(replace(inst, archive=cast(Store, failing)), month)
    _must(failing.lost, "no picture was written")
    (document,) = _documents(inst, month)
    _must_be_whole(inst, document)
    outcomes = _attempts(inst, month)
    _must([outcome for outcome, _ in outcomes] == ["retried", "published"], f"the attempts ended as {outcomes}")
    return f"retried once for {outcomes[0][1]}, then published; one receipt a picture"


def malformed_bytes(inst: Installation, month: str) -> str:
    """A file that begins as a PDF and goes on as noise, beside a sound document."""
    _drop(inst, month, "sound.pdf", _document(month))
    _drop(inst, month, "noise.pdf", b"%PDF-1.7\n" + secrets.token_bytes(20_000))
    _work(inst, month)
    documents = {row.state: row for row in _documents(inst, month)}
    _must(set(documents) == {"succeeded", "failed_permanently"}, f"the documents ended as {sorted(documents)}")
    _must_be_whole(inst, documents["succeeded"])
    refused = documents["failed_permanently"]
    _must(refused.edition == 1, "the refused document has no manifest")
    _must(reason_class(Reason(str(refused.reason))) is ReasonClass.PERMANENT, f"it was refused for {refused.reason}")
    _must(refused.tries == 0, "the malformed document was tried again")
    return f"refused for {refused.reason} at once, with a manifest; the other document is whole"


def expired_directory(inst: Installation, month: str) -> str:
    """A worker died: its lease has run out and its working directory is still there. It wakes up late."""
    _drop(inst, month, "report.pdf", _document(month))
    admit_month(inst, month, utc_now, wait=True)
    dead = _claim_and_die(inst, month)
    left, live = _old_directory(inst), _old_directory(inst)
    _work(inst, month)
    (document,) = _documents(inst, month)
    _must_be_whole(inst, document)
    outcomes = [outcome for outcome, _ in _attempts(inst, month)]
    _must(outcomes == ["fenced", "published"], f"the attempts ended as {outcomes}")
    try:
        with inst.ledger.begin() as tx:
            units.fail_unit(tx, dead, Reason.INTERNAL_ERROR, utc_now())
    except LeaseLost:
        pass
    else:
        raise NotHeld("the worker that woke up late could still write")
    with holding(live):
        _age(live)
        removed = sweep(inst, utc_now()).directories
        _must(not left.exists() and removed == 1, "the expired directory is still there")
        _must(live.exists(), "the directory of a live worker was removed")
        _must(sweep(inst, utc_now()).directories == 0, "removing twice is not the same as once")
    return "another worker took over, the late one was refused, and its directory is gone"


CHECKS = (
    GateCheck("duplicate submission", "the same bytes twice are one job", duplicate_submission),
    GateCheck("transient time-out", "a lost answer costs a retry, never a picture", transient_time_out),
    GateCheck("malformed bytes", "refused at once, and harms no other document", malformed_bytes),
    GateCheck("expired directory", "what a dead worker leaves is taken over and removed", expired_directory),
)


class _AnswerLost:
    """The store, but for the first write, which happens and is not answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.lost = False

    def put_once(self, key: str, source: Path, sha256: str) -> bool:
        written = self._store.put_once(key, source, sha256)
        with self._lock:
            first, self.lost = not self.lost, True
        if first:
            raise StorageError("The archive store did not answer in time.")
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def _document(month: str) -> bytes:
    """A PDF with ``PICTURES`` pages, each with a picture that no other month has: its first write is a write."""
    import io

    import pikepdf

    with pikepdf.new() as pdf:
        for number in range(PICTURES):
            page = pdf.add_blank_page(page_size=(200, 200))
            picture = pdf.make_stream(hashlib.sha256(f"{month} {number}".encode()).digest() * 6)
            picture.Type, picture.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
            picture.Width, picture.Height, picture.BitsPerComponent = 8, 8, 8
            picture.ColorSpace = pikepdf.Name.DeviceRGB
            page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=picture))
            page.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im0 Do Q")
        target = io.BytesIO()
        pdf.save(target, deterministic_id=True)
    return target.getvalue()


def _drop(inst: Installation, month: str, name: str, body: bytes) -> None:
    with tempfile.TemporaryDirectory(dir=inst.settings.work_folder) as folder:
        source = Path(folder, "document")
        source.write_bytes(body)
        inst.inbox.put_once(f"{COLLECTION}/{month}/{name}", source, hashlib.sha256(body).hexdigest())


def _work(inst: Installation, month: str) -> None:
    admit_month(inst, month, utc_now, wait=True)
    work_month(inst, month, workers=1)
    publish_manifests(inst, month, utc_now())


def _claim_and_die(inst: Installation, month: str) -> units.Claim:
    """What a worker that was killed an hour ago left in the ledger."""
    with inst.ledger.read() as conn:
        job_id = conn.execute(select(jobs.c.job_id).where(jobs.c.month == month)).scalar_one()
    with DecoderPool(1, inst.policy, caged=inst.settings.sandbox) as pool:
        plan_job(inst, pool, job_id)
    with inst.ledger.begin() as tx:
        unit_id = tx.execute(select(units_table.c.unit_id).where(units_table.c.job_id == job_id)).scalar_one()
        long_ago = datetime.now(UTC) - timedelta(hours=1)
        claim = units.claim_unit(tx, unit_id, "gate:0:0", timedelta(seconds=1), long_ago)
    if claim is None:
        raise NotHeld("a planned unit could not be claimed")
    return claim


def _old_directory(inst: Installation) -> Path:
    """A working directory as a worker of an hour ago made it."""
    place = inst.settings.work_folder / secrets.token_hex(16)
    (place / "out").mkdir(parents=True)
    (place / "document").write_bytes(b"%PDF-1.7\n")
    _age(place)
    return place


def _age(place: Path) -> None:
    moment = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    os.utime(place, (moment, moment))


def _documents(inst: Installation, month: str) -> list[reading.DocumentRow]:
    with inst.ledger.read() as conn:
        return reading.documents_of_month(conn, month)


def _jobs(inst: Installation, month: str) -> int:
    with inst.ledger.read() as conn:
        return int(conn.execute(select(func.count()).select_from(jobs).where(jobs.c.month == month)).scalar_one())


def _attempts(inst: Installation, month: str) -> list[tuple[str | None, str | None]]:
    query = (
        select(attempts.c.outcome, attempts.c.reason)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(jobs.c.month == month)
        .order_by(attempts.c.started_at, attempts.c.attempt_id)
    )
    with inst.ledger.read() as conn:
        return [(outcome, reason) for outcome, reason in conn.execute(query)]


def _must_be_whole(inst: Installation, document: reading.DocumentRow) -> None:
    """Succeeded, each picture archived with one receipt, each file in the store, one manifest."""
    _must(document.state == "succeeded", f"a sound document ended as {document.state} ({document.reason})")
    _must(document.archived == PICTURES, f"{document.archived} of {PICTURES} pictures are archived")
    _must(document.receipts == PICTURES, f"there are {document.receipts} receipts for {PICTURES} pictures")
    _must(document.edition == 1, f"its manifest is of edition {document.edition}")
    missing = [key for key in _files(inst, document.job_id) if not inst.archive.exists(key)]
    _must(not missing, f"{len(missing)} recorded files are not in the archive")


def _files(inst: Installation, job_id: str) -> Iterator[str]:
    from asset_pipeline.storage.store import object_key

    query = select(receipts.c.content_hash, receipts.c.display_hash).where(receipts.c.job_id == job_id)
    with inst.ledger.read() as conn:
        found = conn.execute(query).all()
    yield from (object_key(digest) for digest in {digest for row in found for digest in row if digest})


def _must(held: bool, otherwise: str) -> None:
    if not held:
        raise NotHeld(otherwise)
