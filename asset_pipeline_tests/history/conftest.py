"""An installation whose ledger is filled with made-up work, on each of the two databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import SecretStr

from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import fresh_settings


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    if request.param == "sqlite":
        return fresh_settings(tmp_path)
    return fresh_settings(tmp_path, ledger=SecretStr(request.getfixturevalue("postgres_ledger_url")))


@pytest.fixture
def inst(settings: Settings) -> Iterator[Installation]:
    with open_installation(settings) as opened:
        yield opened
