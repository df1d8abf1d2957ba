"""`history …`: what happened, as a table, CSV, JSON or Parquet. The tables are those of the room ``history``."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Sheet
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.settings import Settings

LINES = 50
"""Rows of a table for people where no limit is given; the other forms have them all."""

_FOR_PEOPLE = {
    "materializations": "at asset month run_id code_version row_count",
    "attempts": "started_at month job_id fence outcome reason queued_ms fetch_ms decode_ms publish_ms peak_rss_bytes "
    "bytes_written breach",
    "pictures": "month document page name kind status reason width height ppi caption",
    "events": "seq at type month job_id",
    "retries": "at month job_id fence reason next_outcome waited_ms",
    "pages": "month document page label drawn archived collapsed decorative consumed not_shown quarantined reason",
    "editions": "published_at month report_id edition revision why content_digest",
}
"""Columns that fit a terminal; the other forms have them all."""


class Table(StrEnum):
    """What there is to ask for."""

    MATERIALIZATIONS = "materializations"
    ATTEMPTS = "attempts"
    PICTURES = "pictures"
    EVENTS = "events"
    RETRIES = "retries"
    PAGES = "pages"
    EDITIONS = "editions"


class HistoryFormat(StrEnum):
    """How it is answered."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def history(
    table: Annotated[Table, typer.Argument(help="What to show.", show_default=False)],
    month: Annotated[str | None, typer.Option(help="Only this month, as YYYY-MM.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from this moment on, as YYYY-MM-DD[THH:MM[:SS]], UTC.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="At most so many rows, the latest ones.")] = None,
    format_: Annotated[HistoryFormat, typer.Option("--format", help="How to answer.")] = HistoryFormat.TABLE,
    output: Annotated[Path | None, typer.Option(help="File to write; parquet needs one.")] = None,
) -> None:
    """Show what happened, the latest first (pictures and pages: by document)."""
    if format_ is HistoryFormat.PARQUET and output is None:
        raise UsageError("Parquet is no text.", "Name a file with --output.")
    if format_ is HistoryFormat.TABLE and output is not None:
        raise UsageError("A table is for the terminal.", "Choose --format csv, json or parquet for a file.")
    if output is not None and not output.parent.is_dir():
        raise UsageError(f"There is no folder {output.parent}.", "Name a file in a folder that exists.")
    if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise UsageError(f"{console.plain(month)} is not a month.", "Write it as YYYY-MM.")
    moment = _moment(since) if since else None

    from asset_pipeline.settings import load_settings

    with _rows(load_settings(), table, month, moment, limit) as rows:
        if format_ is HistoryFormat.TABLE:
            _show(table, rows, limit)
        else:
            _write(table, rows, format_, output)


@contextmanager
def _rows(
    settings: Settings, table: Table, month: str | None, since: datetime | None, limit: int | None
) -> Iterator[Iterator[dict[str, Any]]]:
    if table is Table.MATERIALIZATIONS:
        from asset_pipeline.defs.history_rows import materialization_rows

        yield materialization_rows(settings, month=month, since=since, limit=limit)
        return
    from asset_pipeline.history.rows import ROWS
    from asset_pipeline.installation import open_installation

    with open_installation(settings) as inst:
        yield ROWS[table.value](inst, month=month, since=since, limit=limit)


def _show(table: Table, rows: Iterator[dict[str, Any]], limit: int | None) -> None:
    from asset_pipeline.history.columns import TABLES
    from asset_pipeline.history.files import plain_row

    columns = TABLES[table.value]
    shown = [plain_row(columns, row) for row in islice(rows, limit or LINES)]
    for column in columns:
        for row in shown:
            if column.kind == "time" and row[column.name]:
                row[column.name] = f"{row[column.name][:19]}Z"
    console.show_tables([Sheet(table.value.capitalize(), tuple(_FOR_PEOPLE[table.value].split()), shown)])
    if not shown:
        console.say("There is nothing.")
    elif limit is None and next(rows, None) is not None:
        console.say(f"These are the first {LINES}; --limit shows more, --format csv has them all.")


def _write(table: Table, rows: Iterator[dict[str, Any]], format_: HistoryFormat, output: Path | None) -> None:
    from asset_pipeline.history.columns import TABLES
    from asset_pipeline.history.files import write_csv, write_json, write_parquet

    columns = TABLES[table.value]
    if format_ is HistoryFormat.PARQUET and output is not None:
        _say_where(write_parquet(columns, rows, output), output)
        return
    write = write_csv if format_ is HistoryFormat.CSV else write_json
    if output is None:
        write(columns, rows, sys.stdout)
        return
    try:
        with output.open("w", encoding="utf-8") as target:
            count = write(columns, rows, target)
    except OSError as error:
        what = f"{output} cannot be written ({error.strerror})."
        raise UsageError(what, "Name a file in a folder that can be written.") from None
    _say_where(count, output)


def _say_where(count: int, output: Path) -> None:
    console.say(f"{console.number_of(count, 'row is', 'rows are')} in {output}.")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{console.plain(text)} is not a moment.", "Write it as 2026-05-31 or 2026-05-31T18:00."
        ) from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
