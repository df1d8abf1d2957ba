"""The log of events as a schedule, a job and a check of Dagster."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.evidence import EVIDENCE, LOG, VERIFIES
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.evidence.keys import make_key
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger.events import rotate_key
from asset_pipeline.settings import Settings


def run(settings: Settings, instance: dg.DagsterInstance) -> dg.ExecuteInProcessResult:
    job = build_defs(pipeline=Pipeline(settings)).resolve_job_def(EVIDENCE)
    return job.execute_in_process(instance=instance, raise_on_error=False)


def test_each_day_the_log_is_covered_and_verified_and_damage_is_a_failed_check(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        rotate_key(tx, make_key(settings.keys_folder), datetime.now(UTC))
    result = run(settings, instance)
    assert result.success
    (check,) = result.get_asset_check_evaluations()
    assert (check.check_name, check.passed) == (VERIFIES, True)
    metadata = result.asset_materializations_for_node(LOG)[0].metadata
    assert (metadata["events"].value, metadata["events_not_covered"].value) == (1, 0)

    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        tx.exec_driver_sql("DROP TRIGGER audit_events_keeps_delete")
        tx.exec_driver_sql("DELETE FROM audit_events")
    result = run(settings, instance)
    (check,) = result.get_asset_check_evaluations()
    assert (result.success, check.passed) == (True, False)
    assert check.description == ("cut_tail at event 1: a checkpoint covers 1 events, and the log ends at 0.")
