"""The janitor as a schedule and a job of Dagster."""

from __future__ import annotations

import os

import dagster as dg

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.janitor import JANITOR, LEFTOVERS
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.settings import Settings


def test_the_job_removes_what_was_left_and_tells_how_much(settings: Settings, instance: dg.DagsterInstance) -> None:
    left = settings.work_folder / ("0" * 32)
    left.mkdir(parents=True)
    (left / "document").write_bytes(b"12345")
    os.utime(left, (0, 0))
    job = build_defs(pipeline=Pipeline(settings)).resolve_job_def(JANITOR)
    assert job.execute_in_process(instance=instance).success
    assert not left.exists()
    event = instance.get_latest_materialization_event(dg.AssetKey(LEFTOVERS))
    assert event is not None and event.asset_materialization is not None
    told = event.asset_materialization.metadata
    assert told["working_directories_removed"].value == 1
    assert told["working_bytes_removed"].value == 5
