"""Fixtures that every room's tests may use: a fresh database, a fresh bucket, the servers behind them.

Servers start when a test first asks and are shared by all workers of a run (see ``servers``).
"""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg2
import pytest

from asset_pipeline.extraction.sandbox import line
from asset_pipeline_tests.blank_ledgers import blank_database
from asset_pipeline_tests.commands import WarmProcess
from asset_pipeline_tests.servers import Server, TestRun, s3_client
from asset_pipeline_tests.warm_zygotes import WarmZygotes, start_process

_RUN = pytest.StashKey[TestRun]()


def pytest_configure(config: pytest.Config) -> None:
    # A run that was put into the background is deaf to Ctrl-C, and so would be every program that its tests start.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        config.stash[_RUN] = TestRun.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if _RUN in config.stash:
        config.stash[_RUN].end()


@dataclass(frozen=True, slots=True)
class Bucket:
    """A fresh bucket; its credentials are in the environment of the test."""

    endpoint: str
    name: str
    access_key: str
    secret_key: str

    def address(self, prefix: str = "") -> str:
        return f"s3://{self.name}/{prefix}".rstrip("/")

    def settings(self) -> dict[str, str]:
        """Settings of an installation whose four stores are in this bucket."""
        stores = ("inbox", "sources", "archive", "quarantine")
        return {"s3_endpoint": self.endpoint} | {name: self.address(name) for name in stores}


@pytest.fixture(scope="session")
def postgres_server() -> Server:
    """PostgreSQL, running."""
    return TestRun.joined().server("postgres")


@pytest.fixture
def postgres_url(postgres_server: Server) -> Iterator[str]:
    """Address of an empty database that only this test uses: postgresql://user:password@127.0.0.1:port/name."""
    with _database(postgres_server, "template1") as url:
        yield url


@pytest.fixture
def postgres_ledger_url(postgres_server: Server) -> Iterator[str]:
    """As ``postgres_url``, with the tables of a ledger."""
    with _database(postgres_server, blank_database(postgres_server)) as url:
        yield url


@contextmanager
def _database(server: Server, template: str) -> Iterator[str]:
    name = f"test_{secrets.token_hex(8)}"
    connection = psycopg2.connect(server.database_url("postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        yield server.database_url(name)
        cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")
    connection.close()


@pytest.fixture(scope="session")
def s3_server() -> Server:
    """An S3 server, running."""
    return TestRun.joined().server("s3")


@pytest.fixture
def s3_settings(s3_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket that only this test uses, with its credentials where boto3 looks for them."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3_server.user)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3_server.secret)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    client = s3_client(s3_server)
    bucket = f"test-{secrets.token_hex(8)}"
    client.create_bucket(Bucket=bucket)
    yield Bucket(s3_server.endpoint, bucket, s3_server.user, s3_server.secret)
    _empty(client, bucket)


def _empty(client, bucket: str) -> None:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        keys = [{"Key": entry["Key"]} for entry in page.get("Contents", [])]
        if keys:
            client.delete_objects(Bucket=bucket, Delete={"Objects": keys})
    client.delete_bucket(Bucket=bucket)


@pytest.fixture(scope="session", autouse=True)
def warm_zygotes() -> Iterator[WarmZygotes]:
    """What decoder zygotes are forked from, wherever a test does not use ``started_zygotes``."""
    zygotes = WarmZygotes(TestRun.joined().folder)
    line._start_process = zygotes.fork  # type: ignore[assignment]
    yield zygotes
    line._start_process = start_process
    zygotes.close()


@pytest.fixture
def started_zygotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoder zygotes are started as everywhere else."""
    monkeypatch.setattr(line, "_start_process", start_process)


@pytest.fixture(scope="session")
def warm_process(warm_zygotes: WarmZygotes) -> Iterator[WarmProcess]:
    """What commands are forked from."""
    process = WarmProcess(warm_zygotes.address())
    yield process
    process.close()
