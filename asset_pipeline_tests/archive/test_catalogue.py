"""The catalogue: columns as documented, the same bytes again, and questions that reach nothing but the catalogue."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from asset_pipeline.archive.catalogue import TABLES, catalogue_key, publish_catalogue, schema
from asset_pipeline.archive.catalogue_query import ask
from asset_pipeline.errors import UsageError
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings

DOCUMENT = (Path(__file__).parents[2] / "docs" / "catalogue.md").read_text("utf-8")


def publish(inst: Installation, month: str = MONTH) -> None:
    work_month(inst, month)
    publish_catalogue(inst, month)


@pytest.mark.parametrize("table", TABLES)
def test_the_documentation_names_every_column_with_type_unit_and_meaning(table: str) -> None:
    part = DOCUMENT.split(f"## {table}\n", 1)[1].split("\n## ", 1)[0]
    documented = [tuple(cell.strip() for cell in row.split("|")[1:-1]) for row in re.findall(r"^\| `.*\|$", part, re.M)]
    assert documented == [(f"`{column.name}`", column.type, column.unit, column.meaning) for column in TABLES[table]]


def test_a_file_carries_its_columns_with_unit_and_meaning(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    publish(inst)
    for table, columns in TABLES.items():
        found = pq.read_schema(Path(inst.settings.store_address("archive"), catalogue_key(table, MONTH)))
        assert found.names == [column.name for column in columns]
        assert found.types == schema(table).types
        assert all(field.metadata[b"meaning"] for field in found)


def test_a_rerun_writes_nothing_and_a_change_writes_the_same_bytes_everywhere(
    inst: Installation, submit: Callable
) -> None:
    submit("a.pdf", [10, 20])
    work_month(inst, MONTH)
    first = publish_catalogue(inst, MONTH)
    again = publish_catalogue(inst, MONTH)
    assert (first.written, again.written, again.digest) == (2, 0, first.digest)
    assert (first.pictures, first.pages) == (2, 2)
    submit("b.pdf", [30])
    work_month(inst, MONTH)
    assert publish_catalogue(inst, MONTH).written == 2


def test_a_question_sees_all_months(inst: Installation) -> None:
    for month in ("2026-04", "2026-05"):
        drop_document(inst.settings, "a.pdf", [10, 20, 10], month=month)
        admit_month(inst, month, utc_now, wait=True)
        publish(inst, month)
    answer = ask(
        inst, "SELECT month, count(*) AS n FROM pictures WHERE status = 'archived' GROUP BY ALL ORDER BY month"
    )
    assert (answer.columns, answer.rows) == (("month", "n"), [("2026-04", 2), ("2026-05", 2)])


def test_a_catalogue_in_a_bucket_answers_too(s3_settings, tmp_path: Path) -> None:
    settings = fresh_settings(tmp_path, s3_endpoint=s3_settings.endpoint, archive=s3_settings.address("archive"))
    drop_document(settings, "a.pdf", [10, 20])
    with open_installation(settings) as opened:
        admit_month(opened, MONTH, utc_now, wait=True)
        publish(opened)
        assert ask(opened, "SELECT count(*) FROM pictures").rows == [(2,)]


def test_why_a_page_has_no_picture_is_one_question(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10], broken_picture=True)
    submit("locked.pdf", [20], encrypted=True)
    work_month(inst, MONTH)
    submit("late.pdf", [30])
    publish_catalogue(inst, MONTH)
    rows = ask(inst, "SELECT document, page, state, remedy <> '' FROM pages ORDER BY document, page").rows
    assert ("a.pdf", 1, "pictures", False) in rows
    assert ("a.pdf", 2, "quarantined", True) in rows
    assert ("late.pdf", None, "late", True) in rows
    assert ("locked.pdf", None, "not_read", True) in rows


def test_an_installation_without_a_catalogue_answers_with_no_rows(inst: Installation) -> None:
    assert ask(inst, "SELECT * FROM pages").rows == []


def test_names_are_not_there_where_the_policy_hides_them(inst: Installation, submit: Callable) -> None:
    submit("secret-name.pdf", [10])
    opaque = replace(inst, policy=inst.policy.model_copy(update={"show_names": False}))
    publish(opaque)
    for table in TABLES:
        assert ask(inst, f"SELECT DISTINCT collection, document FROM {table}").rows == [(None, None)]
        assert b"secret" not in Path(inst.settings.store_address("archive"), catalogue_key(table, MONTH)).read_bytes()
    drop_document(inst.settings, "secret-waits.pdf", [20])
    take_inventory(opaque, utc_now())
    assert ask(opaque, "SELECT DISTINCT collection, document FROM pages").rows == [(None, None)]


def test_a_document_that_is_worked_again_is_late_whatever_its_file_says(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20])
    publish(inst)
    submit("a.pdf", [30])
    assert ask(inst, "SELECT page, state FROM pages WHERE document = 'a.pdf'").rows == [(None, "late")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('/*')",
        "SELECT * FROM read_csv('https://example.com/x.csv')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "ATTACH '{folder}/other.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "PRAGMA database_list",
        "CREATE TABLE t AS SELECT 1",
        "SELECT 1; SELECT 2",
        "",
        "SELECT nothing FROM pictures",
        "SELEC",
    ],
)
def test_a_question_reaches_nothing_else_and_fails_in_one_line(inst: Installation, tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("key")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UsageError) as caught:
        ask(inst, sql.format(secret=secret, folder=tmp_path))
    assert "\n" not in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_columns_of_one_name_are_told_apart(inst: Installation) -> None:
    assert ask(inst, "SELECT 1 AS a, 2 AS a").columns == ("a", "a_2")
