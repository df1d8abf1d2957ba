"""Answers SQL over the catalogues of all months, with DuckDB in memory: tables ``pictures`` and ``pages``.

The files are copied out of the store first, so that a bucket needs no driver in the database; after that the database
may open those copies and nothing else, load nothing and change none of its settings. Only one statement that reads is
taken. Nothing is written anywhere.
"""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import duckdb
import pyarrow.parquet as pq  # type: ignore[import-untyped]

from asset_pipeline.archive.catalogue import TABLES, schema
from asset_pipeline.errors import UsageError
from asset_pipeline.installation import Installation

_READS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of the columns, each once, and the rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def ask(inst: Installation, sql: str) -> Answer:
    """The answer to ``sql``. Raises UsageError in the database's own words, StorageError when the archive is away."""
    with tempfile.TemporaryDirectory() as folder, closing(duckdb.connect(":memory:")) as database:
        copies = {table: _copies(inst, table, Path(folder)) for table in TABLES}
        try:
            _close_doors(database, copies, Path(folder))
            statements = database.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _READS:
                raise UsageError("A question is one statement that reads.", "Write one SELECT.")
            found = database.execute(statements[0])
            return Answer(_once([column[0] for column in found.description or []]), found.fetchall())
        except duckdb.Error as error:
            # The first line; what follows repeats the question.
            words = str(error).partition("\n")[0].strip().rstrip(".")
            raise UsageError(f"{words}.", "The tables are pictures and pages; try DESCRIBE pictures.") from None


def _copies(inst: Installation, table: str, folder: Path) -> list[Path]:
    """Local copies of every month's file of ``table``, and one without rows, so that the table is always there."""
    empty = folder / f"{table}.parquet"
    pq.write_table(schema(table).empty_table(), empty)
    copies = [empty]
    for number, entry in enumerate(inst.archive.list(f"catalogue/{table}/")):
        copy = folder / f"{table}-{number}.parquet"
        with inst.archive.open(entry.key) as source, copy.open("wb") as target:
            copyfileobj(source, target)
        copies.append(copy)
    return copies


def _close_doors(database: duckdb.DuckDBPyConnection, copies: dict[str, list[Path]], folder: Path) -> None:
    """Make the tables and let the database reach their files alone."""
    for table, files in copies.items():
        listed = ", ".join(_quoted(str(file)) for file in files)
        database.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet([{listed}], union_by_name=true)")  # noqa: S608 - names of ours
    allowed = ", ".join(_quoted(str(file)) for files in copies.values() for file in files)
    database.execute(f"SET allowed_paths=[{allowed}]")
    database.execute(f"SET temp_directory={_quoted(str(folder / 'spill'))}")
    database.execute("SET enable_external_access=false")
    database.execute("SET autoinstall_known_extensions=false")
    database.execute("SET autoload_known_extensions=false")
    database.execute("SET lock_configuration=true")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _once(names: list[str]) -> tuple[str, ...]:
    """``names`` with a number behind each that was there before."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return tuple(result)
