"""Pictures to take along: a ZIP with names for people, safe to unpack anywhere, and a table of where each is from."""

from __future__ import annotations

import csv
import hashlib
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline.archive.export import export_month, safe_name
from asset_pipeline.errors import IntegrityError, UsageError
from asset_pipeline.installation import Installation
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH


def rows_of(target: Path) -> list[dict[str, str]]:
    with zipfile.ZipFile(target) as bundle:
        return list(csv.DictReader(io.StringIO(bundle.read("pictures.csv").decode("utf-8-sig"))))


def test_a_month_comes_with_readable_names_and_a_row_for_every_placement(
    inst: Installation, submit: Callable, tmp_path: Path
) -> None:
    submit("a.pdf", [10, 20, 10], broken_picture=True)
    work_month(inst, MONTH)
    made = export_month(inst, MONTH, tmp_path / "month.zip")
    assert (made.documents, made.pictures, made.rows) == (1, 2, 4)
    with zipfile.ZipFile(made.target) as bundle:
        assert bundle.testzip() is None
        assert bundle.namelist() == ["city/a/page-001-image-001.png", "city/a/page-002-image-001.png", "pictures.csv"]
        rows = rows_of(made.target)
        assert [(row["name"], row["status"], row["file"]) for row in rows] == [
            ("page-001-image-001", "archived", "city/a/page-001-image-001.png"),
            ("page-002-image-001", "archived", "city/a/page-002-image-001.png"),
            ("page-003-image-001", "collapsed", "city/a/page-001-image-001.png"),
            ("page-004-image-001", "quarantined", ""),
        ]
        for row in rows[:2]:
            assert hashlib.sha256(bundle.read(row["file"])).hexdigest() == row["display_sha256"]


def test_the_same_month_gives_the_same_bytes(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("a.pdf", [10, 20])
    work_month(inst, MONTH)
    first, second = (export_month(inst, MONTH, tmp_path / name).target.read_bytes() for name in ("1.zip", "2.zip"))
    assert first == second


def test_one_document_is_asked_for_by_name_or_report_id(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("a.pdf", [10])
    submit("b.pdf", [20, 30])
    work_month(inst, MONTH)
    by_name = export_month(inst, MONTH, tmp_path / "1.zip", "city/b.pdf")
    report = rows_of(by_name.target)[0]["report_id"]
    by_id = export_month(inst, MONTH, tmp_path / "2.zip", report)
    assert by_name.pictures == by_id.pictures == 2
    assert by_name.target.read_bytes() == by_id.target.read_bytes()
    with pytest.raises(UsageError, match="no document of that name"):
        export_month(inst, MONTH, tmp_path / "3.zip", "c.pdf")
    assert not (tmp_path / "3.zip").exists()


def test_names_that_strangers_wrote_stay_inside_the_folder_and_apart(
    inst: Installation, submit: Callable, tmp_path: Path
) -> None:
    names = ["..\\..\\evil.pdf", "CON.pdf", "a:b.pdf", "a?b.pdf", "\u202efdp.pdf"]
    for colour, name in enumerate(names):
        submit(name, [colour * 10])
    work_month(inst, MONTH)
    made = export_month(inst, MONTH, tmp_path / "month.zip")
    with zipfile.ZipFile(made.target) as bundle:
        found = [name for name in bundle.namelist() if name != "pictures.csv"]
    assert len({name.casefold() for name in found}) == len(names)
    for name in found:
        assert len(Path(name).parts) == 3
        assert not {"..", ".", "CON"} & set(Path(name).parts)
        assert not set(name) & set('\\:?"<>|*\u202e')


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a/b", "a_b"),
        ("..", "_"),
        ("", "_"),
        ("nul", "_nul"),
        ("name. ", "name"),
        ("e\u0301", "\u00e9"),
        ("x" * 300, "x" * 80),
        ("a\x00b\u202ec", "a_b_c"),
    ],
)
def test_a_safe_name_is_one_part_of_a_path_on_any_system(text: str, safe: str) -> None:
    assert safe_name(text) == safe


def test_a_name_that_looks_like_a_formula_stays_a_text(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("=HYPERLINK(1).pdf", [10])
    work_month(inst, MONTH)
    (row,) = rows_of(export_month(inst, MONTH, tmp_path / "month.zip").target)
    assert row["document"] == "'=HYPERLINK(1).pdf"


def test_a_target_that_is_taken_is_left_alone(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("a.pdf", [10])
    work_month(inst, MONTH)
    (tmp_path / "month.zip").write_bytes(b"mine")
    with pytest.raises(UsageError, match="already"):
        export_month(inst, MONTH, tmp_path / "month.zip")
    assert (tmp_path / "month.zip").read_bytes() == b"mine"
    assert sorted(path.name for path in tmp_path.glob("*month*")) == ["month.zip"]


def test_altered_bytes_are_not_handed_out(inst: Installation, submit: Callable, tmp_path: Path) -> None:
    submit("a.pdf", [10])
    work_month(inst, MONTH)
    digest = rows_of(export_month(inst, MONTH, tmp_path / "1.zip").target)[0]["display_sha256"]
    stored = Path(inst.settings.store_address("archive"), object_key(digest))
    stored.write_bytes(b"other")
    with pytest.raises(IntegrityError, match="digest"):
        export_month(inst, MONTH, tmp_path / "2.zip")
    assert not (tmp_path / "2.zip").exists()
