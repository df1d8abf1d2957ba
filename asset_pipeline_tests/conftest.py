"""Fixtures that every room's tests may use: a fresh database, a fresh bucket, the servers behind them.

Servers start when a test first asks and are shared by all workers of a run (see ``servers``).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from asset_pipeline_tests.commands import WarmProcess
from asset_pipeline_tests.servers import Server, TestRun, s3_client

_RUN = pytest.StashKey[TestRun]()


def pytest_configure(config: pytest.Config) -> None:
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
    import psycopg2

    name = f"test_{secrets.token_hex(8)}"
    connection = psycopg2.connect(postgres_server.database_url("postgres"))
    connection.autocommit = True
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        yield postgres_server.database_url(name)
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


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess]:
    """What commands are forked from."""
    process = WarmProcess()
    yield process
    process.close()
