"""The two statements that SQLite and PostgreSQL spell alike but SQLAlchemy does not.

Conditional inserts only: a row whose key exists is left as it is. Anything cleverer belongs beside the
table it serves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, Table
from sqlalchemy.dialects.postgresql import Insert as PostgresInsert
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import Insert as SqliteInsert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

Row = dict[str, Any]
Item = TypeVar("Item")


def insert_into(tx: Connection, table: Table) -> PostgresInsert | SqliteInsert:
    """An INSERT that knows ON CONFLICT in the connection's dialect."""
    return postgres_insert(table) if tx.dialect.name == "postgresql" else sqlite_insert(table)


def insert_new(tx: Connection, table: Table, rows: Sequence[Row]) -> int:
    """Insert the rows whose keys do not exist yet. The count of new rows is exact for a single row only."""
    if not rows:
        return 0
    statement = insert_into(tx, table).on_conflict_do_nothing()
    return tx.execute(statement, rows if len(rows) > 1 else rows[0]).rowcount


def portions(items: Sequence[Item], size: int = 500) -> Iterator[Sequence[Item]]:
    """``items`` in runs short enough for one statement's parameters."""
    return (items[at : at + size] for at in range(0, len(items), size))
