"""Months asked for in the web page's way, while what runs them is killed: each ends once, whole, and by itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import psutil
import pytest
from sqlalchemy import func, select

from asset_pipeline.archive.fsck import prove
from asset_pipeline.defs.assets.shared import CATALOGUE, GALLERY, IMAGES, MANIFESTS, SOURCES
from asset_pipeline.defs.jobs import PARTITION_TAG
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import attempts, jobs, receipts
from asset_pipeline_tests.crash.served import LOCATION, Served, kill, served, wait_for, worker_of
from asset_pipeline_tests.small_documents import fresh_settings, noisy_pdf

LONG = bool(os.environ.get("ASSET_PIPELINE_TESTS_LONG"))
MONTHS = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)][: 24 if LONG else 1]
DOCUMENTS, PAGES, SIDE = 4, 6, 600
"""Of a month that is long enough to be killed in the middle."""

MOST_AT_ONCE = 4
"""``max_concurrent_runs`` in dagster.yaml."""

ASSETS = [SOURCES, IMAGES, MANIFESTS, GALLERY, CATALOGUE]
SPEEDY = {
    "ASSET_PIPELINE_LEASE_SECONDS": "2",
    "ASSET_PIPELINE_WORKERS": "1",
    "ASSET_PIPELINE_PAGES_PER_UNIT": "1",  # many units, so that there is a long middle of a month
}

BACKFILL = """
mutation($months: [String!], $assets: [AssetKeyInput!]) {
  launchPartitionBackfill(backfillParams: {partitionNames: $months, assetSelection: $assets}) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}
"""
STATE = """
query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }
"""
LOADED = "{ repositoriesOrError { ... on RepositoryConnection { nodes { location { name } } } } }"


@pytest.fixture
def inst(tmp_path: Path) -> Iterator[Installation]:
    with open_installation(fresh_settings(tmp_path)) as opened:
        yield opened


def submit(inst: Installation, months: list[str], busy: Collection[str]) -> None:
    """One small document a month, in ``busy`` months several that take some seconds; all of them admitted."""
    for month in months:
        folder = Path(inst.settings.store_address("inbox"), "city", month)
        folder.mkdir(parents=True)
        for number in range(DOCUMENTS if month in busy else 1):
            noisy_pdf(folder / f"{number}.pdf", PAGES, side=(SIDE if month in busy else 20) + number)
        admit_month(inst, month, lambda: datetime.now(UTC), wait=True)


def count(inst: Installation, table: Any, *where: Any) -> int:
    with inst.ledger.read() as conn:
        return int(conn.execute(select(func.count()).select_from(table).where(*where)).scalar_one())


def archived(inst: Installation, month: str) -> int:
    return count(inst, receipts, receipts.c.job_id.in_(select(jobs.c.job_id).where(jobs.c.month == month)))


def launch(dagster: Served, months: list[str]) -> str:
    """Ask for ``months`` as the page does, and see that a daemon takes it up; the id of the backfill."""

    def loaded() -> bool:
        with suppress(OSError):
            nodes = dagster.ask(LOADED)["repositoriesOrError"].get("nodes", [])
            return [node["location"]["name"] for node in nodes] == [LOCATION]
        return False

    wait_for(loaded, "the pages have loaded the code")
    told = dagster.ask(BACKFILL, months=months, assets=[{"path": [asset]} for asset in ASSETS])
    assert told["launchPartitionBackfill"]["__typename"] == "LaunchBackfillSuccess", told
    dagster.start_daemon()
    return str(told["launchPartitionBackfill"]["backfillId"])


def worker_in_the_middle(dagster: Served, inst: Installation, month: str) -> int:
    """The process of the month's run, when it has archived something and not all."""

    def look() -> int:
        pids = [worker_of(run) for run in dagster.runs_of(month)]
        return pids[-1] if pids and archived(inst, month) else 0

    pid = int(wait_for(look, f"a run archives pictures of {month}", 900))
    assert archived(inst, month) < DOCUMENTS * PAGES, "it is in the middle"
    return pid


def statuses(dagster: Served, month: str) -> list[str]:
    return [run.status.value for run in dagster.runs_of(month)]


