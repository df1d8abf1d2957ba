"""The janitor as Dagster sees it: an asset without partitions, materialized every quarter of an hour.

An asset, so that what was left behind is a figure with a history; a job of its own, so that it waits for no month.
What is removed, and why that is safe beside any work, is in ``retention.janitor``.
"""

from typing import TYPE_CHECKING

import dagster as dg

from asset_pipeline.defs.assets.shared import OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.retention.janitor import sweep

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

LEFTOVERS = "leftovers"
JANITOR = "janitor"
CODE_VERSION = "1"


def build_leftovers() -> dg.AssetsDefinition:
    """The asset."""

    @dg.asset(
        name=LEFTOVERS,
        group_name="operations",
        owners=OWNERS,
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        description="What ended processes left behind and the janitor removed: working directories older than "
        "900 seconds in which nobody works, and half-written files of the stores. 0 is usual; a number that stays "
        "above it says that runs are killed.",
    )
    def leftovers(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.MaterializeResult:  # type: ignore[type-arg]
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            done = sweep(inst, pipeline.clock())
        return dg.MaterializeResult(
            metadata={
                "working_directories_removed": done.directories,
                "working_bytes_removed": done.directory_bytes,
                "half_written_files_removed": done.files,
                "half_written_bytes_removed": done.file_bytes,
                "old_directories_in_use": done.in_use,
                "directories_that_cannot_be_removed": done.stuck,
            }
        )

    return leftovers


def build_janitor() -> "AssetJob":
    """The job."""
    return dg.define_asset_job(
        JANITOR,
        selection=dg.AssetSelection.assets(LEFTOVERS),
        description="Removes what ended processes left behind. Safe at any time.",
    )


def build_every_quarter_of_an_hour(job: "AssetJob") -> dg.ScheduleDefinition:
    """The schedule of ``job``."""
    return dg.ScheduleDefinition(
        name="every_quarter_of_an_hour",
        job=job,
        cron_schedule="*/15 * * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every 15 minutes: lets the janitor remove what ended processes left behind.",
    )
