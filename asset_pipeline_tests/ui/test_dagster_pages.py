"""A month from the partition dialog to its gallery, as a media editor does it: in Dagster's own pages, in a browser.

While that goes on, somebody drops documents into another month, and one into a wrong place; the sensor takes them. All
of it is one test, because Dagster takes long to start and the sensor looks only every 30 seconds.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

import asset_pipeline
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import reading
from asset_pipeline.settings import load_settings
from asset_pipeline_tests.ui.browsing import keep_picture
from asset_pipeline_tests.ui.conftest import FIXTURES
from asset_pipeline_tests.ui.drops import LARGE, SMALL, WRONG_PLACE, drop_all

ROOT = Path(asset_pipeline.__file__).parents[1]
MONTH, DROPPED_IN = "2026-10", "2026-09"
SETTLE_SECONDS = 5
JOB = "/locations/asset_pipeline.definitions/jobs/monthly_archive"
PATIENCE = 180
"""Seconds for anything that starts processes; a busy machine takes long."""


@dataclass(frozen=True, slots=True)
class Served:
    """Dagster's pages over an installation."""

    address: str
    home: Path


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """`asset-pipeline ui` over the made-up reports of one month. The browser first: without one nothing is started."""
    place = tmp_path_factory.mktemp("served")
    for collection in FIXTURES.iterdir():
        shutil.copytree(collection / MONTH, place / ".asset_pipeline" / "inbox" / collection.name / MONTH)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ours = ("ASSET_PIPELINE_", "DAGSTER")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    with (place / "log").open("wb") as log:
        running = subprocess.Popen(
            [sys.executable, "-m", "asset_pipeline.cli", "ui", "--port", str(port)],
            cwd=place,
            env=kept
            | {"PYTHONPATH": str(ROOT), "ASSET_PIPELINE_WORKERS": "2"}
            | {"ASSET_PIPELINE_SETTLE_SECONDS": str(SETTLE_SECONDS)},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(port)
        yield Served(f"http://127.0.0.1:{port}", place / ".asset_pipeline")
        assert "DEBUG" not in (place / "log").read_text("utf-8"), "each event of each run in the terminal"
    finally:
        _end(running)
        for large in [path for path in place.rglob("*") if path.is_file() and path.stat().st_size >= LARGE]:
            large.unlink()


def _end(running: subprocess.Popen[bytes]) -> None:
    """Politely, then its whole group."""
    for number, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 30)):
        with suppress(ProcessLookupError):
            os.killpg(running.pid, number)
        with suppress(subprocess.TimeoutExpired):
            running.wait(seconds)


def _wait_until_it_answers(port: int) -> None:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/server_info", timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    raise AssertionError("Dagster's pages did not come up")


def launch(page: Page, served: Served) -> str:
    """Materialize the month from the partition dialog; how the id of the run begins, as the page tells it."""
    page.goto(served.address + JOB)
    page.get_by_role("button", name="Materialize all").click()
    page.get_by_placeholder("ex: 2024-01").fill(MONTH)
    page.keyboard.press("Tab")
    expect(page.get_by_text("1 partition", exact=True)).to_be_visible()
    keep_picture(page, "dagster-month")
    page.get_by_role("button", name="Launch 1 run").click()
    told = page.get_by_text(re.compile("Launched run [0-9a-f]{8}"))
    expect(told).to_be_visible()
    found = re.search("[0-9a-f]{8}", told.inner_text())
    assert found
    return found[0]


RUNS = "{ runsOrError { ... on Runs { results { runId status tags { key value } } } } }"
TICKS = """{ sensorOrError(sensorSelector: {repositoryLocationName: "asset_pipeline.definitions",
  repositoryName: "__repository__", sensorName: "new_uploads"}) {
  ... on Sensor { sensorState { ticks(limit: 50) { timestamp endTimestamp status skipReason runIds } } } } }"""


def ask(page: Page, served: Served, query: str) -> Any:
    """The only part of Dagster's answer to ``query``."""
    answer = page.request.post(f"{served.address}/graphql", data={"query": query}).json()
    (part,) = answer["data"].values()
    return part


def wait_for_green(page: Page, served: Served, run: str) -> None:
    """Until the run whose id begins with ``run`` has ended well; the asset's pages say in progress before."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        states = {row["runId"][:8]: row["status"] for row in ask(page, served, RUNS)["results"]}
        assert states[run] not in ("FAILURE", "CANCELED")
        if states[run] == "SUCCESS":
            return
        time.sleep(1)
    raise AssertionError("the run did not end")


def wait_for_two_ticks(page: Page, served: Served, settled: float) -> list[dict[str, Any]]:
    """All ticks of the sensor up to the second one after the moment ``settled``, which may still be to come."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        ticks = ask(page, served, TICKS)["sensorState"]["ticks"]
        done = sorted((tick for tick in ticks if tick["endTimestamp"]), key=lambda tick: tick["timestamp"])
        if len(after := [at for at, tick in enumerate(done) if tick["timestamp"] >= settled]) >= 2:
            return done[: after[1] + 1]
        time.sleep(1)
    raise AssertionError("the sensor does not look")


