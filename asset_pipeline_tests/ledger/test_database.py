from __future__ import annotations

import subprocess
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, insert, select, text
from sqlalchemy.exc import IntegrityError as RefusedRow

import asset_pipeline.ledger.migrations as migrations
from asset_pipeline.errors import ConfigurationError, LedgerBehindError, PipelineError, StorageError
from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.migrations.append_only import guard, unguarded
from asset_pipeline.ledger.schema import APPEND_ONLY, event_counter, jobs, metadata, source_documents
from asset_pipeline_tests.ledger.making import NOW, add_upload


def test_empty_database_becomes_a_ledger_of_the_newest_schema(database_url: str) -> None:
    ledger = open_ledger(database_url)
    assert ledger.at_head()
    with ledger.read() as conn:
        assert conn.execute(select(event_counter)).all() == [(1, 0, None, None)]
        context = MigrationContext.configure(conn, opts={"compare_type": True, "version_table": "ledger_version"})
        assert compare_metadata(context, metadata) == []
    ledger.close()


def test_named_head_is_the_newest_step_and_there_is_only_one() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [migrations.HEAD]


def test_append_only_triggers_exist_after_every_migration(ledger: Ledger) -> None:
    with ledger.begin() as tx:
        assert unguarded(tx, APPEND_ONLY) == []
        kept = "receipts_keeps_update" if tx.dialect.name == "sqlite" else "receipts_keeps_rows"
        on = "" if tx.dialect.name == "sqlite" else " ON receipts"
        tx.execute(text(f"DROP TRIGGER {kept}{on}"))
        assert unguarded(tx, APPEND_ONLY) == [kept]
        guard(tx, APPEND_ONLY)
        assert unguarded(tx, APPEND_ONLY) == []


def test_database_behind_the_program_is_refused_with_the_command_that_helps(database_url: str) -> None:
    open_ledger(database_url).close()
    _set_revision(database_url, "0000")
    with pytest.raises(LedgerBehindError, match=r"behind.*`asset-pipeline ledger upgrade`"):
        open_ledger(database_url)
    assert not open_ledger(database_url, check=False).at_head()


def test_database_ahead_of_the_program_is_refused_and_never_touched(database_url: str) -> None:
    open_ledger(database_url).close()
    _set_revision(database_url, "9999")
    with pytest.raises(LedgerBehindError, match="ahead"):
        open_ledger(database_url)
    with pytest.raises(LedgerBehindError, match="ahead"):
        open_ledger(database_url, check=False).upgrade()


def test_upgrade_of_an_empty_database_and_a_second_one_change_nothing_more(database_url: str) -> None:
    ledger = open_ledger(database_url, check=False)
    assert not ledger.at_head()
    ledger.upgrade()
    ledger.upgrade()
    assert ledger.at_head()
    ledger.close()


def test_database_of_another_program_is_left_alone(database_url: str) -> None:
    other = open_ledger(database_url, check=False)
    with other.begin() as tx:
        tx.execute(text("CREATE TABLE jobs (id INTEGER)"))
    with pytest.raises(ConfigurationError, match="database of its own"):
        open_ledger(database_url)
    with other.read() as conn:
        assert conn.execute(text("SELECT count(*) FROM jobs")).scalar() == 0
    other.close()


