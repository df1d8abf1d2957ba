"""The notebook for analysts: sound, without outputs, and its ten answers are right for a small archive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import asset_pipeline
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import drop_document, fresh_settings, picture_pdf

NOTEBOOK = Path(asset_pipeline.__file__).parents[1] / "docs" / "analysts.ipynb"


def _cells(kind: str) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


def test_the_notebook_is_of_format_4_5_and_is_kept_without_outputs() -> None:
    body = json.loads(NOTEBOOK.read_text("utf-8"))
    assert (body["nbformat"], body["nbformat_minor"]) == (4, 5)
    assert set(body) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    ids = [cell["id"] for cell in body["cells"]]
    assert len(set(ids)) == len(ids)
    for cell in body["cells"]:
        needed = {"cell_type", "id", "metadata", "source"}
        assert set(cell) == (needed | {"outputs", "execution_count"} if cell["cell_type"] == "code" else needed)
        assert all(isinstance(line, str) for line in cell["source"])
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in _cells("code"))


def test_the_notebook_asks_ten_questions() -> None:
    titles = [cell["source"][0] for cell in _cells("markdown")]
    assert [title.split(".")[0] for title in titles if title.startswith("## ") and title[3].isdigit()] == [
        f"## {number}" for number in range(1, 11)
    ]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Two months: repeats, a quarantined picture, a locked document, a page without a picture, a corrected document."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    settings = fresh_settings(tmp_path)
    drop_document(settings, "a.pdf", [10, 10, 10], month="2026-04")
    drop_document(settings, "b.pdf", [10, 20], month="2026-05", broken_picture=True)
    drop_document(settings, "locked.pdf", [30], month="2026-05", encrypted=True)
    empty = drop_document(settings, "empty.pdf", [40], month="2026-05")
    _add_empty_page(empty)
    materialize_months(settings, ["2026-04", "2026-05"])
    picture_pdf(Path(settings.store_address("inbox"), "city", "2026-04", "a.pdf"), [10, 50])
    materialize_months(settings, ["2026-04"])
    for name in ("home", "settle_seconds", "workers"):
        monkeypatch.setenv(f"ASSET_PIPELINE_{name.upper()}", str(getattr(settings, name)))
    return settings


def _add_empty_page(document: Path) -> None:
    import pikepdf

    with pikepdf.open(document, allow_overwriting_input=True) as pdf:
        pdf.add_blank_page(page_size=(200, 200))
        pdf.save(document)


def test_every_cell_runs_and_the_answers_are_right(demo: Settings) -> None:
    found: dict[str, Any] = {}
    for cell in _cells("code"):
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}:{cell['id']}", "exec"), found)
    assert found["pictures_by_kind"]["raster"].to_dict() == {"2026-04": 2, "2026-05": 3}
    assert found["quarantined"]["pictures"].to_list() == [1]
    assert found["quarantined"]["share"].to_list() == [pytest.approx(1 / 6)]
    assert set(found["slowest"]["document"]) == {"a.pdf", "b.pdf", "empty.pdf"}
    assert (found["slowest"]["decode_seconds"] > 0).all()
    assert len(found["decode_by_version"]) == 1
    assert (found["decode_by_version"]["p95_ms"] >= found["decode_by_version"]["p50_ms"]).all()
    assert len(found["retries_by_reason"]) == 0
    assert found["repeats"]["placements"].to_list() == [2]
    assert found["repeats"]["documents"].to_list() == [2]
    assert found["without_picture"][["document", "page"]].to_dict("records") == [{"document": "empty.pdf", "page": 2}]
    assert (found["publication"]["p50_seconds"] > 0).all()
    assert list(found["publication"].index) == ["2026-04", "2026-05"]
    assert found["growth"]["total_bytes"].iloc[-1] == found["growth"]["new_bytes"].sum() > 0
    assert found["changed"][["page", "change"]].to_dict("records") == [
        {"page": 2, "change": "changed"},
        {"page": 3, "change": "gone"},
    ]
    assert found["rows_by_month"].to_dict() == {"2026-04": 2, "2026-05": 3}
    assert isinstance(found["made"], pd.DataFrame)


def test_an_archive_with_nothing_in_it_answers_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    monkeypatch.setenv("ASSET_PIPELINE_HOME", str(tmp_path / "home"))
    found: dict[str, Any] = {}
    for cell in _cells("code"):
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name}:{cell['id']}", "exec"), found)
    assert len(found["pictures"]) == 0
