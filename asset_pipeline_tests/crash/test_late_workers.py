"""A worker that pauses past its lease, whose unit another one ends: one result, one event, and both end well."""

from __future__ import annotations

from pathlib import Path

import pytest

from asset_pipeline.failpoints import Failpoint
from asset_pipeline_tests.crash.campaign import Plan, run


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("point", [Failpoint.CLAIMED, Failpoint.OBJECT_LINKED])
def test_a_worker_that_wakes_after_another_ended_its_unit_changes_nothing(
    tmp_path: Path, point: Failpoint, database: str, request: pytest.FixtureRequest
) -> None:
    settings = {"ledger": request.getfixturevalue("postgres_ledger_url")} if database == "postgres" else {}
    report = run(Plan(str(tmp_path), settings, documents=3, poison=0, processes=1, stops={point.value: 1}))
    assert report.wrong == []
    assert report.stops == {point.value: 1}
    assert {name: report.facts[name] for name in ("attempts", "overtaken", "returned")} == {
        "attempts": 4,
        "overtaken": 1,
        "returned": 1,
    }
