"""Watches the inbox: a month with uploads that have settled gets a run.

The whole inbox is held against the ledger with every tick, so neither a clock nor the cursor is trusted. The run key
is the month and the digest of its news: the same news asks for one run only, ever; what that run leaves undone is for
the nightly schedule. A file in an impossible place is counted by reason and spoils nothing.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg

from asset_pipeline.defs.abandoned import fail_abandoned_runs
from asset_pipeline.defs.assets.extraction_policy import observation_when_changed
from asset_pipeline.defs.border import told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.defs.run_tags import FEW_UPLOADS, MOST_FEW, PRIORITY
from asset_pipeline.installation import Installation
from asset_pipeline.intake.inventory import Inventory, take_inventory
from asset_pipeline.ledger import reading
from asset_pipeline.reasons import Reason

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

SECONDS = 30
UNCOVERED_SECONDS = 30
"""With the time between two ticks, no event of a process that was killed stays uncovered for more than a minute."""

NO_INBOX = "There is no inbox yet. Make the folder inbox in the home of the installation, or set ASSET_PIPELINE_INBOX."


def build_new_uploads(months: dg.PartitionsDefinition[str], job: "AssetJob") -> dg.SensorDefinition:
    """The sensor, which asks for runs of ``job`` in ``months``."""

    @dg.sensor(
        name="new_uploads",
        job=job,
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Looks into the inbox every 30 seconds and runs each month in which something new has stopped "
        "changing. Files in a wrong place are counted by reason; the next materialization of source_documents lists "
        "them with what to do.",
    )
    def new_uploads(context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.SensorResult:
        with told_to_dagster(pipeline), pipeline.open() as inst:
            inst.checkpoints.catch_up(UNCOVERED_SECONDS)
            fail_abandoned_runs(context.instance)
            if _is_brand_new(inst):
                return dg.SensorResult(skip_reason=NO_INBOX)
            now = pipeline.clock()
            inventory = take_inventory(inst, now)
            news, impossible = _possible(inventory.news, months.get_partition_keys(current_time=now))
            observation = observation_when_changed(inst, context.instance)
        seen = _seen(inventory, news, impossible)
        if _rejected(context.cursor) != seen["rejected"] and seen["rejected"]:
            context.log.warning("Files in the inbox that cannot be taken, by reason: %s", _in_words(seen["rejected"]))
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(
                    run_key=f"{month}:{digest}",
                    partition_key=month,
                    tags={PRIORITY: str(FEW_UPLOADS)} if len(inventory.settled[month]) <= MOST_FEW else {},
                )
                for month, digest in news.items()
            ],
            skip_reason=None if news else _skip_reason(seen),
            cursor=json.dumps(seen, sort_keys=True),
            asset_events=[observation] if observation else [],
        )

    return new_uploads


def _is_brand_new(inst: Installation) -> bool:
    """Whether nobody has made or named an inbox and nothing ever came in. One that is away is a failure."""
    if inst.settings.inbox or Path(inst.settings.store_address("inbox")).exists():
        return False
    with inst.ledger.read() as conn:
        return not reading.months(conn)


def _possible(news: Mapping[str, str], known: Sequence[str]) -> tuple[dict[str, str], int]:
    """News of months that Dagster knows, and how many other months there are: one of those would fail the tick."""
    possible = {month: digest for month, digest in news.items() if month in set(known)}
    return possible, len(news) - len(possible)


def _seen(inventory: Inventory, news: Mapping[str, str], impossible: int) -> dict[str, int | dict[str, int]]:
    rejected = Counter(str(upload.reason or Reason.KEY_NOT_UNDERSTOOD) for upload in inventory.rejected)
    if impossible:
        rejected[Reason.MONTH_OUT_OF_RANGE.value] += impossible
    return {
        "files": inventory.files,
        "months_with_news": len(news),
        "waiting": len(inventory.waiting),
        "deferred": sum(map(len, inventory.deferred.values())),
        "rejected": dict(sorted(rejected.items())),
    }


def _rejected(cursor: str | None) -> object:
    try:
        return json.loads(cursor or "{}").get("rejected", {})
    except (ValueError, AttributeError):
        return {}


def _in_words(rejected: object) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in rejected.items()) if isinstance(rejected, dict) else ""


def _skip_reason(seen: Mapping[str, object]) -> str:
    parts = ["Nothing new in the inbox."]
    if seen["waiting"]:
        parts.append(f"{seen['waiting']} files have to stay unchanged a little longer.")
    if seen["deferred"]:
        parts.append(f"{seen['deferred']} files wait until less of their collection is queued; `status` says when.")
    if seen["rejected"]:
        parts.append(f"Cannot be taken: {_in_words(seen['rejected'])}.")
    return " ".join(parts)
