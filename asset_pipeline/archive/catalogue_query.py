"""Answers SQL over the catalogues of all months, with DuckDB in memory: tables ``pictures`` and ``pages``.

A document that waits in the inbox, was rejected there or is being worked is in no file, or in one that tells of its
past: its row of ``pages`` is read from the ledger with each question.

The files are copied out of the store first, so that a bucket needs no driver in the database; after that the database
may open those copies and nothing else, load nothing and change none of its settings. Only one statement that reads is
taken. Nothing is written anywhere.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import Any

import duckdb
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]
from sqlalchemy import Connection, select

from asset_pipeline.archive.catalogue import TABLES, Row, page_rows, schema, upload_row
from asset_pipeline.archive.page_states import Deferred, answer_for_upload
from asset_pipeline.errors import UsageError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.jobs import OPEN as IN_WORK
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.ledger.uploads import OPEN, list_uploads

_READS = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)


@dataclass(frozen=True, slots=True)
class Answer:
    """Names of the columns, each once, and the rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def ask(inst: Installation, sql: str, deferred: Mapping[str, Deferred] | None = None) -> Answer:
    """The answer to ``sql``; ``deferred`` has, by id, the uploads that wait for others of their collection.

    Raises UsageError in the database's own words, StorageError when the archive is away.
    """
    with tempfile.TemporaryDirectory() as folder, closing(duckdb.connect(":memory:")) as database:
        with inst.ledger.read() as conn:
            unfinished = list(_unfinished(conn, inst.policy.show_names, deferred or {}))
            worked = conn.execute(select(jobs.c.job_id).limit(1)).first() is not None
        copies = {table: _copies(inst, table, Path(folder), worked) for table in TABLES}
        now = Path(folder, "now.parquet")
        pq.write_table(pa.Table.from_pylist(unfinished, schema=schema("pages")), now)
        try:
            _close_doors(database, copies, now, Path(folder))
            statements = database.extract_statements(sql)
            if len(statements) != 1 or statements[0].type not in _READS:
                raise UsageError("A question is one statement that reads.", "Write one SELECT.")
            found = database.execute(statements[0])
            return Answer(_once([column[0] for column in found.description or []]), found.fetchall())
        except duckdb.Error as error:
            # The first line; what follows repeats the question.
            words = str(error).partition("\n")[0].strip().rstrip(".")
            raise UsageError(f"{words}.", "The tables are pictures and pages; try DESCRIBE pictures.") from None


def _unfinished(conn: Connection, show_names: bool, deferred: Mapping[str, Deferred]) -> Iterator[Row]:
    """A row of ``pages`` for each document that is not done: in the inbox, rejected there, queued or in work."""
    for upload in list_uploads(conn, states=OPEN):
        yield upload_row(upload, answer_for_upload(upload, deferred.get(upload.upload_id)), show_names)
    months = select(jobs.c.month).where(jobs.c.state.in_(IN_WORK)).distinct().order_by(jobs.c.month)
    for month in conn.execute(months).scalars().all():
        for document in reading.documents_of_month(conn, month):
            if document.state in IN_WORK:
                yield from page_rows(document, [], show_names)


def _copies(inst: Installation, table: str, folder: Path, worked: bool) -> list[Path]:
    """Local copies of every month's file of ``table``, and one without rows, so that the table is always there.

    Before anything was ``worked`` there need be no archive.
    """
    empty = folder / f"{table}.parquet"
    pq.write_table(schema(table).empty_table(), empty)
    copies = [empty]
    for number, entry in enumerate(inst.archive.list(f"catalogue/{table}/") if worked else ()):
        copy = folder / f"{table}-{number}.parquet"
        with inst.archive.open(entry.key) as source, copy.open("wb") as target:
            copyfileobj(source, target)
        copies.append(copy)
    return copies


def _close_doors(database: duckdb.DuckDBPyConnection, copies: dict[str, list[Path]], now: Path, folder: Path) -> None:
    """Make the tables and let the database reach their files alone. ``now`` has what the ledger says of some pages."""
    current = f"read_parquet({_quoted(str(now))})"
    for table, files in copies.items():
        listed = ", ".join(_quoted(str(file)) for file in files)
        sql = f"SELECT * FROM read_parquet([{listed}], union_by_name=true) AS filed"  # noqa: S608 - names of ours
        if table == "pages":
            told_now = f"SELECT 1 FROM {current} AS now WHERE now.report_id = filed.report_id"  # noqa: S608 - the same
            sql += f" WHERE NOT EXISTS ({told_now}) UNION ALL SELECT * FROM {current}"  # noqa: S608 - the same
        database.execute(f"CREATE VIEW {table} AS {sql}")
    allowed = ", ".join(_quoted(str(file)) for file in (now, *(file for files in copies.values() for file in files)))
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
