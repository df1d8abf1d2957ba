"""A ledger on each of the two databases: every test of this room holds on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.signing import Recorder
from asset_pipeline_tests.blank_ledgers import blank_ledger


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a database that does not exist yet, or is empty."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    return request.getfixturevalue("postgres_url")


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of a ledger without a row."""
    if request.param == "postgres":
        return request.getfixturevalue("postgres_ledger_url")
    (tmp_path / "ledger.db").write_bytes(blank_ledger())
    return f"sqlite:///{tmp_path}/ledger.db"


@pytest.fixture
def ledger(ledger_url: str, tmp_path: Path) -> Iterator[Ledger]:
    opened = open_ledger(ledger_url, recorder=Recorder(tmp_path / "keys"))
    yield opened
    opened.close()
