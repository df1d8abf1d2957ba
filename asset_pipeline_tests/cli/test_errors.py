"""What can go wrong for a user is told in one line without a traceback, and by the exit status."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline.ledger.migrations import VERSION_TABLE
from asset_pipeline_tests.commands import ROOT
from asset_pipeline_tests.small_documents import picture_pdf


@pytest.mark.parametrize("month", ["2026-13", "1999-01", "2999-01", "may", "2026-05-01", "2026-5", "../.."])
def test_a_month_that_cannot_be_is_wrong_usage(command: Callable, month: str) -> None:
    ended = command("run", month)
    assert ended.status == 2
    assert "YYYY-MM" in ended.one_line_error()


def test_a_missing_inbox_is_named(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "inbox").rmdir()
    ended = command("run", "2026-05")
    assert ended.status == 1
    assert "inbox" in ended.one_line_error()


def test_an_archive_that_cannot_be_written_is_named(command: Callable, place: Path) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "a.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    (place / ".asset_pipeline" / "archive").write_text("in the way")
    ended = command("run", "2026-05")
    assert ended.status == 1
    assert "archive" in ended.one_line_error()


@pytest.mark.parametrize("asked", ["extract {} --out out", "compare pdf pypdf {}"])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("pipe", "is a pipe or a device"),
        ("a" * 5000, "File name too long"),
        ("in", "is a folder"),
        ("no", "no file no"),
    ],
)
def test_what_is_no_document_to_read_is_wrong_usage(
    command: Callable, place: Path, asked: str, name: str, told: str
) -> None:
    os.mkfifo(place / "pipe")
    (place / "in").mkdir()
    ended = command(*asked.format(name).split())
    assert ended.status == 2
    assert told in ended.one_line_error()


def test_a_failure_of_the_system_that_nobody_foresaw_says_what_the_system_said(command: Callable) -> None:
    ended = command("demo", "--fixtures", "a" * 5000)
    assert ended.status == 1
    assert "Unexpected OSError (File name too long)" in ended.one_line_error()


def test_an_unknown_engine_is_wrong_usage(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10])
    ended = command("extract", "a.pdf", "--out", "out", "--engine", "magic")
    assert ended.status == 2
    assert "Choose one of" in ended.one_line_error()


@pytest.mark.parametrize("variables", [{}, {"ASSET_PIPELINE_ENGINE": "ooxml"}])
def test_the_engine_of_office_files_is_wrong_usage_for_a_pdf(command: Callable, place: Path, variables: dict) -> None:
    picture_pdf(place / "a.pdf", [10])
    month = place / ".asset_pipeline" / "inbox" / "city" / "2026-05"
    month.mkdir(parents=True)
    picture_pdf(month / "a.pdf", [10])
    asked = ("run", "2026-05") if variables else ("extract", "a.pdf", "--out", "out", "--engine=ooxml")
    ended = command(*asked, **variables)
    assert ended.status == 2
    told = ended.one_line_error()
    assert "reads office files and no PDF" in told
    assert "Choose pdf or pypdf (--engine, or ASSET_PIPELINE_ENGINE)" in told
    assert not (place / "out").exists()
    if variables:
        assert command("run", "2026-05").status == 0, "nothing was refused for it"
        assert '"refused": 0' in command("status", "--format", "json").out


def test_a_database_that_is_behind_says_how_to_upgrade(command: Callable, place: Path) -> None:
    assert command("ledger", "upgrade").status == 0
    database = sqlite3.connect(place / ".asset_pipeline" / "ledger.db")
    with database:
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '0000'")
    database.close()
    ended = command("status")
    assert ended.status == 1
    assert "asset-pipeline ledger upgrade" in ended.one_line_error()


def test_an_unsound_policy_names_the_field(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "policy.yaml").write_text("limits: {pages: -1}\n")
    ended = command("status")
    assert ended.status == 1
    assert "limits.pages" in ended.one_line_error()


def test_a_rule_is_shown_as_it_is_written_and_not_rounded(command: Callable, place: Path) -> None:
    shown = command("policy", "show").out
    assert "objectives.first_attempt_share 0.95" in " ".join(shown.split())
    (place / "policy.yaml").write_text("objectives: {first_attempt_share: 0.925}\n")
    changed = command("policy", "diff", "policy.yaml")
    assert "objectives.first_attempt_share 0.95 0.925 no" in " ".join(changed.out.split())
    assert changed.err.endswith("1 rule differs.\n")


def test_a_policy_file_that_is_named_must_be_there(command: Callable) -> None:
    ended = command("status", ASSET_PIPELINE_POLICY="absent.yaml")
    assert ended.status == 1
    assert "policy file" in ended.one_line_error()


def test_a_wrong_setting_names_its_variable(command: Callable) -> None:
    ended = command("status", ASSET_PIPELINE_WORKERS="many")
    assert ended.status == 1
    assert "ASSET_PIPELINE_WORKERS" in ended.one_line_error()


def test_no_password_is_in_the_message_about_a_database_that_is_away(command: Callable) -> None:
    ended = command("status", ASSET_PIPELINE_LEDGER="postgresql+psycopg2://me:hunter2@127.0.0.1:1/none")
    assert ended.status == 1
    assert "hunter2" not in ended.one_line_error()


def test_debug_shows_where_an_error_came_from(command: Callable) -> None:
    ended = command("--debug", "run", "2026-13")
    assert ended.status == 2
    assert "Traceback" in ended.err


def test_a_document_that_is_not_there_is_wrong_usage(command: Callable) -> None:
    ended = command("extract", "absent.pdf", "--out", "out")
    assert ended.status == 2
    assert "absent.pdf" in ended.one_line_error()


def test_a_folder_is_no_document(command: Callable) -> None:
    ended = command("extract", ".", "--out", "out")
    assert ended.status == 2
    assert "is a folder" in ended.one_line_error()


def test_a_damaged_ledger_keeps_the_web_page_from_starting(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "ledger.db").write_text("no database, but some words instead")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ended = command("ui", "--port", str(port))
    assert ended.status == 1
    assert "damaged" in ended.one_line_error()


def test_a_wrong_password_of_the_database_is_told_as_such(command: Callable, postgres_url: str) -> None:
    address, _, rest = postgres_url.partition("@")
    wrong = f"{address.rpartition(':')[0]}:wrong@{rest}"
    ended = command("status", ASSET_PIPELINE_LEDGER=wrong)
    assert ended.status == 1
    assert "password in ASSET_PIPELINE_LEDGER" in ended.one_line_error()


def test_a_port_that_is_taken_is_wrong_usage(command: Callable) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ended = command("ui", "--port", str(taken.getsockname()[1]))
    assert ended.status == 2
    told = ended.one_line_error()
    assert "--port" in told and "in use)" in told


def test_samples_that_are_not_there_are_named(command: Callable, place: Path) -> None:
    (place / "empty").mkdir()
    ended = command("demo", "--fixtures", "empty")
    assert ended.status == 1
    assert "--fixtures" in ended.one_line_error()


def test_an_interrupt_that_lands_in_a_destructor_is_told_by_nobody_and_not_forgotten() -> None:
    script = (
        "import os, signal\n"
        "from asset_pipeline.cli import interrupts\n"
        "interrupts.listen()\n"
        "class Held:\n"
        "    def __del__(self): os.kill(os.getpid(), signal.SIGTERM); [None for _ in range(100)]\n"
        "held = Held(); del held\n"
        "print(interrupts.arrived() == signal.SIGTERM)\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == ("True\n", "")


@pytest.mark.parametrize("module", ["asset_pipeline.cli.border", "asset_pipeline.cli.console", "typer"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("lands_in", ["an import", "the making of a class"])
def test_an_interrupt_while_the_program_loads_is_one_line(module: str, number: int, lands_in: str) -> None:
    script = (
        "import os, sys\n"
        "class Interrupted:\n"
        f"    def __set_name__(self, owner, name): os.kill(os.getpid(), {number:d}); [None for _ in range(100)]\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name != {module!r}: return\n"
        f"        if {lands_in == 'an import'}: os.kill(os.getpid(), {number:d}); [None for _ in range(100)]\n"
        "        else: type('Loading', (), {'it': Interrupted()})\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from asset_pipeline.cli import main\n"
        "sys.argv = ['asset-pipeline', '--version']\n"
        "main()\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 128 + number
    assert ended.stdout == ""
    assert ended.stderr == "Interrupted; nothing is lost. Run the same command to go on.\n"
