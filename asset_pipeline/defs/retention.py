"""Retention as Dagster sees it: once a day, everything past its deadline goes, and a check says that nothing is left.

An asset without partitions, so that what was deleted is a figure with a history; a job of its own, so that it waits
for no month. What is deleted, and in which order, is in ``retention.apply``. Dagster's own records of a month hold
small pictures of it, and names: runs from before a report of their month expired are taken out of them. A month that
still has reports is then run again by the nightly schedule, for records that leave the expired ones out.
"""

from datetime import datetime
from typing import TYPE_CHECKING, Any

import dagster as dg

from asset_pipeline.defs import tables
from asset_pipeline.defs.assets.shared import OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.jobs import PARTITION_TAG
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.expiry import ARCHIVE_DEADLINE, last_expired, next_deadlines
from asset_pipeline.ledger.holds import list_holds
from asset_pipeline.ledger.identity import new_id
from asset_pipeline.ledger.tombstones import DeletedMonth, deleted_by_month
from asset_pipeline.retention.apply import apply
from asset_pipeline.retention.clocks import bytes_past_deadline
from asset_pipeline.work.previews import open_previews

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

DELETIONS = "deletions"
ALL_GONE = "everything_due_is_deleted"
RETENTION = "retention"
CODE_VERSION = "1"


def build_deletions() -> dg.AssetsDefinition:
    """The asset, with its check."""

    @dg.asset(
        name=DELETIONS,
        group_name="operations",
        owners=OWNERS,
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        check_specs=[
            dg.AssetCheckSpec(
                ALL_GONE,
                asset=DELETIONS,
                description="No byte is kept past its deadline, unless a legal hold keeps it. When it fails: run "
                "`asset-pipeline retention plan`, which says what is left, and then `asset-pipeline retention apply`.",
            )
        ],
        description="What was deleted because the time for which it may be kept is over: sources, pictures, "
        "thumbnails, quarantined bytes. Each deletion is an event before and after; hashes are kept.",
    )
    def deletions(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.MaterializeResult:  # type: ignore[type-arg]
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            now = pipeline.clock()
            done = apply(inst, now, lambda: open_previews(inst, pipeline.workers))
            forgotten = _forget_runs(inst, context.instance, now)
            left = bytes_past_deadline(inst, now)
            with inst.ledger.read() as conn:
                deadlines, holds, gone = next_deadlines(conn), list_holds(conn), deleted_by_month(conn)
        following = {"next_deadline": dg.MetadataValue.timestamp(min(row[1] for row in deadlines))} if deadlines else {}
        return dg.MaterializeResult(
            check_results=[_judged(left)],
            metadata={
                "deleted_at": dg.MetadataValue.timestamp(now),
                "reports_expired": done.reports,
                "files_deleted": len(done.deleted),
                "bytes_deleted": sum(row.bytes for row in done.deleted),
                "gallery_and_catalogue_files_removed": done.shown,
                "manifests_written": done.manifests,
                "run_records_removed": forgotten,
                "unnamed_files_deleted": done.swept.files,
                "bytes_past_deadline": left,
                "holds_in_force": len(holds),
                **following,
                "deleted_so_far": tables.table(_COLUMNS, gone),
            },
        )

    return deletions


def build_retention() -> "AssetJob":
    """The job."""
    return dg.define_asset_job(
        RETENTION,
        selection=dg.AssetSelection.assets(DELETIONS),
        description="Deletes what is past its deadline and under no legal hold. Safe at any time.",
    )


def build_every_day_at_one(job: "AssetJob") -> dg.ScheduleDefinition:
    """The schedule of ``job``."""
    return dg.ScheduleDefinition(
        name="every_day_at_one",
        job=job,
        cron_schedule="0 1 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every day at 01:00: deletes what is past its deadline and under no legal hold.",
    )


def _forget_runs(inst: Installation, instance: dg.DagsterInstance, now: datetime) -> int:
    """Remove the records of runs that showed what has expired since; not of a month of which something is held."""
    with inst.ledger.read() as conn:
        months = last_expired(conn)
    forgotten = 0
    for month, expired_at in months.items():
        ended = dg.RunsFilter(tags={PARTITION_TAG: month}, statuses=_ENDED, created_before=expired_at)
        run_ids = [record.dagster_run.run_id for record in instance.get_run_records(ended)]
        if not run_ids:
            continue
        facts = {"deletion_id": new_id(), "kind": "run_record", "reason": ARCHIVE_DEADLINE, "runs": run_ids}
        _tell(inst, "deletion_intended", month, facts, now)
        for run_id in run_ids:
            instance.delete_run(run_id)
        _tell(inst, "deleted", month, facts, now)
        forgotten += len(run_ids)
    return forgotten


def _tell(inst: Installation, event: str, month: str, facts: dict[str, Any], now: datetime) -> None:
    with inst.ledger.begin() as tx:
        record_event(tx, event, month=month, payload=facts, now=now)


_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]

_COLUMNS: tables.Columns[DeletedMonth] = (
    ("month", "string", lambda row: row.month or ""),
    ("kind", "string", lambda row: row.kind),
    ("files", "int", lambda row: row.files),
    ("bytes", "int", lambda row: row.bytes),
    ("last_deleted_at", "string", lambda row: row.last_deleted_at.isoformat(timespec="seconds")),
)


def _judged(left: int) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=ALL_GONE,
        passed=left == 0,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{left} bytes are past their deadline." if left else "Nothing is past its deadline.",
        metadata={"bytes_past_deadline": str(left)},
    )
