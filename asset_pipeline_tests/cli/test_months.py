"""`demo`, `run` and `status` over real months, through Dagster."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

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
    assert {row["month"] for row in rows} == {"2026-05"}
    assert {row["state"] for row in rows} >= {"succeeded", "failed_permanently"}

    as_table = command("status")
    assert as_table.status == 0
    assert "without a password" in as_table.out


def test_a_run_names_the_manifests(command: Callable, place: Path) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "a.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    ended = command("run", "2026-05")
    assert ended.status == 0, ended.err
    assert "manifests/2026-05" in ended.out
    assert len(list((place / ".asset_pipeline" / "archive" / "manifests" / "2026-05").glob("*.json"))) == 1


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
    assert err == "Interrupted; nothing is lost. Run the same command to go on.\n"
    assert list((place / ".asset_pipeline" / "work").iterdir()) == []
    ended = command("run", "2026-05", "--format", "json", **one_page_units)
    (month,) = json.loads(ended.out)["months"]
    assert (month["pages"], month["pictures"], month["unfinished"]) == (12, 12, 0)


def wait_for_a_unit(database: Path) -> None:
    """Until the first unit of a run is done."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        time.sleep(0.02)
        with contextlib.suppress(sqlite3.OperationalError), contextlib.closing(sqlite3.connect(database)) as conn:
            if conn.execute("SELECT count(*) FROM units WHERE state = 'done'").fetchone()[0]:
                return
    raise AssertionError("no unit was done")
