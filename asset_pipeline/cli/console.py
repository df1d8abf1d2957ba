"""What people and programs see: tables, JSON, CSV, progress, and the one line of a failure.

Text that a caller wrote (names of uploads) is shown without control characters and never read as
markup. Progress is drawn on a terminal only and always on standard error, so that standard output is
nothing but the answer.
"""

from __future__ import annotations

import csv
import json
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

WIDTH_OF_A_FILE = 200
"""Columns where output goes to a file or pipe: nothing is cut there."""

WIDTH_OF_SENTENCES = 40
"""Columns of the output that a column of sentences takes at most, so that a table of them can be read anywhere."""

LENGTH_OF_A_CODE = 10
"""Values no longer than this (months, counts) are not broken over lines."""


class Format(StrEnum):
    """How a command answers."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


@dataclass(slots=True)
class Options:
    """Options of the whole command line."""

    debug: bool = False


options = Options()


@dataclass(frozen=True, slots=True)
class Sheet:
    """Rows under a title. All rows have the keys ``columns``; a value may be text, number, bool or None.

    ``quiet`` columns are left out of a table when they say nothing in any row (0, empty, None); columns of
    ``sentences`` are told over several lines.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]
    quiet: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()

    def telling(self) -> list[str]:
        """The columns of a table."""
        return [name for name in self.columns if name not in self.quiet or any(row[name] for row in self.rows)]


def plain(value: Any) -> str:
    """``value`` for a cell: no control characters, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in str(value))


def number_of(count: int, one: str, many: str = "") -> str:
    """``count`` with its noun: ``1 page``, ``3 pages``; ``many`` where an s does not make the plural."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def show_tables(sheets: Sequence[Sheet]) -> None:
    """Draw each sheet that has rows."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = Console(width=None if sys.stdout.isatty() else WIDTH_OF_A_FILE, highlight=False)
    available = terminal.width
    for sheet in sheets:
        if not sheet.rows:
            continue
        table = Table(
            title=Text(sheet.title),
            title_justify="left",
            box=SIMPLE_HEAD,
            padding=0,
            show_edge=False,
            leading=1 if sheet.sentences else 0,
        )
        columns = sheet.telling()
        least = {column: _least_width(sheet, column) for column in columns}
        for column in columns:
            numeric = all(isinstance(row[column], int | float | None) for row in sheet.rows)
            table.add_column(
                Text(column.replace("_", " ")),
                justify="right" if numeric else "left",
                overflow="fold",
                min_width=least[column],
                max_width=WIDTH_OF_SENTENCES if column in sheet.sentences else None,
            )
        for row in sheet.rows:
            table.add_row(*(Text(plain(row[column])) for column in columns))
        # Wider than the terminal rather than a count or a word of the header in pieces.
        terminal.width = max(available, sum(least.values()) + len(columns) - 1)
        terminal.print(table, soft_wrap=terminal.width > available)
        terminal.print()


def _least_width(sheet: Sheet, column: str) -> int:
    words = max(len(word) for word in column.split("_"))
    return max(words, min(LENGTH_OF_A_CODE, max(len(plain(row[column])) for row in sheet.rows)))


def show_json(body: Any) -> None:
    """Write ``body`` as JSON to standard output."""
    json.dump(body, sys.stdout, indent=2, ensure_ascii=False, default=str)
    sys.stdout.write("\n")


def show_csv(sheet: Sheet) -> None:
    """Write ``sheet`` as CSV with a header to standard output."""
    writer = csv.DictWriter(sys.stdout, sheet.columns, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(sheet.rows)


def show(format_: Format, sheets: Sequence[Sheet], body: Any) -> None:
    """Answer in ``format_``: tables of ``sheets``, ``body`` as JSON, or the first sheet as CSV."""
    if format_ is Format.JSON:
        show_json(body)
    elif format_ is Format.CSV:
        show_csv(sheets[0])
    else:
        show_tables(sheets)


def say(line: str) -> None:
    """One line for a person, on standard error."""
    sys.stderr.write(f"{line}\n")


def fail(what: str, remedy: str = "") -> None:
    """The one line of a failure; with --debug, where it came from."""
    if options.debug:
        traceback.print_exc()
    say(f"Error: {what} {remedy}".rstrip())


Bar = Callable[[str, int, int], None]
"""Called with a stage, what is done of it, and how much there is."""


def _no_bar(_stage: str, _done: int, _total: int) -> None:
    return None


@contextmanager
def progress_bar(shown: bool = True) -> Iterator[Bar]:
    """A bar on a terminal; silence elsewhere."""
    if not (shown and sys.stderr.isatty()):
        yield _no_bar
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.text import Text

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=None)

        def move(stage: str, done: int, total: int) -> None:
            progress.update(task, description=Text(stage).plain, completed=done, total=max(total, done))

        yield move
