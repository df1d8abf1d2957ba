"""An installation with an inbox: on a folder with SQLite, and for ``on_both`` on S3 with PostgreSQL as well."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from asset_pipeline.installation import open_installation
from asset_pipeline.settings import Settings
from asset_pipeline_tests.blank_ledgers import blank_ledger

SERVERS = "s3 and postgres"
on_both = pytest.mark.parametrize("settings", ["folder and sqlite", SERVERS], indirect=True)
"""For what asks more of the inbox or the database than to keep what they are given."""

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)


class Clock:
    """A clock that is set by the test."""

    def __init__(self):
        self.time = NOON

    def __call__(self):
        return self.time

    def advance(self, seconds):
        self.time += timedelta(seconds=seconds)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def settings(request, tmp_path):
    (tmp_path / "home" / "inbox").mkdir(parents=True)
    places = {"home": tmp_path / "home", "settle_seconds": 0}
    if getattr(request, "param", "") == SERVERS:
        places |= request.getfixturevalue("s3_settings").settings()
        places["ledger"] = request.getfixturevalue("postgres_ledger_url")
    else:
        (tmp_path / "home" / "ledger.db").write_bytes(blank_ledger())
    return Settings(**places)


@pytest.fixture
def inst(settings):
    with open_installation(settings) as installation:
        yield installation


@pytest.fixture
def patient(inst):
    """The same installation, with ten seconds to settle."""
    return replace(inst, settings=inst.settings.model_copy(update={"settle_seconds": 10.0}))


def pdf(text: str = "") -> bytes:
    return b"%PDF-1.7\n" + text.encode()
