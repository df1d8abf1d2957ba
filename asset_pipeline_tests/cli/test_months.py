"""`demo`, `run` and `status` over real months, through Dagster."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline.cli import console
from asset_pipeline.cli.months import COLUMNS
from asset_pipeline_tests.small_documents import noisy_pdf, picture_pdf


@pytest.fixture
def samples(place: Path) -> Path:
    for month, colours in (("2026-03", [10, 10]), ("2026-04", [20]), ("2026-05", [30])):
        folder = place / "samples" / "city" / month
        folder.mkdir(parents=True)
        picture_pdf(folder / "report.pdf", colours)
    picture_pdf(place / "samples" / "city" / "2026-05" / "locked.pdf", [40], encrypted=True)
    picture_pdf(place / "samples" / "city" / "2026-05" / "broken.pdf", [50], broken_picture=True)
    return place / "samples"


def test_the_demo_runs_three_months_and_a_second_time_does_no_extraction(command: Callable, samples: Path) -> None:
    first = command("demo", "--fixtures", samples, "--format", "json")
    assert first.status == 0, first.err
    months = {row["month"]: row for row in json.loads(first.out)["months"]}
    assert sorted(months) == ["2026-03", "2026-04", "2026-05"]
    assert (months["2026-03"]["pictures"], months["2026-03"]["collapsed"]) == (1, 1)
    assert months["2026-05"]["documents"] == 3
    assert months["2026-05"]["quarantined"] == 1
    assert months["2026-05"]["refused_for"] == {"encrypted": 1}

    second = command("demo", "--fixtures", samples)
    assert second.status == 0, second.err
    assert "No extraction work" in second.err
    assert "2026-04" in second.out


def test_status_tells_what_was_refused_and_what_to_do(command: Callable, place: Path, samples: Path) -> None:
    stray = place / ".asset_pipeline" / "inbox" / "city" / "stray.pdf"
    stray.parent.mkdir(parents=True)
    picture_pdf(stray, [1])
    assert command("demo", "--fixtures", samples).status == 0

    as_json = command("status", "--format", "json")
    body = json.loads(as_json.out)
    assert [row["month"] for row in body["months"]] == ["2026-03", "2026-04", "2026-05"]
    reasons = {row["reason"]: row for row in body["attention"]}
    assert "password" in reasons["encrypted"]["remedy"]
    assert reasons["key_not_understood"]["remedy"]

    as_csv = command("status", "2026-05", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(as_csv.out)))
    assert {row["month"] for row in rows} == {"2026-05", ""}
    assert [row["name"] for row in rows if not row["month"]] == ["city/stray.pdf"], "of no month, so shown with each"
    assert {row["state"] for row in rows} >= {"succeeded", "failed_permanently"}

    as_table = command("status")
    assert as_table.status == 0
    (locked,) = [row for row in re.split(r"\n *\n", as_table.out) if "city/locked.pdf" in row]
    assert "The document needs a password." in locked, "in words"
    assert "(encrypted)" in locked, "with the code to look up"
    assert "without a password" in " ".join(as_table.out.split())
    assert max(map(len, as_table.out.splitlines())) < 140, "no line is too long to be read"


def test_a_run_names_the_manifests(command: Callable, place: Path) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "a.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    ended = command("run", "2026-05")
    assert ended.status == 0, ended.err
    assert "manifests/2026-05" in ended.out
    assert "have settled" not in ended.err, "nothing had to be waited for"
    assert len(list((place / ".asset_pipeline" / "archive" / "manifests" / "2026-05").glob("*.json"))) == 1

    empty = command("run", "2026-04")
    assert empty.err.splitlines()[-1] == "There is nothing in the inbox for 2026-04."
    assert "manifests/2026-04" not in empty.out, "there is no such folder"
    assert "everything was there" not in empty.err

    picture_pdf(document.with_name("locked.pdf"), [20], encrypted=True)
    refused = command("run", "2026-05", "--format", "json", ASSET_PIPELINE_SETTLE_SECONDS="0.2")
    assert json.loads(refused.out)["months"][0]["refused"] == 1
    assert "everything was there" not in refused.err, "there was a document, which was refused"
    assert refused.err.count("Waiting until the uploads of 2026-05 have settled (0.2 s)") == 1


def test_a_run_ends_with_what_was_not_taken_in_and_which_checks_failed(
    command: Callable, place: Path, samples: Path
) -> None:
    inbox = place / ".asset_pipeline" / "inbox"
    inbox.joinpath("city", "2026-5").mkdir(parents=True)
    picture_pdf(inbox / "city" / "2026-5" / "misplaced.pdf", [1])
    inbox.joinpath("city", "2026-03").mkdir()
    inbox.joinpath("city", "2026-03", "link.pdf").symlink_to(samples / "city" / "2026-03" / "report.pdf")
    ended = command("demo", "--fixtures", samples)
    assert ended.status == 0, "refused documents and quarantined pictures are results, not failures"
    lines = ended.err.splitlines()
    (misplaced,) = [line for line in lines if "misplaced.pdf" in line]
    assert misplaced.startswith("Not taken in: city/2026-5/misplaced.pdf (key_not_understood)")
    assert "collection/YYYY-MM/name" in misplaced
    (link,) = [line for line in lines if "link.pdf" in line]
    assert "no link" in link and "PDF, docx, pptx or xlsx" in link
    failed = [line.removeprefix("Check failed in ") for line in lines if line.startswith("Check failed in ")]
    assert [line.partition(".")[0] for line in failed] == [
        "2026-05: every_document_read",
        "2026-05: nothing_quarantined",
    ]


def test_status_lists_what_waits_for_its_collection_and_when_it_is_taken(
    command: Callable, place: Path, samples: Path
) -> None:
    shutil.copytree(samples, place / ".asset_pipeline" / "inbox", dirs_exist_ok=True)
    body = json.loads(command("status", "2026-05", "--format", "json", ASSET_PIPELINE_QUEUED_BYTES="1").out)
    assert body["months"][0]["uploads_deferred"] == 3, "two documents of earlier months come first"
    told = {row["name"]: row for row in body["rows"]}["report.pdf"]
    assert told["state"] == "deferred"
    assert "may have 1 byte queued" in told["meaning"] and "a later run takes it, once " in told["remedy"]
    question = "SELECT meaning, remedy FROM pages WHERE document = 'report.pdf' AND month = '2026-05'"
    for asked in (("page", "report.pdf", "1"), ("catalogue", "query", question)):
        rows = json.loads(command(*asked, "--format", "json", ASSET_PIPELINE_QUEUED_BYTES="1").out)
        (row,) = [row for row in rows if row.get("month", "2026-05") == "2026-05"]
        assert "may have 1 byte queued" in row["meaning"] and "a later run takes it, once " in row["remedy"]


def test_a_run_whose_archive_lost_a_picture_ends_with_status_1_and_fsck_repairs_it(
    command: Callable, place: Path
) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "a.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    assert command("run", "2026-05").status == 0
    sound = command("fsck")
    assert (sound.status, sound.out) == (0, "")
    assert sound.err.startswith("Sound: 1 month, 1 page, 1 picture, 1 source and 1 manifest; ")

    lost = next((place / ".asset_pipeline" / "archive" / "objects").glob("*/*"))
    before = lost.read_bytes()
    lost.unlink()
    broken = command("run", "2026-05")
    assert broken.status == 1
    assert "manifest_matches_archive. The archive lacks pictures of the report. Run `asset-pipeline fsck" in broken.err
    found = command("fsck", "2026-05", "--format", "json")
    assert found.status == 1
    (finding,) = json.loads(found.out)["findings"]
    assert (finding["fault"], finding["subject"], finding["repaired"]) == ("picture_missing", lost.name, False)

    repaired = command("fsck", "--repair", "--format", "csv")
    assert repaired.status == 0, repaired.err
    (row,) = csv.DictReader(io.StringIO(repaired.out))
    assert (row["fault"], row["repaired"]) == ("picture_missing", "True")
    assert lost.read_bytes() == before


def test_a_page_that_draws_too_much_is_shown_wherever_one_looks(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "policy.yaml").write_text("limits: {operators: 2}\n")
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "a.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    ended = command("run", "2026-05", "--format", "json")
    assert ended.status == 0, ended.err
    told = json.loads(ended.out)
    (row,) = told["attention"]
    assert (row["state"], row["reason"], row["pages_not_read"]) == ("succeeded", "content_budget_exceeded 1", 1)
    assert "policy" in row["remedy"]
    assert (told["months"][0]["pages_not_read"], told["months"][0]["pictures"]) == (1, 0)
    assert [check["name"] for check in told["failed_checks"]] == ["every_page_read"]
    table = command("status", "2026-05")
    assert "content_budget_exceeded" in table.out


def test_header_words_are_whole_on_a_narrow_terminal(capsys: pytest.CaptureFixture, monkeypatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    rows = [dict.fromkeys(COLUMNS, 1) | {"month": "2026-05"}]
    console.show_tables([console.Sheet("Months", COLUMNS, rows)])
    words = {word for column in COLUMNS for word in column.split("_")}
    assert words <= set(re.sub(r"\x1b\[[0-9;]*m", " ", capsys.readouterr().out).split())


def test_an_interrupted_run_gives_its_work_back_and_the_next_one_finishes(command: Callable, place: Path) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "long.pdf"
    document.parent.mkdir(parents=True)
    noisy_pdf(document, 12)
    one_page_units = {"ASSET_PIPELINE_PAGES_PER_UNIT": "1", "ASSET_PIPELINE_WORKERS": "1"}
    running = command.start("run", "2026-05", **one_page_units)
    wait_for_a_unit(place / ".asset_pipeline" / "ledger.db")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130
    assert err.splitlines()[-1] == "Interrupted; nothing is lost. Run the same command to go on."
    assert "Traceback" not in err
    assert list((place / ".asset_pipeline" / "work").iterdir()) == []
    ended = command("run", "2026-05", "--format", "json", **one_page_units)
    (month,) = json.loads(ended.out)["months"]
    assert (month["pages"], month["pictures"], month["unfinished"]) == (12, 12, 0)


def test_a_run_that_is_told_to_end_ends_with_the_number_of_its_signal_and_finishes_later(
    command: Callable, place: Path
) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "long.pdf"
    document.parent.mkdir(parents=True)
    noisy_pdf(document, 12)
    one_page_units = {"ASSET_PIPELINE_PAGES_PER_UNIT": "1", "ASSET_PIPELINE_WORKERS": "2"}
    running = command.start("run", "2026-05", **one_page_units)
    wait_for_a_unit(place / ".asset_pipeline" / "ledger.db")
    for _ in range(3):  # an impatient person
        running.send_signal(signal.SIGTERM)
        time.sleep(0.05)
    _, err = running.communicate(timeout=60)
    assert (running.returncode, err.count("Interrupted"), "Traceback" in err) == (143, 1, False), err
    with contextlib.closing(sqlite3.connect(place / ".asset_pipeline" / "ledger.db")) as conn:
        assert conn.execute("SELECT count(*) FROM units WHERE state = 'running' OR tries > 0").fetchone() == (0,)
    assert command("run", "2026-05", **one_page_units).status == 0


def wait_for_a_unit(database: Path) -> None:
    """Until the first unit of a run is done."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.02)
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(database)) as conn:
            if conn.execute("SELECT count(*) FROM units WHERE state = 'done'").fetchone()[0]:
                return
    raise AssertionError("no unit was done")
