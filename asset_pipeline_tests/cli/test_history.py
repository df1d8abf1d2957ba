"""`history` and `metrics`: the same rows in every form, and clear words for what was asked wrongly."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from asset_pipeline.cli.history import _FOR_PEOPLE, Table
from asset_pipeline.history.columns import TABLES
from asset_pipeline_tests.history.test_measures import parse
from asset_pipeline_tests.small_documents import picture_pdf


@pytest.fixture
def worked(command: Callable, place: Path) -> Callable:
    """The command line of an installation that worked a month."""
    for name, colours in (("a.pdf", [10, 10]), ("b.pdf", [20])):
        document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / name
        document.parent.mkdir(parents=True, exist_ok=True)
        picture_pdf(document, colours)
    ended = command("run", "2026-05")
    assert ended.status == 0, ended.err
    return command


def test_a_table_is_the_same_for_people_as_csv_as_json_and_as_parquet(worked: Callable, place: Path) -> None:
    for table in ("materializations", "pages"):
        names = [column.name for column in TABLES[table]]
        of_json = json.loads(worked("history", table, "--format", "json").out)
        of_csv = list(csv.DictReader(io.StringIO(worked("history", table, "--format", "csv").out)))
        ended = worked("history", table, "--format", "parquet", "--output", "rows.parquet")
        of_parquet = pq.read_table(place / "rows.parquet")
        assert (ended.status, ended.out) == (0, "")
        assert ended.err == f"{len(of_json)} rows are in rows.parquet.\n"
        assert len(of_json) == len(of_csv) == of_parquet.num_rows > 0
        assert of_parquet.column_names == names
        assert all(list(row) == names for row in of_json)
    for form in ("csv", "json"):
        ended = worked("history", "pages", "--limit", "1", "--format", form, "--output", f"rows.{form}")
        assert (ended.out, ended.err) == ("", f"1 row is in rows.{form}.\n")
    assert "a.pdf" in worked("history", "pages").out
    assert worked("history", "retries").err.endswith("There is nothing.\n")


def test_every_table_of_the_history_can_be_asked_for() -> None:
    assert {table.value for table in Table} == set(TABLES) == set(_FOR_PEOPLE)
    for table, names in _FOR_PEOPLE.items():
        assert set(names.split()) <= {column.name for column in TABLES[table]}


def test_a_month_a_moment_and_a_limit_narrow_the_answer(worked: Callable) -> None:
    def count(*arguments: str) -> int:
        return len(json.loads(worked("history", *arguments, "--format", "json").out))

    assert count("pictures") == 3
    assert count("pictures", "--month", "2026-05", "--limit", "2") == 2
    assert count("pictures", "--month", "2026-04") == 0
    assert count("materializations", "--month", "2026-05") == count("materializations") >= 3
    assert count("materializations", "--limit", "1") == 1
    assert count("materializations", "--month", "2026-04") == 0
    assert count("attempts", "--since", "2100-01-01") == 0
    assert count("attempts", "--since", "2020-01-01T12:00") == 2


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("attempts", "--format", "parquet"), "--output"),
        (("attempts", "--output", "x"), "--format"),
        (("attempts", "--month", "2026-13"), "YYYY-MM"),
        (("attempts", "--since", "yesterday"), "2026-05-31"),
        (("attempts", "--format", "csv", "--output", "nowhere/x.csv"), "folder"),
    ],
)
def test_what_was_asked_wrongly_is_told_in_one_line(command: Callable, arguments: tuple[str, ...], told: str) -> None:
    ended = command("history", *arguments)
    assert ended.status == 2
    assert told in ended.one_line_error()


def test_metrics_are_the_same_for_people_programs_and_prometheus(worked: Callable) -> None:
    table, as_json = worked("metrics"), worked("metrics", "--format", "json")
    prometheus = worked("metrics", "--format", "prometheus")
    assert {table.status, as_json.status, prometheus.status} == {0}
    measures = json.loads(as_json.out)["measures"]
    samples = parse(prometheus.out)
    share = next(row for row in measures if row["name"] == "first_attempt_share")
    assert (share["value"], share["limit"], share["breach"]) == (1, 0.95, "")
    assert samples["asset_pipeline_first_attempt_share"] == 1
    assert 'asset_pipeline_stage_seconds{stage="decode",quantile="0.95"}' in samples
    assert all(row["name"].replace("_", " ") in table.out for row in measures)
    assert worked("metrics", "2026-04").status == 0
    assert "YYYY-MM" in worked("metrics", "may").one_line_error()
