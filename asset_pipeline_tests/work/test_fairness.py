"""A few documents beside a bulk import: claims, turns and ends are the ledger's, only the time of the work is made up.

The loop over the month is the real one. Its executor does what ``plan_job`` and ``work_unit`` do in the ledger, on a
clock of its own, so that hours of work pass in a second.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, select

from asset_pipeline.installation import Installation
from asset_pipeline.ledger import inspections, jobs, publication, units
from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.identity import job_id_of
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.schema import source_documents
from asset_pipeline.ledger.signing import Recorder
from asset_pipeline.policy import Policy
from asset_pipeline.work.executor import Call, NextCalls
from asset_pipeline.work.month import MonthLoop
from asset_pipeline.work.plan import Planned, plan_job
from asset_pipeline.work.unit import Outcome, UnitOutcome
from asset_pipeline_tests.ledger.making import MONTH, NOW, VERSION, extraction, page, placement, sha

INSPECTION, UNIT, LEASE = timedelta(seconds=0.2), timedelta(seconds=1), timedelta(hours=1)
BULK, SMALL, WORKERS = 2_000, 10, 2


class Simulation:
    """An executor of ``WORKERS`` workers, and the clock that they live by, until the small collection is done."""

    def __init__(self, ledger: Ledger, arrives: timedelta) -> None:
        self.now = NOW
        self._ledger = ledger
        self._arrives = NOW + arrives
        self._stopping = threading.Event()

    def run(
        self, next_calls: NextCalls[Planned | UnitOutcome], stopping: threading.Event
    ) -> Iterator[Planned | UnitOutcome]:
        under_way: list[tuple[datetime, int, object, str]] = []
        number = 0
        while not stopping.is_set():
            if self._arrives and self.now >= self._arrives:
                queue(self._ledger, "desk", SMALL, self.now)
                self._arrives = None
            for task, ident in next_calls(WORKERS - len(under_way)) if len(under_way) < WORKERS else ():
                number += 1
                claim, takes = self._begin((task, ident))
                heapq.heappush(under_way, (self.now + takes, number, claim, ident))
            if not under_way:
                return
            self.now, _, claim, ident = heapq.heappop(under_way)
            yield self._end(claim)
            if not self._arrives and not self._left():
                stopping.set()

    def _begin(self, call: Call) -> tuple[object, timedelta]:
        task, ident = call
        with self._ledger.begin() as tx:
            if task is plan_job:
                return inspections.claim_inspection(tx, ident, LEASE, self.now), INSPECTION
            return units.claim_unit(tx, ident, "simulated", LEASE, self.now), UNIT

    def _end(self, claim: object) -> Planned | UnitOutcome:
        with self._ledger.begin() as tx:
            if isinstance(claim, inspections.Look):
                assert inspections.end_inspection(tx, claim)
                jobs.start_job(tx, claim.job_id, pages=1, encrypted="none", now=self.now)
                units.plan_units(tx, claim.job_id, [(1, 1)])
                return Planned(claim.job_id, None)
            assert isinstance(claim, units.Claim)
            result = extraction(claim, [page(1, placement(1))])
            publication.publish_unit(tx, claim, result, publication.Timings(), 0, self.now)
        return UnitOutcome(claim.unit_id, Outcome.PUBLISHED, claim.job_id)

    def _left(self) -> bool:
        query = select(jobs_table.c.job_id).where(jobs_table.c.collection == "desk", jobs_table.c.finished_at.is_(None))
        with self._ledger.read() as conn:
            return conn.execute(query.limit(1)).first() is not None


def queue(ledger: Ledger, collection: str, count: int, now: datetime) -> None:
    """Queue that many documents at once, as admission leaves them."""
    names = [f"{collection} {number}" for number in range(count)]
    with ledger.begin() as tx:
        jobs.record_policy(tx, Policy(), now)
        facts = {"bytes": 1000, "media_type": "application/pdf", "stored": 1, "admitted_at": now}
        tx.execute(insert(source_documents), [facts | {"sha256": sha(name)} for name in names])
        same = {
            "correlation_id": "c" * 26,
            "month": MONTH,
            "collection": collection,
            "revision": 1,
            "engine": "pdf",
            "extractor_version": VERSION,
            "policy_digest": Policy().digest,
            "state": "queued",
            "tries": 0,
            "queued_at": now,
            "working_until": now + timedelta(days=7),
            "archive_until": now + timedelta(days=3650),
        }
        tx.execute(
            insert(jobs_table),
            [
                same
                | {"job_id": job_id_of(name), "job_key": name, "report_id": sha(name)[:26], "source_hash": sha(name)}
                for name in names
            ],
        )


def waits(inst: Installation, folder: Path, bulk: int, arrives: timedelta = timedelta(0)) -> list[float]:
    """Seconds from the queue to the end, of each document of the small collection, which comes in ``arrives`` later."""
    ledger = open_ledger(f"sqlite:///{folder}/{bulk}-{arrives}.db", recorder=Recorder(folder / "keys"))
    if bulk:
        queue(ledger, "bulk", bulk, NOW)
    simulated = Simulation(ledger, arrives)
    MonthLoop(replace(inst, ledger=ledger), MONTH, simulated, clock=lambda: simulated.now).settle()
    query = select(jobs_table.c.queued_at, jobs_table.c.finished_at).where(jobs_table.c.collection == "desk")
    with ledger.read() as conn:
        found = sorted((ended - began).total_seconds() for began, ended in conn.execute(query))
    ledger.close()
    assert len(found) == SMALL
    return found


def p95(values: list[float]) -> float:
    return values[round(0.95 * (len(values) - 1))]


def test_ten_documents_beside_two_thousand_wait_at_most_twice_as_long_as_alone(
    inst: Installation, tmp_path: Path
) -> None:
    alone = p95(waits(inst, tmp_path, 0))
    at_once = p95(waits(inst, tmp_path, BULK))
    in_the_middle = p95(waits(inst, tmp_path, BULK, arrives=timedelta(seconds=30)))
    assert alone == pytest.approx(SMALL * (INSPECTION + UNIT).total_seconds() / WORKERS, abs=1)
    assert at_once <= 2 * alone
    assert in_the_middle <= 2 * alone