def assert_whole(inst: Installation, documents: int) -> None:
    """Every document is read and every picture archived once, and the archive bears that out."""
    assert count(inst, jobs, jobs.c.state == "succeeded") == count(inst, jobs) == documents
    assert count(inst, receipts) == documents * PAGES
    assert count(inst, attempts, attempts.c.ended_at.is_(None)) == 0
    proof = prove(inst)
    assert proof.sound and proof.manifests == documents


@pytest.mark.timeout(2400)
def test_a_backfill_runs_each_month_once_and_again_only_where_its_process_was_killed(inst: Installation) -> None:
    killed = {MONTHS[0]: "worker"} | ({MONTHS[5]: "worker", MONTHS[11]: "code"} if LONG else {})
    submit(inst, MONTHS, busy=killed)
    running = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED])
    done = dg.RunsFilter(statuses=[dg.DagsterRunStatus.SUCCESS])
    began, most = time.monotonic(), 0
    with served(inst.settings.home, SPEEDY, web_server=LONG) as dagster:
        backfill = launch(dagster, MONTHS)

        def green() -> bool:
            nonlocal most
            most = max(most, len(dagster.instance.get_runs(running)))
            return set(MONTHS) <= {run.tags.get(PARTITION_TAG) for run in dagster.instance.get_runs(done)}

        for month, what in killed.items():
            pid = worker_in_the_middle(dagster, inst, month)
            if what == "worker":
                kill(pid, signal.SIGKILL)
            else:
                dagster.kill("code")
                dagster.start_code()
        wait_for(green, "all months are green", 1800)
        seconds = time.monotonic() - began
        if LONG:  # the daemon looks every 30 seconds
            wait_for(lambda: state_of(dagster, backfill) != "REQUESTED", "the backfill ends", 120)
            assert state_of(dagster, backfill) == "COMPLETED_SUCCESS"
        found = {month: statuses(dagster, month) for month in MONTHS}
        materialized = dagster.instance.get_materialized_partitions(dg.AssetKey(MANIFESTS))
    print(f"{len(MONTHS)} months, {len(killed)} kills, at most {most} runs at once, {seconds:.1f} s")
    assert found == {month: ["FAILURE", "SUCCESS"] if month in killed else ["SUCCESS"] for month in MONTHS}
    assert materialized == set(MONTHS)
    assert most <= MOST_AT_ONCE
    assert_whole(inst, len(MONTHS) + len(killed) * (DOCUMENTS - 1))


def state_of(dagster: Served, backfill: str) -> str:
    return str(dagster.ask(STATE, id=backfill)["partitionBackfillOrError"]["status"])


if LONG:  # minutes

    @pytest.mark.timeout(900)
    def test_a_run_that_hangs_is_ended_and_its_month_goes_on_by_itself_in_another_run(inst: Installation) -> None:
        (month,) = MONTHS[:1]
        submit(inst, [month], busy=[month])
        with served(inst.settings.home, SPEEDY, max_runtime_seconds=40) as dagster:
            launch(dagster, [month])
            worker = psutil.Process(worker_in_the_middle(dagster, inst, month))
            for child in worker.children(recursive=True):
                if any("extraction.sandbox" in word for word in child.cmdline()):  # a decoder, or what forks them
                    kill(child.pid, signal.SIGSTOP)
            wait_for(lambda: dagster.runs_of(month)[0].is_finished, "the run is ended", 300)
            wait_for(lambda: not worker.is_running(), "its process ends", 60)
            ended = archived(inst, month)
            wait_for(lambda: statuses(dagster, month)[-1] == "SUCCESS", "the month runs again, unasked", 300)
            first, *others = dagster.runs_of(month)
            print(statuses(dagster, month), f"{ended} of {DOCUMENTS * PAGES} pictures by the first run")
        assert {run.root_run_id for run in others} == {first.run_id}, "they are retries of the first"
        assert ended < DOCUMENTS * PAGES
        assert_whole(inst, DOCUMENTS)

    @pytest.mark.timeout(600)
    def test_a_run_whose_code_server_alone_is_killed_goes_on_and_ends_its_month(inst: Installation) -> None:
        (month,) = MONTHS[:1]
        submit(inst, [month], busy=[month])
        with served(inst.settings.home, SPEEDY) as dagster:
            launch(dagster, [month])
            worker_in_the_middle(dagster, inst, month)
            kill(dagster.process("code"), signal.SIGKILL)
            wait_for(lambda: statuses(dagster, month) == ["SUCCESS"], "the month ends", 300)
        assert_whole(inst, DOCUMENTS)
