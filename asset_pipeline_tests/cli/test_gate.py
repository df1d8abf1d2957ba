"""`gate`: four checks on the stores and the ledger of the settings, and nothing of them afterwards."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from sqlalchemy import create_engine, text

from asset_pipeline.cli.rehearsal import rehearsal
from asset_pipeline.installation import open_installation
from asset_pipeline.retention.janitor import Sweep, sweep
from asset_pipeline.settings import Settings
from asset_pipeline.storage.store import open_store
from asset_pipeline_tests.small_documents import fresh_settings, picture_pdf

CHECKS = ["duplicate submission", "transient time-out", "malformed bytes", "expired directory"]


def _files(place: Path) -> set[str]:
    return {str(path.relative_to(place)) for path in place.rglob("*")}


def test_the_gate_passes_on_a_folder_and_leaves_nothing(command: Callable, place: Path) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "report.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [1])
    assert command("run", "2026-05").status == 0
    before = _files(place), command("history", "events", "--format", "json").out
    ended = command("gate", "--format", "json")
    assert ended.status == 0, ended.err + ended.out
    body = json.loads(ended.out)
    assert body["passed"] is True
    assert [row["check"] for row in body["checks"] if row["passed"]] == CHECKS
    after = _files(place), command("history", "events", "--format", "json").out
    assert after[1] == before[1], "the archive's own records know nothing of it"
    assert {name for name in after[0] ^ before[0] if not name.endswith(("-wal", "-shm"))} == set()


def test_the_gate_passes_on_a_bucket_and_postgres_and_leaves_nothing(
    command: Callable, place: Path, s3_settings, postgres_url: str
) -> None:
    stores = s3_settings.settings()
    variables = {f"ASSET_PIPELINE_{name.upper()}": value for name, value in stores.items()}
    ended = command("gate", "--format", "json", **variables, ASSET_PIPELINE_LEDGER=postgres_url)
    assert ended.status == 0, ended.err + ended.out
    assert [row["check"] for row in json.loads(ended.out)["checks"] if row["passed"]] == CHECKS
    settings = Settings(**stores)
    for name in ("inbox", "sources", "archive", "quarantine"):
        assert list(open_store(stores[name], settings, name).list()) == []
    engine = create_engine(postgres_url)
    with engine.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'gate%'")).scalar() == 0
        assert conn.execute(text("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")).scalar() == 0
    engine.dispose()


@contextmanager
def _killed_in(settings: Settings) -> Iterator[datetime]:
    """A rehearsal that made its copy and was killed; when it began."""
    now = datetime.now(UTC)
    pid = os.fork()
    if pid == 0:
        try:
            with rehearsal(settings, now) as copy:
                submission = Path(copy.settings.store_address("archive"))
                if not copy.settings.archive.startswith("s3://"):
                    submission.mkdir(exist_ok=True)
                else:
                    copy.archive.put_current("galleries/index.html", b"left")
                os.kill(os.getpid(), signal.SIGKILL)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    yield now


@pytest.mark.parametrize("elsewhere", [False, True], ids=["folders and SQLite", "a bucket and PostgreSQL"])
def test_what_a_killed_gate_left_is_taken_by_the_janitor_after_an_hour(
    elsewhere: bool, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = fresh_settings(tmp_path)
    if elsewhere:
        stores = request.getfixturevalue("s3_settings").settings()
        ledger = SecretStr(request.getfixturevalue("postgres_url"))
        settings = settings.model_copy(update={**stores, "ledger": ledger})
    with open_installation(settings) as inst, _killed_in(settings) as began:

        def left() -> list[str]:
            found = [str(path) for path in settings.home.rglob("gate-*")]
            if elsewhere:
                with inst.ledger.read() as conn:
                    schemas = text("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'gate%'")
                    found += conn.execute(schemas).scalars().all()
                found += [entry.key for entry in inst.archive.list() if entry.key.startswith("gate-")]
            return found

        assert len(left()) >= 3
        assert sweep(inst, began + timedelta(minutes=59)).rehearsals == 0
        assert len(left()) >= 3
        assert sweep(inst, began + timedelta(minutes=61)).rehearsals == 1
        assert left() == []
        assert sweep(inst, began + timedelta(minutes=61)) == Sweep()


def test_a_database_in_which_no_schema_may_be_made_is_told_in_one_line(command: Callable, postgres_url: str) -> None:
    role = f"reader_{secrets.token_hex(4)}"
    engine = create_engine(postgres_url)
    with engine.begin() as tx:
        tx.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'hush'"))
    engine.dispose()
    address = engine.url.set(username=role, password="hush").render_as_string(hide_password=False)
    ended = command("gate", ASSET_PIPELINE_LEDGER=address)
    assert ended.status == 1
    assert "schema" in ended.one_line_error()
    assert "hush" not in ended.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can take a store away from itself in this way")
def test_a_store_that_cannot_be_written_fails_the_gate(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "sources").touch()
    ended = command("gate", "--format", "json")
    assert ended.status == 1
    assert not any(row["passed"] for row in json.loads(ended.out)["checks"])
