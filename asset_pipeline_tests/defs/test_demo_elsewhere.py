"""The demo's months are the same wherever they are kept and however their work is cut."""

from __future__ import annotations

import hashlib
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.defs.instance import materialize_months, open_instance
from asset_pipeline.installation import open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import attempts, jobs, manifests, receipts, source_documents
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.month import work_month

INBOX = Path(__file__).parents[2] / "fixtures" / "inbox"
MONTHS = ("2026-08", "2026-09", "2026-10")


def _contents(settings: Settings) -> list[tuple[str, str]]:
    """Source digest and content digest of every manifest; names and ids differ by installation."""
    query = select(jobs.c.source_hash, manifests.c.content_digest).join(manifests, manifests.c.job_id == jobs.c.job_id)
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        return sorted((row[0], row[1]) for row in conn.execute(query))


def _work_demo(home: Path, **how: int) -> list[tuple[str, str]]:
    """Work the demo's months on SQLite and folders, without Dagster; their contents."""
    shutil.copytree(INBOX, home / "inbox")
    settings = load_settings(home=home, settle_seconds=0, **how)
    with open_installation(settings) as inst:
        for month in MONTHS:
            admit_month(inst, month, _now, wait=True)
            work_month(inst, month, workers=settings.workers)
            publish_manifests(inst, month, _now())
    return _contents(settings)


def _now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """One decoder, whole documents."""
    return _work_demo(tmp_path_factory.mktemp("here"), workers=1)


def test_the_demo_on_postgres_and_s3_has_the_same_content(
    here: list[tuple[str, str]], dagster_database: Path, tmp_path: Path, postgres_url: str, s3_settings
) -> None:
    settings = load_settings(home=tmp_path, settle_seconds=0, ledger=postgres_url, workers=2, **s3_settings.settings())
    with open_installation(settings) as inst:
        for document in INBOX.rglob("*.*"):
            key = document.relative_to(INBOX).as_posix()
            inst.inbox.put_once(key, document, hashlib.sha256(document.read_bytes()).hexdigest())
    with open_instance(settings) as instance:
        assert all(result.success for result in materialize_months(settings, MONTHS, instance=instance))
        assert type(instance.event_log_storage).__name__ == "PostgresEventLogStorage"
    assert len(here) == 21
    assert _contents(settings) == here
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        assert conn.scalar(select(func.count()).select_from(source_documents)) == 20
        assert conn.scalar(select(func.count()).select_from(receipts)) > 150


@pytest.mark.parametrize(("workers", "pages"), [(2, 1), (2, 3)])
def test_the_demo_cut_into_page_ranges_has_the_same_content(
    here: list[tuple[str, str]], tmp_path: Path, workers: int, pages: int
) -> None:
    assert _work_demo(tmp_path, workers=workers, pages_per_unit=pages) == here


def test_a_change_of_retention_extracts_nothing_again_and_writes_nothing(tmp_path: Path) -> None:
    shutil.copytree(INBOX / "press-desk" / MONTHS[2], tmp_path / "inbox" / "press-desk" / MONTHS[2])
    settings = load_settings(home=tmp_path, settle_seconds=0)
    materialize_months(settings, MONTHS[2:])
    before = _state(settings)
    settings.policy_file.write_text("retention: {archive_days: 30, working_days: 2}\n")
    materialize_months(settings, MONTHS[2:])
    assert _state(settings) == before
    assert before["attempts"] > 0


def _state(settings: Settings) -> dict[str, object]:
    """Rows that extraction adds, and every file of the archive with its bytes and time of writing."""
    archive = Path(settings.store_address("archive"))
    files = {
        str(file.relative_to(archive)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in archive.rglob("*")
        if file.is_file()
    }
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        rows = {
            table.name: conn.scalar(select(func.count()).select_from(table)) for table in (jobs, attempts, receipts)
        }
    return {"files": files, **rows}
