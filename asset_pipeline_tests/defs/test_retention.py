"""Retention as a schedule, a job and a check of Dagster, and what becomes of Dagster's own records of a month."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.jobs import MONTHLY_ARCHIVE, PARTITION_TAG
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.defs.retention import ALL_GONE, DELETIONS, RETENTION
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger.holds import Scope, lift_hold, set_hold
from asset_pipeline.settings import Settings
from asset_pipeline.work.clock import utc_now
from asset_pipeline_tests.small_documents import MONTH, drop_document


def _passed(settings: Settings, instance: dg.DagsterInstance) -> dict:
    """Run the pass, 31 days from now; what its materialization says."""
    job = build_defs(pipeline=Pipeline(settings, clock=lambda: utc_now() + timedelta(days=31))).resolve_job_def(
        RETENTION
    )
    result = job.execute_in_process(instance=instance)
    assert result.success
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == (ALL_GONE, True)
    event = instance.get_latest_materialization_event(dg.AssetKey(DELETIONS))
    assert event is not None and event.asset_materialization is not None
    return {name: entry.value for name, entry in event.asset_materialization.metadata.items()}


@pytest.fixture
def month(settings: Settings, instance: dg.DagsterInstance) -> str:
    settings.policy_file.write_text("retention: {working_days: 2, archive_days: 30}\n")
    drop_document(settings, "one.pdf", [10, 20])
    job = build_defs(pipeline=Pipeline(settings)).resolve_job_def(MONTHLY_ARCHIVE)
    assert job.execute_in_process(instance=instance, partition_key=MONTH).success
    return MONTH


def test_the_daily_pass_deletes_what_is_due_and_dagsters_records_of_it_but_nothing_under_a_hold(
    settings: Settings, instance: dg.DagsterInstance, month: str
) -> None:
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        hold_id = set_hold(tx, Scope.MONTH, month, "litigation", utc_now())
    told = _passed(settings, instance)
    assert (told["files_deleted"], told["holds_in_force"], told["run_records_removed"]) == (0, 1, 0)
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        lift_hold(tx, hold_id, "settled", utc_now())
    runs = dg.RunsFilter(tags={PARTITION_TAG: month})
    assert len(instance.get_run_records(runs)) == 1

    told = _passed(settings, instance)
    assert (told["reports_expired"], told["bytes_past_deadline"], told["manifests_written"]) == (1, 0, 1)
    assert told["files_deleted"] == 3, "a source and two pictures"
    assert {row.data["kind"] for row in told["deleted_so_far"].records} == {"picture", "source"}
    assert told["run_records_removed"] == 1
    assert instance.get_run_records(runs) == []
    assert instance.get_materialized_partitions(dg.AssetKey("validated_images")) == set()
