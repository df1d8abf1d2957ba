"""What a killed process recorded and did not cover is covered by the next tick of the sensor, so within a minute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import dagster as dg

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.defs.sensors import SECONDS, UNCOVERED_SECONDS
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import checkpoints
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.schema import checkpoints as rows
from asset_pipeline.settings import Settings


def test_a_tick_covers_events_that_nobody_covered_for_half_a_minute(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    assert SECONDS + UNCOVERED_SECONDS <= checkpoints.SECONDS
    long_ago = datetime.now(UTC) - timedelta(seconds=UNCOVERED_SECONDS + 1)
    with open_installation(settings) as inst:
        inst.ledger.when_recorded = None  # it ends before it can make a checkpoint
        with inst.ledger.begin() as tx:
            record_event(tx, "job_requeued", payload={}, now=long_ago)
    pipeline = Pipeline(settings)
    defs = build_defs(pipeline=pipeline)
    context = dg.build_sensor_context(
        instance=instance, repository_def=defs.get_repository_def(), resources={"pipeline": pipeline}
    )
    defs.resolve_sensor_def("new_uploads")(context)
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        assert [row.size for row in conn.execute(rows.select())] == [1]
        assert [path.stem for path in settings.home.rglob("*.note")] == [f"{1:012d}"]
