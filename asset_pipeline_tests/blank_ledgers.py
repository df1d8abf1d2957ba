"""Ledgers with every table and no row, to be copied: making the tables takes longer than most tests.

How an empty database gets its tables is asked in ``ledger/test_database``.
"""

from __future__ import annotations

import fcntl
import tempfile
from functools import cache
from pathlib import Path

import psycopg2

from asset_pipeline.ledger.database import open_ledger
from asset_pipeline_tests.servers import Server, TestRun

_DATABASE = "blank_ledger"


@cache
def blank_ledger() -> bytes:
    """The file of one on SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ledger.db")
        open_ledger(f"sqlite:///{path}").close()
        assert list(path.parent.iterdir()) == [path], "nothing of it is in a log beside it"
        return path.read_bytes()


@cache
def blank_database(server: Server) -> str:
    """The name of one on PostgreSQL, shared by all workers of a test run."""
    with (TestRun.joined().folder / f"{_DATABASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        connection = psycopg2.connect(server.database_url("postgres"))
        connection.autocommit = True
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", (_DATABASE,))
                if not cursor.fetchone():
                    cursor.execute(f"CREATE DATABASE {_DATABASE}_unfinished")
                    open_ledger(server.database_url(f"{_DATABASE}_unfinished")).close()
                    cursor.execute(f"ALTER DATABASE {_DATABASE}_unfinished RENAME TO {_DATABASE}")
        finally:
            connection.close()
    return _DATABASE
