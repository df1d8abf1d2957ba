"""Brings a database to the newest schema, step by step (Alembic, without an ini file).

Each step is frozen: it spells out its tables and never imports ``schema``, which moves on. A test
compares the two. The steps run in the caller's transaction, so that a step that fails leaves nothing.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import Connection

VERSION_TABLE = "ledger_version"
"""Not Alembic's own name: Dagster keeps its version under that one."""

HEAD = "0005"
"""Newest revision, told here so that opening a ledger need not import Alembic. A test compares it."""

_ONE_AT_A_TIME = threading.Lock()


def migrate(tx: Connection) -> None:
    """Run every step that is missing, in the caller's transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = tx
    with _ONE_AT_A_TIME:  # Alembic keeps its context in module variables
        command.upgrade(config, "head")
