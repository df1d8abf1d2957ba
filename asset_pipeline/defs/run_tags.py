"""What a run is found by in the list of runs: its month, its collections, and what asked for it.

Set from within the run, because only then it holds for every way in: the sensor, a schedule, a backfill, the web page,
the command line. Collections are folders of the inbox, so they are named only where names are shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import dagster as dg

from asset_pipeline.defs.abandoned import PROCESS_TAG
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.reading import DocumentRow

MONTH = "asset_pipeline/month"
COLLECTIONS = "asset_pipeline/collections"
TRIGGER = "asset_pipeline/trigger"

PRIORITY = "dagster/priority"
"""Runs that wait in the queue start in this order, the highest number first."""

BY_HAND, FEW_UPLOADS, BULK = 10, 5, -10
"""What somebody waits for goes before a few new files, those before a whole import, and backfills come last."""

MOST_FEW = 50
"""Uploads of a month that are few."""

MOST_COLLECTIONS = 10

_ASKED_BY = {
    "dagster/sensor_name": "sensor",
    "dagster/schedule_name": "schedule",
    "dagster/backfill": "backfill",
    PROCESS_TAG: "command line",
}


def tag_run(context: dg.AssetExecutionContext, inst: Installation, documents: Sequence[DocumentRow]) -> None:
    """Add the tags of a run of the month of ``context``, which has ``documents``."""
    tags = {MONTH: context.partition_key, TRIGGER: trigger(context.run.tags)}
    collections = sorted({row.collection for row in documents})
    if collections and inst.policy.show_names:
        more = [f"and {len(collections) - MOST_COLLECTIONS} more"] if len(collections) > MOST_COLLECTIONS else []
        tags[COLLECTIONS] = ", ".join([*collections[:MOST_COLLECTIONS], *more])
    context.instance.add_run_tags(context.run.run_id, tags)


def priority(tags: Mapping[str, str], *, by_hand: bool) -> dict[str, str]:
    """The tag for the place in the queue of a run with ``tags``, where it has none yet."""
    if PRIORITY in tags:
        return {}
    place = BULK if "dagster/backfill" in tags else BY_HAND if by_hand else 0
    return {PRIORITY: str(place)} if place else {}


def trigger(tags: Mapping[str, str]) -> str:
    """What asked for a run, by the tags that Dagster or the command line gave it."""
    return next((asked_by for tag, asked_by in _ASKED_BY.items() if tag in tags), "web page")
