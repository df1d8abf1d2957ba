"""What a tick of the inbox sensor costs when everything in the inbox is known: seconds and memory.

    .venv/bin/python benchmarks/sensor.py [--files 100000] [--s3] [--postgres]

Fills an inbox with tiny files of 24 months, records them as taken in, and ticks the sensor in a new process, as a code
server does: seconds of the first tick and the mean of the next ones (of the clock, and of the processor, which other
work on the machine changes less), and the highest resident size after the first and after the last. The same for a
tenth of the files tells whether memory grows with the inbox. Bounds: 5 s on a folder, 30 s on S3. Beside them what the
bare library (boto3, or ``os.walk`` and a stat each) takes for the same listing. ``--s3`` and ``--postgres`` start the
servers of the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import update

from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger.schema import uploads
from asset_pipeline.settings import Settings, load_settings

NOW = datetime(2026, 1, 15, tzinfo=UTC)
MONTHS = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
COLLECTIONS = 5
TICKS = 5


def keys(files: int) -> list[str]:
    """Keys spread over collections and months, as names that people give."""
    return [
        f"collection-{number % COLLECTIONS}/{MONTHS[number % len(MONTHS)]}/Quarterly report {number:06}.pdf"
        for number in range(files)
    ]


def fill(settings: Settings, files: int) -> float:
    """Put ``files`` tiny files into the inbox; seconds."""
    began = time.monotonic()
    address = settings.store_address("inbox")
    if address.startswith("s3://"):
        from asset_pipeline.storage.s3 import S3Store

        store = S3Store(address, endpoint=settings.s3_endpoint, name="inbox")
        with ThreadPoolExecutor(16) as threads:
            for _ in threads.map(lambda key: store.put_current(key, key.encode()), keys(files), chunksize=100):
                pass
    else:
        for key in keys(files):
            path = Path(address, key)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(key)
    return time.monotonic() - began


def take_in(inst: Installation) -> None:
    """Have the ledger know every file as taken in. Reading each one is not what is measured."""
    for minutes in (0, 1):
        take_inventory(inst, NOW + timedelta(minutes=minutes))
    with inst.ledger.begin() as tx:
        tx.execute(update(uploads).values(state="admitted", admitted_at=NOW))


def tick(home: str) -> None:
    """Tick the sensor in this process and print the figures."""
    import dagster as dg

    from asset_pipeline.defs.build import build_defs
    from asset_pipeline.defs.resources import Pipeline

    settings = load_settings(home=Path(home))
    pipeline = Pipeline(settings, clock=lambda: NOW + timedelta(hours=1))
    defs = build_defs(pipeline=pipeline)
    sensor, repository = defs.resolve_sensor_def("new_uploads"), defs.get_repository_def()
    seconds, busy, cursor, memory = [], [], None, []
    with dg.instance_for_test() as instance:
        for _ in range(TICKS):
            context = dg.build_sensor_context(
                instance=instance, cursor=cursor, repository_def=repository, resources={"pipeline": pipeline}
            )
            began, began_busy = time.monotonic(), time.process_time()
            result = sensor(context)
            seconds.append(time.monotonic() - began)
            busy.append(time.process_time() - began_busy)
            memory.append(own_peak_mb())
            cursor = result.cursor
            assert not result.run_requests, result
    next_ticks = sum(seconds[1:]) / (TICKS - 1)
    floor = min(bare_listing(settings) for _ in range(2))
    print(
        json.dumps(
            {
                "files": json.loads(cursor or "{}")["files"],
                "load_average": round(os.getloadavg()[0], 1),
                "first_tick_s": round(seconds[0], 2),
                "next_ticks_s": round(next_ticks, 2),
                "bare_listing_s": round(floor, 2),
                "ticks_to_bare_listing": round(next_ticks / floor, 2),
                "next_ticks_processor_s": round(sum(busy[1:]) / (TICKS - 1), 2),
                "first_tick_mb": memory[0],
                "last_tick_mb": memory[-1],
            }
        )
    )


def own_peak_mb() -> int:
    """Peak resident MB of this program; getrusage would tell those of the one that started it, where they are more."""
    status = Path("/proc/self/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))


def bare_listing(settings: Settings) -> float:
    """Seconds that the library takes to list the inbox when nobody looks at what it found."""
    began = time.monotonic()
    address = settings.store_address("inbox")
    if address.startswith("s3://"):
        import boto3

        client = boto3.client("s3", endpoint_url=settings.s3_endpoint or None, region_name=settings.s3_region)
        for _ in client.get_paginator("list_objects_v2").paginate(Bucket=address.removeprefix("s3://")):
            pass
    else:
        for folder, _, names in os.walk(address):
            for name in names:
                os.stat(f"{folder}/{name}")  # noqa: PTH116 - the floor, without objects for paths
    return time.monotonic() - began


def measure(files: int, environment: dict[str, str]) -> dict[str, float]:
    """Fill, take in, and tick in a new process."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch, "home")
        (home / "inbox").mkdir(parents=True)
        settings = load_settings(home=home)
        filled = fill(settings, files)
        with open_installation(settings) as inst:
            take_in(inst)
        told = subprocess.run(
            [sys.executable, __file__, "--tick", str(home)], env=os.environ | environment, stdout=-1, check=True
        )
        return {"fill_s": round(filled, 1), **json.loads(told.stdout.splitlines()[-1])}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--s3", action="store_true")
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--tick", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.tick:
        tick(asked.tick)
        return
    sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests are not installed
    from asset_pipeline_tests.servers import TestRun, s3_client

    with ExitStack() as held:
        run = TestRun.begin()
        held.callback(run.end)
        figures = []
        for number, files in enumerate((asked.files // 10, asked.files)):
            environment = {"ASSET_PIPELINE_SETTLE_SECONDS": "10"}
            if asked.s3:
                server, bucket = run.server("s3"), f"inbox-{number}"
                s3_client(server).create_bucket(Bucket=bucket)
                environment |= {
                    "AWS_ACCESS_KEY_ID": server.user,
                    "AWS_SECRET_ACCESS_KEY": server.secret,
                    "ASSET_PIPELINE_S3_ENDPOINT": server.endpoint,
                    "ASSET_PIPELINE_INBOX": f"s3://{bucket}",
                }
            if asked.postgres:
                environment["ASSET_PIPELINE_LEDGER"] = _database(run, f"ledger_{number}")
            os.environ.update(environment)
            figures.append(measure(files, environment))
    print(json.dumps(figures, indent=2))


def _database(run: object, name: str) -> str:
    import psycopg2

    server = run.server("postgres")  # type: ignore[attr-defined]
    connection = psycopg2.connect(server.database_url("postgres"))
    connection.autocommit = True
    connection.cursor().execute(f"CREATE DATABASE {name}")
    connection.close()
    return str(server.database_url(name))


if __name__ == "__main__":
    main()
