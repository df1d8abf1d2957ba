"""What Dagster recorded of the months, as plain rows for ``history``: here its event log is read for people.

A page at a time, newest first over all assets, by the moment of the event. What the ledger has is never read from here.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import CODE_VERSION_TAG, DATA_VERSION_TAG

from asset_pipeline.defs.instance import open_instance
from asset_pipeline.settings import Settings, load_settings

PAGE = 200
"""Materializations hold tables and thumbnails: up to some 200 KB each."""

ROW_COUNT = "dagster/partition_row_count"


def materialization_rows(
    settings: Settings | None = None,
    *,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
    instance: dg.DagsterInstance | None = None,
) -> Iterator[dict[str, Any]]:
    """Rows of ``history.columns.MATERIALIZATIONS``, the latest first.

    ``settings`` None are those of the environment; ``instance`` None opens Dagster's records for as long as it is read.
    """
    with nullcontext(instance) if instance else open_instance(settings or load_settings()) as records:
        of_assets = [_of_asset(records, key, month, since) for key in records.get_asset_keys()]
        yield from islice(heapq.merge(*of_assets, key=_when, reverse=True), limit)


def _when(row: dict[str, Any]) -> tuple[datetime, int]:
    return row["at"], row["event_id"]


def _of_asset(
    instance: dg.DagsterInstance, key: dg.AssetKey, month: str | None, since: datetime | None
) -> Iterator[dict[str, Any]]:
    wanted = dg.AssetRecordsFilter(
        key, asset_partitions=[month] if month else None, after_timestamp=since.timestamp() if since else None
    )
    cursor: str | None = None
    while True:
        found = instance.fetch_materializations(wanted, limit=PAGE, cursor=cursor)
        yield from _rows(found.records)
        if not found.has_more:
            return
        cursor = found.cursor


def _rows(records: Sequence[dg.EventLogRecord]) -> Iterator[dict[str, Any]]:
    for record in records:
        made = record.asset_materialization
        if made is None:
            continue
        tags = made.tags or {}
        figures = {name: value for name, entry in made.metadata.items() if (value := _number(entry)) is not None}
        yield {
            "at": datetime.fromtimestamp(record.timestamp, UTC),
            "asset": made.asset_key.to_user_string(),
            "month": made.partition,
            "run_id": record.run_id,
            "data_version": tags.get(DATA_VERSION_TAG),
            "code_version": tags.get(CODE_VERSION_TAG),
            "row_count": figures.pop(ROW_COUNT, None),
            "figures": json.dumps(figures, sort_keys=True, separators=(",", ":")),
            "event_id": record.storage_id,
        }


def _number(entry: dg.MetadataValue[Any]) -> int | float | None:
    return entry.value if isinstance(entry, dg.IntMetadataValue | dg.FloatMetadataValue) else None
