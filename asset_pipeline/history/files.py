"""The history as CSV, JSON and Parquet, written row by row or in batches, so that memory does not grow with it.

Times are ISO 8601 in UTC (``2026-05-03T12:00:00.000000Z``) in text, timestamps in Parquet. Columns are those of
``columns.TABLES``, always all of them, in their order.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.history.columns import Column
from asset_pipeline.history.rows import Row

BATCH = 10_000
"""Rows of one row group in a Parquet file."""


def plain_row(columns: Sequence[Column], row: Row) -> dict[str, Any]:
    """``row`` with exactly ``columns``, times as text."""
    return {column.name: _plain(row.get(column.name)) for column in columns}


def write_csv(columns: Sequence[Column], rows: Iterable[Row], target: TextIO) -> int:
    """A header and a line for each row; a missing value is empty. The number of rows."""
    writer = csv.DictWriter(target, [column.name for column in columns], lineterminator="\n")
    writer.writeheader()
    count = 0
    for row in rows:
        writer.writerow(plain_row(columns, row))
        count += 1
    return count


def write_json(columns: Sequence[Column], rows: Iterable[Row], target: TextIO) -> int:
    """An array with an object for each row, one a line. The number of rows."""
    target.write("[")
    count = 0
    for row in rows:
        target.write(",\n " if count else "\n ")
        json.dump(plain_row(columns, row), target, ensure_ascii=False, separators=(",", ":"))
        count += 1
    target.write("\n]\n")
    return count


def write_parquet(columns: Sequence[Column], rows: Iterable[Row], target: Path) -> int:
    """One file, complete or not there; the number of rows. Raises ConfigurationError when it cannot be written."""
    import pyarrow as pa  # type: ignore[import-untyped]
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    types = {
        "text": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "time": pa.timestamp("us", tz="UTC"),
    }
    fields = [pa.field(row.name, types[row.kind], metadata={"meaning": row.meaning}) for row in columns]
    schema, count = pa.schema(fields), 0
    growing = target.with_name(f".{target.name}.part")
    try:
        with pq.ParquetWriter(growing, schema, compression="zstd") as writer:
            for batch in _batches(rows):
                values = [{column.name: row.get(column.name) for column in columns} for row in batch]
                writer.write_table(pa.Table.from_pylist(values, schema=schema))
                count += len(batch)
        growing.replace(target)
    except OSError as error:
        what = f"{target} cannot be written ({error.strerror or type(error).__name__})."
        raise ConfigurationError(what, "Name a file in a folder that can be written.") from None
    finally:
        growing.unlink(missing_ok=True)
    return count


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH)):
        yield batch


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value
