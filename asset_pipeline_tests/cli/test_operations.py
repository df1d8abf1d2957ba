"""`jobs`, `quarantine` and `janitor` as an operator uses them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline_tests.small_documents import picture_pdf


@pytest.fixture
def drop(place: Path) -> Callable[..., Path]:
    def run(name: str, colours: list[int], **how: bool) -> Path:
        document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / name
        document.parent.mkdir(parents=True, exist_ok=True)
        picture_pdf(document, colours, **how)
        return document

    return run


def told(command: Callable, *arguments: str) -> dict:
    ended = command(*arguments, "--format", "json")
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def test_a_dead_letter_is_listed_requeued_and_finished_by_the_next_run(
    command: Callable, place: Path, drop: Callable
) -> None:
    drop("good.pdf", [10])
    document = drop("harmed.pdf", [20])
    digest = hashlib.sha256(document.read_bytes()).hexdigest()
    database = place / ".asset_pipeline" / "ledger.db"
    assert command("run", "2026-05").status == 0
    with contextlib.closing(sqlite3.connect(database)) as conn, conn:
        conn.execute(
            "UPDATE jobs SET state = 'dead_lettered', reason = 'decoder_crashed' WHERE source_hash = ?", (digest,)
        )
        conn.execute("UPDATE units SET state = 'failed' WHERE job_id IN (SELECT job_id FROM jobs WHERE reason <> '')")
    (dead,) = told(command, "jobs", "list", "2026-05", "--state", "dead_lettered")["jobs"]
    assert (dead["name"], dead["reason"]) == ("harmed.pdf", "decoder_crashed")
    assert command("run", "2026-05").status == 0
    (requeued,) = told(command, "jobs", "requeue", "--all", "2026-05")["requeued"]
    assert requeued["job_id"] == dead["job_id"]
    assert "There is nothing" in command("jobs", "requeue", "--all", "2026-05").err
    (month,) = told(command, "run", "2026-05")["months"]
    assert (month["documents"], month["refused"], month["unfinished"]) == (2, 0, 0)
    editions = place / ".asset_pipeline" / "archive" / "manifests" / "2026-05" / "editions"
    assert len(list(editions.glob("*-2.json"))) == 1, "succeeded, given up, succeeded"
    refused = command("jobs", "requeue", dead["job_id"])
    assert refused.status == 2
    assert "succeeded" in refused.one_line_error()


def test_what_was_held_back_is_listed_shown_released_and_rejected(
    command: Callable, place: Path, drop: Callable
) -> None:
    policy = place / ".asset_pipeline" / "policy.yaml"
    policy.write_text("limits: {pixels: 10}\n")
    drop("held.pdf", [10, 20])
    drop("locked.pdf", [30], encrypted=True)
    assert command("run", "2026-05").status == 0
    held = told(command, "quarantine", "list")["held"]
    assert [(row["what"], row["reason"]) for row in held] == [
        ("picture", "pixel_budget_exceeded"),
        ("picture", "pixel_budget_exceeded"),
        ("document", "encrypted"),
    ]
    job, first, second = held[0]["job_id"], held[0]["picture"], held[1]["picture"]
    still = command("quarantine", "release", job, first)
    assert (still.status, still.out) == (3, "")
    assert still.err.startswith("Still held: pixel_budget_exceeded.")
    policy.unlink()
    assert command("quarantine", "release", job, first).status == 0
    assert command("quarantine", "reject", job, second).status == 0
    assert "rejected already" in command("quarantine", "reject", job, second).one_line_error()
    facts = told(command, "quarantine", "show", job, first)
    assert (facts["state"], facts["page"]) == ("released", 1)
    assert facts["decided_by"] and facts["decided_at"]
    as_table = command("quarantine", "show", job, first).out
    assert re.search(r"decided at +20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\s", as_table)
    assert "+00:00" not in as_table
    stored = place / ".asset_pipeline" / "quarantine" / facts["stored_sha256"][:2] / facts["stored_sha256"]
    assert stored.stat().st_size == facts["stored_bytes"]
    decided = told(command, "quarantine", "list", "2026-05", "--decided")["held"]
    assert [row["state"] for row in decided] == ["released", "rejected", "failed_permanently"]
    (month,) = told(command, "run", "2026-05")["months"]
    assert month["pictures"] == 1
    editions = place / ".asset_pipeline" / "archive" / "manifests" / "2026-05" / "editions"
    assert len(list(editions.glob("*-1.json"))) == 1
    told_by_history = json.loads(command("history", "editions", "--format", "json").out)
    assert sorted((row["edition"], row["why"]) for row in told_by_history) == [
        (1, "first"),
        (1, "first"),
        (2, "changed"),
    ]


def test_the_janitor_says_what_it_removed(command: Callable, place: Path) -> None:
    left = place / ".asset_pipeline" / "work" / ("0" * 32)
    left.mkdir(parents=True)
    (left / "document").write_bytes(b"12345")
    os.utime(left, (0, 0))
    first = told(command, "janitor")["removed"]
    assert first[0] == {"what": "working directories", "removed": 1, "bytes": 5}
    assert told(command, "janitor")["removed"][0]["removed"] == 0


def test_a_job_that_does_not_exist_is_a_usage_error(command: Callable) -> None:
    assert command("jobs", "requeue", "nothing").status == 2
    assert command("jobs", "requeue").status == 2
    assert command("quarantine", "show", "nothing", "page-001-image-001").status == 2
