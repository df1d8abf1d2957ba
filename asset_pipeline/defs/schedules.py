"""What is run by the clock: the month that has just ended, and each night what was left behind.

Written by hand, because the schedule that Dagster builds for a job with ``end_offset=1`` picks the current month.
Catching up takes months that are missing, failed or have work left; never those that are merely out of date
(REQUIREMENTS R2.1) or whose archive has expired. One request a month and a bounded number a night.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import dagster as dg
from sqlalchemy import Connection

from asset_pipeline.defs.assets.shared import MANIFESTS
from asset_pipeline.defs.border import told_to_dagster
from asset_pipeline.defs.jobs import PARTITION_TAG
from asset_pipeline.defs.partitions import month_before
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.installation import Installation
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.uploads import UploadState, list_uploads

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

MONTHS_A_NIGHT = 24

_UNDER_WAY = frozenset(
    {
        dg.DagsterRunStatus.QUEUED,
        dg.DagsterRunStatus.NOT_STARTED,
        dg.DagsterRunStatus.STARTING,
        dg.DagsterRunStatus.STARTED,
        dg.DagsterRunStatus.CANCELING,
    }
)


def build_close_of_month(months: dg.TimeWindowPartitionsDefinition, job: "AssetJob") -> dg.ScheduleDefinition:
    """The schedule that runs the month before on the first day of each month."""

    @dg.schedule(
        name="close_of_month",
        job=job,
        cron_schedule="0 3 1 * *",
        execution_timezone=months.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="On the first of each month at 03:00: runs the month that has ended, so that what came in late "
        "is in, and its manifests and checks are of the whole month.",
    )
    def close_of_month(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        moment = context.scheduled_execution_time
        month = month_before(moment, months.timezone)
        if month not in months.get_partition_keys(current_time=moment):
            return dg.SkipReason(f"{month} is before the first month of the archive.")
        return dg.RunRequest(run_key=f"close:{month}", partition_key=month)

    return close_of_month


def build_nightly_catch_up(months: dg.TimeWindowPartitionsDefinition, job: "AssetJob") -> dg.ScheduleDefinition:
    """The schedule that runs each night what is missing, failed or unfinished."""

    @dg.schedule(
        name="nightly_catch_up",
        job=job,
        cron_schedule="0 2 * * *",
        execution_timezone=months.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every night at 02:00: runs months whose documents were never archived, whose last run failed, or "
        "in which work is left. Months that are only out of date stay as they are.",
    )
    def nightly_catch_up(
        context: dg.ScheduleEvaluationContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> list[dg.RunRequest] | dg.SkipReason:
        moment = context.scheduled_execution_time
        with told_to_dagster(pipeline), pipeline.open() as inst:
            known = months.get_partition_keys(current_time=moment)
            wanted = list(_left_behind(inst, context.instance, known, pipeline.clock()))
        if not wanted:
            return dg.SkipReason("No month is missing, failed or unfinished.")
        if len(wanted) > MONTHS_A_NIGHT:
            context.log.warning("%d months are left for the next nights.", len(wanted) - MONTHS_A_NIGHT)
        return [
            dg.RunRequest(run_key=f"night:{moment:%Y-%m-%d}:{month}", partition_key=month)
            for month in wanted[:MONTHS_A_NIGHT]
        ]

    return nightly_catch_up


def _left_behind(
    inst: Installation, instance: dg.DagsterInstance, known: Sequence[str], now: datetime
) -> Iterator[str]:
    """Months to run again, newest first. Only months in which there is something."""
    take_inventory(inst, now)
    with inst.ledger.read() as conn:
        found = [month for month in reading.months(conn) if month in set(known) and not _is_over(conn, month)]
        unfinished = {month for month in found if _has_work_left(reading.month_summary(conn, month))}
        unwritten = {
            month for month in found if any(row.edition is None for row in reading.documents_of_month(conn, month))
        }
    archived = instance.get_materialized_partitions(dg.AssetKey(MANIFESTS))
    for month in sorted(found, reverse=True):
        last = instance.get_run_records(dg.RunsFilter(tags={PARTITION_TAG: month}), limit=1)
        status = last[0].dagster_run.status if last else None
        if status in _UNDER_WAY:
            continue
        if month not in archived or month in unfinished | unwritten or status is dg.DagsterRunStatus.FAILURE:
            yield month


def _is_over(conn: Connection, month: str) -> bool:
    """Whether all reports of the month have expired: what lies in its inbox was taken in and has had its time."""
    documents = reading.documents_of_month(conn, month)
    waiting = list_uploads(conn, month=month, states=[UploadState.WAITING])
    return bool(documents) and not waiting and all(row.expired_at for row in documents)


def _has_work_left(summary: reading.MonthSummary) -> bool:
    return summary.unfinished + summary.waiting_uploads > 0
