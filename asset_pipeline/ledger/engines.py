"""Makes a SQLAlchemy engine for each of the two databases, with every connection set up alike.

An address is never repeated in a message: it may hold a password. Pools are sized for threads, two for
each worker (one works, one renews the lease).
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from asset_pipeline.errors import ConfigurationError

BUSY_SECONDS = 30
"""How long a writer waits for another one."""

_REMEDY = "Set ASSET_PIPELINE_LEDGER to sqlite:///path or postgresql://user:password@host/name."
_COMMON: dict[str, Any] = {
    "hide_parameters": True,
    "json_serializer": partial(json.dumps, separators=(",", ":"), allow_nan=False),
    "pool_timeout": BUSY_SECONDS,
}


def make_engine(url: str) -> Engine:
    """An engine for ``url``; makes a SQLite file, not its folder. Contacts nothing else. Raises ConfigurationError."""
    try:
        parsed = make_url(url)
        kind = parsed.get_backend_name()
    except (SQLAlchemyError, ValueError):
        raise ConfigurationError("The ledger's address is not understood.", _REMEDY) from None
    match kind:
        case "sqlite":
            return _sqlite(parsed)
        case "postgresql":
            return _postgres(parsed)
        case _:
            raise ConfigurationError("The ledger's database is of an unknown kind.", _REMEDY)


def _sqlite(url: URL) -> Engine:
    if not url.database or url.database == ":memory:" or url.database.startswith("file:"):
        raise ConfigurationError("The ledger must be a file.", _REMEDY)
    _make_file(Path(url.database))
    engine = create_engine(
        url.set(drivername="sqlite+pysqlite"),
        **_COMMON,
        pool_size=8,
        max_overflow=56,
        connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False},
    )
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_file(path: Path) -> None:
    """Make the file for its owner alone: it holds the names of documents."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except FileNotFoundError:
        what = "The folder of the ledger's file does not exist."
        raise ConfigurationError(what, "Create it or correct ASSET_PIPELINE_LEDGER.") from None
    except OSError as error:
        what = f"The ledger's file cannot be made: {os.strerror(error.errno or 0)}."
        remedy = "Set ASSET_PIPELINE_HOME or ASSET_PIPELINE_LEDGER to a place that can be written."
        raise ConfigurationError(what, remedy) from None


def _set_up_sqlite(connection: Any, record: object) -> None:  # noqa: ARG001 - the listener's signature
    connection.isolation_level = None  # BEGIN is ours: see _begin_sqlite
    for setting in (f"busy_timeout={BUSY_SECONDS * 1000}", "foreign_keys=ON", "recursive_triggers=ON"):
        connection.execute(f"PRAGMA {setting}")
    _use_wal(connection)


def _use_wal(connection: Any) -> None:
    """Switch a new file to WAL. The switch itself does not heed the busy timeout, so two openers take turns here."""
    until = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except connection.OperationalError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    reads = connection.get_execution_options().get("ledger_reads", False)
    connection.exec_driver_sql("BEGIN" if reads else "BEGIN IMMEDIATE")


def _postgres(url: URL) -> Engine:
    if url.drivername not in ("postgresql", "postgresql+psycopg2"):
        raise ConfigurationError("The ledger needs the driver psycopg2.", _REMEDY)
    try:
        engine = create_engine(
            url.set(drivername="postgresql+psycopg2"),
            **_COMMON,
            pool_size=8,
            max_overflow=24,
            pool_pre_ping=True,
            pool_recycle=1800,
            executemany_mode="values_plus_batch",
            connect_args={
                "connect_timeout": 10,
                "application_name": "asset-pipeline",
                "keepalives_idle": BUSY_SECONDS,
                "tcp_user_timeout": BUSY_SECONDS * 1000,
            },
        )
    except (ArgumentError, TypeError):
        raise ConfigurationError("The ledger's address has an option that is not known.", _REMEDY) from None
    event.listen(engine, "connect", _set_up_postgres)
    return engine


def _set_up_postgres(connection: Any, record: object) -> None:  # noqa: ARG001 - the listener's signature
    with connection.cursor() as cursor:
        cursor.execute(f"SET lock_timeout = '{BUSY_SECONDS}s'")
    connection.commit()
