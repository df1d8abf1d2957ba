"""An installation with Dagster's own records beside it: on SQLite, and on PostgreSQL with the file of deploy/."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

import asset_pipeline
from asset_pipeline.defs.instance import open_instance
from asset_pipeline.settings import Settings
from asset_pipeline_tests.servers import Server
from asset_pipeline_tests.small_documents import fresh_settings

ROOT = Path(asset_pipeline.__file__).parents[1]


@pytest.fixture(autouse=True)
def _no_home_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return fresh_settings(tmp_path)


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with open_instance(settings) as opened:
        yield opened


@pytest.fixture
def dagster_database(postgres_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """Dagster's home, with its records in a PostgreSQL database of their own."""
    import psycopg2

    name = f"test_{secrets.token_hex(8)}"
    connection = psycopg2.connect(postgres_server.database_url("postgres"))
    connection.autocommit = True
    home = tmp_path / "dagster"
    home.mkdir()
    shutil.copy(ROOT / "deploy" / "postgres" / "dagster.yaml", home)
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        monkeypatch.setenv("DAGSTER_POSTGRES_URL", postgres_server.database_url(name))
        yield home
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
    connection.close()
