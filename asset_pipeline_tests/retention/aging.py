"""Installations whose clock the test moves: reports with pictures, some shared, admitted when the test says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy import select

from asset_pipeline.archive.catalogue import publish_catalogue
from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.installation import Installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import audit_events, jobs, uploads
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import open_previews

START = datetime.now(UTC).replace(microsecond=0)
"""When the first reports come in: now, because stores give files the time of now."""

DAYS = 30
"""The archive clock of these installations."""

POLICY = f"retention: {{working_days: 2, archive_days: {DAYS}}}\n"


def day(number: float) -> datetime:
    return START + timedelta(days=number)


def put(inst: Installation, name: str, colours: list[int], *, collection="city", month="2026-05", **how: bool) -> None:
    """Put a document into the inbox, wherever that is."""
    import tempfile
    from pathlib import Path

    from asset_pipeline_tests.small_documents import picture_pdf

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        picture_pdf(file, colours, **how)
        inst.inbox.put_current(f"{collection}/{month}/{name}", file.read_bytes())


def read(inst: Installation, at: datetime, month: str = "2026-05") -> None:
    """All that a run of the month does, at that time."""
    admit_month(inst, month, lambda: at, wait=False)
    work_month(inst, month, workers=1, clock=lambda: at)
    publish_manifests(inst, month, at)
    publish_gallery(inst, month, lambda: open_previews(inst, 1))
    publish_catalogue(inst, month)


def files(inst: Installation) -> dict[str, set[str]]:
    """Keys in the stores, without what proves things: checkpoints and manifests."""
    kept: dict[str, set[str]] = {}
    for name in ("sources", "archive", "quarantine"):
        store = getattr(inst, name)
        store.check()
        keys = {entry.key for entry in store.list()}
        kept[name] = {key for key in keys if not key.startswith(("checkpoints/", "manifests/"))}
    return kept


def pictures(inst: Installation) -> set[str]:
    return {key.rpartition("/")[2] for key in files(inst)["archive"] if key.startswith("objects/")}


def shown(inst: Installation) -> str:
    """Everything that gallery and catalogue of the installation say, as one text."""
    keys = sorted(key for key in files(inst)["archive"] if key.startswith(("galleries/", "catalogue/")))
    text = []
    for key in keys:
        with inst.archive.open(key) as stream:
            text.append(key + stream.read().decode("latin-1"))
    return "\n".join(text)


def events(inst: Installation, *types: str) -> list[dict]:
    """Events of these types, as they read."""
    with inst.ledger.read() as conn:
        query = select(audit_events.c.payload).where(audit_events.c.type.in_(types)).order_by(audit_events.c.seq)
        return [json.loads(body) for body in conn.execute(query).scalars()]


def digests(found: Iterable[dict]) -> list[str]:
    return sorted(digest for event in found for digest, _ in event.get("objects", []))


def job_of_name(inst: Installation, name: str) -> dict:
    """The job of the last upload of that name."""
    with inst.ledger.read() as conn:
        query = select(jobs).join(uploads, uploads.c.job_id == jobs.c.job_id).where(uploads.c.name == name)
        return dict(conn.execute(query.order_by(uploads.c.first_seen_at.desc()).limit(1)).mappings().one())


@contextmanager
def no_previews():
    """Makes no preview: for passes in which none is missing."""

    class Nothing:
        def thumbnails(self, displays, keep) -> None:
            raise AssertionError(f"{len(displays)} thumbnails are missing")

        def pages(self, source_hash, wanted, keep) -> None:
            raise AssertionError(f"{len(wanted)} pages are missing")

    yield Nothing()
