"""Workers that die and stall at every transition: nothing is lost, nothing is published twice, only poison is dead."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from asset_pipeline.failpoints import Failpoint
from asset_pipeline.ledger import next_action
from asset_pipeline_tests.crash.campaign import STOPPABLE, Plan, even, run, run_all
from asset_pipeline_tests.crash.mutants import MUTANTS

LONG = bool(os.environ.get("ASSET_PIPELINE_TESTS_LONG"))
SIZE = (
    {"documents": 1000, "kills": 500, "stops": 50, "at_each": 20, "poison": 3, "poison_to_open": 2}
    if LONG
    else {"documents": 100, "kills": 60, "stops": 10, "at_each": 3, "poison": 1, "poison_to_open": 0}
)
MARGIN = 1.4
"""What is planned, to what is demanded: the last of a plan find no work left to be killed at."""


@pytest.mark.timeout(1600)
def test_killed_and_stalled_workers_lose_nothing_and_publish_nothing_twice(tmp_path: Path) -> None:
    documents, kills, stops = SIZE["documents"], SIZE["kills"], SIZE["stops"]
    plan = Plan(
        folder=str(tmp_path),
        settings={},
        documents=documents,
        poison=SIZE["poison"],
        poison_to_open=SIZE["poison_to_open"],
        kills=even(round(kills * MARGIN)),
        stops=even(round(stops * MARGIN), STOPPABLE),
        processes=6,
        seconds=1500 if LONG else 240,
    )
    report = run(plan)
    print(report)
    assert report.wrong == []
    assert set(report.kills) == set(Failpoint) and min(report.kills.values()) >= SIZE["at_each"]
    assert sum(report.kills.values()) >= kills and sum(report.stops.values()) >= stops
    assert report.facts["returned"] > 0, "a stalled worker woke after another had ended its unit"


def test_a_document_that_kills_whoever_opens_it_is_a_dead_letter_and_takes_no_other_along(tmp_path: Path) -> None:
    settings = {"lease_seconds": 0.4}
    report = run(Plan(str(tmp_path), settings, documents=6, poison=0, poison_to_open=1, processes=2, seconds=120))
    assert report.wrong == [], "dead as worker_lost, with a manifest that says so; the five others are archived"
    assert report.deaths == next_action.MAX_LOST_WORKERS


def test_the_campaign_notices_each_of_five_faults_and_nothing_without_them(tmp_path: Path) -> None:
    claimed, written = ({"stops": {point.value: 2}} for point in (Failpoint.CLAIMED, Failpoint.ONCE_WRITTEN))
    uncommitted = {"kills": {Failpoint.UNIT_BEFORE_COMMIT.value: 2}}
    sweeping = {"stops": {Failpoint.OBJECT_LINKED.value: 2}, "sweep_at_stops": True}
    together = claimed | uncommitted | {"stops": claimed["stops"] | written["stops"], "forgotten": 3}
    misfortunes: list[tuple[str, dict[str, Any]]] = [
        ("", together),
        ("", sweeping),
        ("no_fence", claimed),
        ("no_unique_receipt", {"forgotten": 3}),
        ("overwrite", written),
        ("outside_the_transaction", uncommitted),
        ("sweep_without_lock", sweeping),
    ]
    plans = [
        Plan(str(tmp_path / str(number)), {}, documents=8, poison=0, processes=2, mutant=mutant, **misfortune)
        for number, (mutant, misfortune) in enumerate(misfortunes)
    ]
    sound, sweeping_alone, *faulty = run_all(plans)
    for report in (sound, sweeping_alone):
        assert (report.wrong, report.facts["retried"]) == ([], 0), "and no document paid with a try"
    assert [plan.mutant for plan, report in zip(plans[2:], faulty, strict=True) if report.wrong] == list(MUTANTS)[1:]
