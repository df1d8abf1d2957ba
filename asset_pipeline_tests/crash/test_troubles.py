"""Disks that are full or read-only, and connections that are cut, while months are worked: nothing of it is lost."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import make_url

from asset_pipeline_tests.conftest import Bucket
from asset_pipeline_tests.crash.bad_disk import within
from asset_pipeline_tests.crash.campaign import SUBMITTED, Plan, run
from asset_pipeline_tests.crash.resets import door

LONG = bool(os.environ.get("ASSET_PIPELINE_TESTS_LONG"))
DOCUMENTS = 200 if LONG else 12
BURSTS = 40 if LONG else 4
SECONDS = 600 if LONG else 240


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["full", "read-only"])
def test_a_disk_that_is_full_or_read_only_for_a_while_costs_time_alone(tmp_path: Path, kind: str) -> None:
    plan = Plan(str(tmp_path / "campaign"), {}, documents=DOCUMENTS, poison=0, processes=3, seconds=SECONDS)
    report = run(plan, within=within(kind, Path(plan.folder)))
    print(report)
    assert report.wrong == []
    assert report.away > 0, "somebody met it"


@pytest.mark.timeout(900)
def test_connections_to_database_and_store_that_are_cut_cost_time_alone(
    postgres_url: str, s3_settings: Bucket, tmp_path: Path
) -> None:
    database = make_url(postgres_url)
    with door(database.port or 0) as to_database, door(int(s3_settings.endpoint.rpartition(":")[2])) as to_store:
        stores = {name: f"s3://{s3_settings.name}/{name}" for name in ("sources", "archive", "quarantine")}
        ledger = database.set(port=to_database.port).render_as_string(hide_password=False)
        settings = {"ledger": ledger, "s3_endpoint": f"http://127.0.0.1:{to_store.port}"} | stores
        plan = Plan(str(tmp_path / "campaign"), settings, documents=DOCUMENTS, poison=0, processes=3, seconds=SECONDS)
        over = threading.Event()
        cut: list[int] = []

        def cut_connections() -> None:
            while not Path(plan.folder, SUBMITTED).exists() and not over.is_set():
                time.sleep(0.02)
            while len(cut) < BURSTS and not over.wait(0.2):
                if count := to_database.reset() + to_store.reset():
                    cut.append(count)

        cutter = threading.Thread(target=cut_connections)
        cutter.start()
        try:
            report = run(plan)
        finally:
            over.set()
            cutter.join()
    print(report, cut)
    assert report.wrong == []
    assert len(cut) == BURSTS
