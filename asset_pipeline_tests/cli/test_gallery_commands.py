"""`gallery`, `page`, `export` and `catalogue query`, as a person types them."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

from asset_pipeline_tests.small_documents import picture_pdf

MONTH = "2026-05"


def drop(place: Path, name: str, colours: list[int], **how: bool) -> None:
    document = place / ".asset_pipeline" / "inbox" / "city" / MONTH / name
    document.parent.mkdir(parents=True, exist_ok=True)
    picture_pdf(document, colours, **how)


def test_a_month_is_run_looked_at_asked_and_taken_along(command: Callable, place: Path) -> None:
    drop(place, "a.pdf", [10, 20, 10], broken_picture=True)
    drop(place, "locked.pdf", [30], encrypted=True)
    ended = command("run", MONTH)
    assert ended.status == 0, ended.err
    index = place / ".asset_pipeline" / "archive" / "galleries" / MONTH / "index.html"
    assert index.is_file()
    assert f"{MONTH} {index}" in " ".join(ended.out.split()), "a run ends with what to open"

    shown = command("gallery", MONTH)
    assert (shown.status, shown.out) == (0, f"{index}\n"), shown.err

    held = json.loads(command("page", "a.pdf", "4", "--format", "json").out)
    assert [(row["state"], row["page"]) for row in held] == [("quarantined", 4)]
    assert held[0]["remedy"]
    locked = json.loads(command("page", "city/locked.pdf", "87", "--format", "json").out)
    assert locked[0]["state"] == "not_read"
    assert "password" in locked[0]["meaning"]
    assert "has no page 87" in command("page", "a.pdf", "87").one_line_error()
    assert "no document of that name" in command("page", "b.pdf", "1").one_line_error()

    question = "SELECT state, count(*) AS pages FROM pages GROUP BY ALL ORDER BY state"
    answer = command("catalogue", "query", question, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(answer.out)))
    assert rows == [
        {"state": "not_read", "pages": "1"},
        {"state": "pictures", "pages": "3"},
        {"state": "quarantined", "pages": "1"},
    ]
    assert json.loads(command("catalogue", "query", "SELECT 1 AS n", "--format", "json").out) == [{"n": 1}]
    assert "Parser Error" in command("catalogue", "query", "SELEC").one_line_error()

    target = place / "month.zip"
    taken = command("export", MONTH, target)
    assert taken.status == 0, taken.err
    assert "pictures of 1 document, " in taken.err
    with zipfile.ZipFile(target) as bundle:
        assert bundle.namelist()[-1] == "pictures.csv"
    assert "already" in command("export", MONTH, target).one_line_error()


def test_what_is_still_in_the_inbox_is_told_alike_by_page_and_sql_without_looking_first(
    command: Callable, place: Path
) -> None:
    drop(place, "a.pdf", [10])
    misplaced = place / ".asset_pipeline" / "inbox" / "city" / "May" / "b.pdf"
    misplaced.parent.mkdir()
    picture_pdf(misplaced, [20])
    for name, state, words in (("a.pdf", "late", "waits in the inbox"), ("b.pdf", "not_read", "place")):
        (row,) = json.loads(command("page", name, "87", "--format", "json").out)
        assert row["state"] == state
        assert words in row["meaning"]
        assert row["remedy"]
        question = f"SELECT state, meaning, remedy FROM pages WHERE document = '{name}' AND coalesce(page, 87) = 87"
        (told,) = json.loads(command("catalogue", "query", question, "--format", "json").out)
        assert told == {part: row[part] for part in told}


def test_an_inbox_that_is_away_keeps_nobody_from_asking_about_the_archive(command: Callable, place: Path) -> None:
    drop(place, "a.pdf", [10])
    assert command("page", "a.pdf", "1").status == 0
    inbox = place / ".asset_pipeline" / "inbox"
    inbox.rename(inbox.with_name("elsewhere"))
    for asked in (
        *(("page", "a.pdf", "1"), ("catalogue", "query", "SELECT * FROM pages"), ("gallery", MONTH)),
        ("status", MONTH),
    ):
        ended = command(*asked, *(() if asked[0] == "gallery" else ("--format", "json")))
        assert ended.status == 0, ended.err
        assert "inbox" in ended.err and "from the last look" in ended.err
        if asked[0] == "status":
            (row,) = json.loads(ended.out)["rows"]
            assert (row["name"], row["state"]) == ("a.pdf", "waiting")
        elif asked[0] != "gallery":
            (row,) = json.loads(ended.out)
            assert row["state"] == "late"


def test_a_month_that_does_not_exist_is_refused_in_one_line(command: Callable) -> None:
    assert "not a month" in command("gallery", "2026-13").one_line_error()
    assert "not a month" in command("export", "x", "out.zip").one_line_error()