@pytest.mark.timeout(900)
def test_a_month_is_run_from_the_partition_dialog_while_the_sensor_takes_another(
    browser: Browser, served: Served
) -> None:
    drop_all(served.home / "inbox", DROPPED_IN)
    settled = time.time() + SETTLE_SECONDS
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(PATIENCE * 1000)
    expect.set_options(timeout=PATIENCE * 1000)
    try:
        run = launch(page, served)
        wait_for_green(page, served, run)

        page.goto(f"{served.address}/assets/validated_images?view=partitions&partition={MONTH}")
        expect(page.get_by_text("pictures_archived", exact=True)).to_be_visible()
        shown = figures(page)
        known = told_by_ledger(served)
        assert {name: shown[name] for name in known} == known
        keep_picture(page, "dagster-counts")
        page.get_by_text("[Show Markdown]").first.click()
        expect(page.locator("img[src^='data:image']").first).to_be_visible()
        keep_picture(page, "dagster-contact-sheet")

        page.goto(f"{served.address}/assets/validated_images?view=checks&checkDetail=nothing_quarantined")
        expect(page.get_by_text("When it fails: ").first).to_be_visible()
        expect(page.get_by_text("pictures are quarantined").first).to_be_visible()
        keep_picture(page, "dagster-checks")

        taken_by_the_sensor(page, served, settled)

        page.goto(f"{served.address}/assets/image_gallery?view=partitions&partition={MONTH}")
        expect(page.get_by_text(f"galleries/{MONTH}/index.html").first).to_be_visible()
        compare_with_gallery(page, served, shown)
    finally:
        expect.set_options(timeout=5_000)
        page.close()


def taken_by_the_sensor(page: Page, served: Served, settled: float) -> None:
    """Both documents that were dropped are archived, and the page of the month says where to move the third."""
    ticks = wait_for_two_ticks(page, served, settled)
    assert {tick["status"] for tick in ticks} <= {"SUCCESS", "SKIPPED"}
    asked = {run for tick in ticks for run in tick["runIds"]}
    month = {"key": "dagster/partition", "value": DROPPED_IN}
    runs = [row["runId"] for row in ask(page, served, RUNS)["results"] if month in row["tags"]]
    assert runs and set(runs) <= asked, "two ticks after it has settled at the latest, and once"
    for run in runs:
        wait_for_green(page, served, run[:8])
    with open_installation(load_settings(home=served.home)) as inst, inst.ledger.read() as conn:
        documents = reading.documents_of_month(conn, DROPPED_IN)
    dropped = sorted((row.source_bytes, row.state, row.archived, row.quarantined) for row in documents)
    assert dropped == [(SMALL, "succeeded", 0, 0), (LARGE, "succeeded", 1, 1)]

    page.set_viewport_size({"width": 1600, "height": 900})
    page.goto(f"{served.address}/assets/source_documents?view=partitions&partition={DROPPED_IN}")
    for told in (WRONG_PLACE, "Move the file to collection/YYYY-MM/name."):
        expect(page.get_by_text(told).first).to_be_in_viewport(ratio=1)
    keep_picture(page, "dagster-wrong-place")
    page.set_viewport_size({"width": 1400, "height": 900})


def told_by_ledger(served: Served) -> dict[str, str]:
    """What the page must say."""
    with open_installation(load_settings(home=served.home)) as inst, inst.ledger.read() as conn:
        summary = reading.month_summary(conn, MONTH)
    assert summary.quarantined > 0
    counts = {"documents": summary.documents, "pages": summary.pages, "pictures_archived": summary.archived}
    counts |= {"pictures_collapsed": summary.collapsed, "pictures_quarantined": summary.quarantined}
    return {name: str(count) for name, count in counts.items()}


def figures(page: Page) -> dict[str, str]:
    """Names and values of the metadata that the page shows, whatever it is laid out with."""
    return dict(re.findall(r"^(\w+)\s+([\d,]+)\s*$", page.inner_text("body"), re.MULTILINE))


def compare_with_gallery(page: Page, served: Served, shown: dict[str, str]) -> None:
    """The gallery that the run made says what Dagster says."""
    page.goto((served.home / "archive" / "galleries" / MONTH / "index.html").as_uri())
    page.wait_for_selector(".card img")
    for ours, theirs in {
        "documents": "documents",
        "pages": "pages",
        "archived": "pictures_archived",
        "collapsed": "pictures_collapsed",
        "decorative": "pictures_decorative",
        "quarantined": "pictures_quarantined",
        "derived": "pictures_derived",
    }.items():
        assert page.inner_text(f"#total-{ours}") == shown[theirs], ours
    keep_picture(page, "gallery")
    page.locator(".card", has_text="Map 1").click()
    expect(page.locator(".sheet > img")).to_be_visible()
    page.evaluate("document.querySelector('.sheet > img').decode()")
    keep_picture(page, "gallery-page")
    page.keyboard.press("Escape")
    page.select_option("#status", "quarantined")
    page.locator(".card", has_text="Map 2").click()
    keep_picture(page, "gallery-quarantined")
    page.keyboard.press("Escape")
    page.click("text=Clear")
    page.set_viewport_size({"width": 390, "height": 800})
    page.evaluate("scrollTo(0, 0)")
    expect(page.locator(".card img").first).to_be_in_viewport()
    page.emulate_media(color_scheme="dark")
    keep_picture(page, "gallery-phone")
    assert json.loads((served.home / "archive" / "galleries" / MONTH / "without_preview.json").read_text()) == {}