def test_two_processes_may_open_a_new_ledger_at_once(database_url: str) -> None:
    code = "import sys; from asset_pipeline.ledger.database import open_ledger; open_ledger(sys.argv[1]).close()"
    processes = [
        subprocess.Popen([sys.executable, "-c", code, database_url], stderr=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[1] for process in processes] == ["", "", ""]
    ledger = open_ledger(database_url)
    with ledger.read() as conn:
        assert conn.execute(select(event_counter)).all() == [(1, 0, None, None)]
    ledger.close()


def test_eight_threads_may_open_a_new_ledger_at_once(database_url: str) -> None:
    with ThreadPoolExecutor(8) as threads:
        for ledger in list(threads.map(lambda _: open_ledger(database_url), range(8))):
            ledger.close()


def test_transaction_that_fails_leaves_nothing(ledger: Ledger) -> None:
    with pytest.raises(InterruptedError), ledger.begin() as tx:
        add_upload(tx, "field-notes", "tides.pdf", "waiting")
        raise InterruptedError
    with ledger.begin() as tx:
        add_upload(tx, "field-notes", "tides.pdf", "waiting")
    with ledger.read() as conn:
        assert conn.execute(text("SELECT count(*) FROM uploads")).scalar() == 1


def test_reader_sees_one_moment_and_does_not_wait_for_a_writer(ledger: Ledger) -> None:
    with ledger.read() as conn:
        count = text("SELECT count(*) FROM uploads")
        assert conn.execute(count).scalar() == 0
        with ledger.begin() as tx:
            add_upload(tx, "field-notes", "tides.pdf", "waiting")
        assert conn.execute(count).scalar() == 0
    with ledger.read() as conn:
        assert conn.execute(count).scalar() == 1


def test_row_that_names_a_missing_row_is_refused(ledger: Ledger) -> None:
    with pytest.raises(RefusedRow), ledger.begin() as tx:
        tx.execute(
            text(
                "INSERT INTO units (unit_id, job_id, sequence, first_page, state, fence, tries, lost_decoders)"
                " VALUES ('u', 'no such job', 0, 1, 'queued', 0, 0, 0)"
            )
        )


def test_times_come_back_in_utc_and_one_without_zone_is_refused(ledger: Ledger) -> None:
    row = {"sha256": "0" * 64, "bytes": 1, "stored": 1}
    summer = datetime(2026, 9, 30, 14, tzinfo=timezone(timedelta(hours=2)))
    with ledger.begin() as tx:
        tx.execute(insert(source_documents).values(**row, admitted_at=summer))
    with ledger.read() as conn:
        (found,) = conn.execute(select(source_documents.c.admitted_at)).scalars()
    assert (found, found.tzinfo) == (NOW, UTC)
    with pytest.raises(Exception, match="without a zone"), ledger.begin() as tx:
        tx.execute(insert(source_documents).values(**row | {"sha256": "1" * 64}, admitted_at=NOW.replace(tzinfo=None)))


def test_sqlite_connections_have_the_settings_that_the_guarantees_need(tmp_path: Path) -> None:
    ledger = open_ledger(f"sqlite:///{tmp_path}/ledger.db")
    wanted = {"journal_mode": "wal", "foreign_keys": 1, "recursive_triggers": 1, "busy_timeout": 30_000}
    with ledger.begin() as tx:
        assert {name: tx.execute(text(f"PRAGMA {name}")).scalar() for name in wanted} == wanted
    ledger.close()
    assert (tmp_path / "ledger.db").stat().st_mode & 0o077 == 0


def test_folder_that_cannot_be_made_is_told_in_one_line_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ConfigurationError, match="ASSET_PIPELINE_LEDGER") as caught:
        open_ledger(f"sqlite:///{tmp_path}/file/ledger.db")
    assert "\n" not in str(caught.value)
    assert str(tmp_path) not in str(caught.value)


def test_file_that_is_no_database_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StorageError, match="no database"):
        open_ledger(f"sqlite:///{tmp_path}/ledger.db")


def test_database_that_is_away_is_a_storage_error_without_credentials(postgres_url: str) -> None:
    server, _, name = postgres_url.rpartition("/")
    wrong = server.rpartition(":")[0] + ":1/" + name
    assert _told(wrong, StorageError, server) == "Nobody answers at the ledger's address."


def test_wrong_password_is_told_without_it(postgres_url: str) -> None:
    scheme, _, place = postgres_url.partition("@")
    url = f"{scheme.rpartition(':')[0]}:hunter2hunter2@{place}"
    assert "refused the user or the password" in _told(url, StorageError, "hunter2hunter2")


def test_option_that_is_not_known_is_a_configuration_error() -> None:
    url = "postgresql://root:hunter2hunter2@127.0.0.1:1/ledger?sslmod=require"
    assert "option" in _told(url, ConfigurationError, "hunter2hunter2")


@pytest.mark.parametrize(
    "url",
    [
        "mysql://root:hunter2hunter2@localhost/ledger",
        "postgresql+asyncpg://root:hunter2hunter2@localhost/ledger",
        "postgresql://root:hunter2hunter2@localhost:port/ledger",
        "postgres://root:hunter2hunter2@localhost/ledger",
        "sqlite://",
        "hunter2hunter2",
        "",
    ],
)
def test_address_that_cannot_be_used_is_told_without_repeating_it(url: str) -> None:
    assert "ASSET_PIPELINE_LEDGER" in str(_told(url, ConfigurationError, "hunter2hunter2", whole=True))


def test_refused_row_does_not_show_its_values(ledger: Ledger) -> None:
    with pytest.raises(RefusedRow) as unlisted, ledger.begin() as tx:
        add_upload(tx, "field-notes", "tides.pdf", "lost")
    with pytest.raises(RefusedRow) as repeated, ledger.begin() as tx:
        for _ in range(2):
            add_upload(tx, "field-notes", "tides.pdf", "waiting", tag="same")
    for caught in (unlisted, repeated):
        told = "".join(traceback.format_exception_only(caught.value))
        assert "tides.pdf" not in f"{told} {caught.value.orig} {caught.value.__cause__!r}"


def test_states_outside_the_enumeration_are_refused_by_the_database(ledger: Ledger) -> None:
    with pytest.raises(RefusedRow), ledger.begin() as tx:
        add_upload(tx, "field-notes", "tides.pdf", "lost")
    assert {constraint.name for constraint in jobs.constraints} >= {"ck_jobs_state"}


def _set_revision(url: str, revision: str) -> None:
    engine = create_engine(url)
    with engine.begin() as conn:
        conn.execute(text(f"UPDATE ledger_version SET version_num = '{revision}'"))
    engine.dispose()


def _told(url: str, kind: type[PipelineError], secret: str, *, whole: bool = False) -> str:
    with pytest.raises(kind) as caught:
        open_ledger(url)
    assert secret not in "".join(traceback.format_exception(caught.value))
    return str(caught.value) if whole else caught.value.what
