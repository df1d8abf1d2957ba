"""Dagster's event log as rows: every materialization once, the latest first, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from asset_pipeline import history
from asset_pipeline.defs import history_rows
from asset_pipeline.defs.history_rows import materialization_rows
from asset_pipeline.defs.instance import materialize_months, open_instance
from asset_pipeline.history.columns import TABLES
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import drop_document


def _work(settings: Settings, instance: dg.DagsterInstance) -> list[str]:
    drop_document(settings, "a.pdf", [1, 1], month="2026-04")
    drop_document(settings, "b.pdf", [2], month="2026-05")
    return [result.run_id for result in materialize_months(settings, ["2026-04", "2026-05"], instance=instance)]


def _check(settings: Settings, instance: dg.DagsterInstance) -> None:
    first, second = _work(settings, instance)
    found = history.materializations(materialization_rows(settings, instance=instance))
    assert list(found.columns) == [column.name for column in TABLES["materializations"]]
    assert set(found["asset"]) >= {"source_documents", "validated_images", "manifests"}
    assert found["at"].is_monotonic_decreasing
    assert list(found["run_id"].unique()) == [second, first]
    images = found[found["asset"] == "validated_images"].set_index("month")
    assert images["row_count"].to_dict() == {"2026-05": 1, "2026-04": 1}
    assert json.loads(images["figures"]["2026-04"])["pages"] == 2
    assert images["data_version"].notna().all()
    assert images["code_version"].notna().all()
    april = history.materializations(materialization_rows(settings, month="2026-04", instance=instance))
    assert set(april["month"]) == {"2026-04"}
    assert len(list(materialization_rows(settings, limit=2, instance=instance))) == 2
    later = datetime(2100, 1, 1, tzinfo=UTC)
    assert list(materialization_rows(settings, since=later, instance=instance)) == []


def test_every_materialization_is_told_on_sqlite(settings: Settings, instance: dg.DagsterInstance) -> None:
    _check(settings, instance)


def test_every_materialization_is_told_on_postgres(settings: Settings, dagster_database: Path) -> None:
    with open_instance(settings) as instance:
        _check(settings, instance)


def test_pages_of_the_log_are_put_together_without_loss_or_repeat(
    settings: Settings, instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    _work(settings, instance)
    whole = list(materialization_rows(settings, instance=instance))
    monkeypatch.setattr(history_rows, "PAGE", 1)
    assert list(materialization_rows(settings, instance=instance)) == whole
    assert len({row["event_id"] for row in whole}) == len(whole)


def test_no_name_of_a_document_is_in_the_rows(settings: Settings, instance: dg.DagsterInstance) -> None:
    drop_document(settings, "secret-name.pdf", [1], month="2026-04", broken_picture=True)
    materialize_months(settings, ["2026-04"], instance=instance)
    assert "secret-name" not in str(list(materialization_rows(settings, instance=instance)))


def test_an_installation_without_runs_has_no_rows(settings: Settings) -> None:
    assert len(history.materializations(materialization_rows(settings))) == 0
