"""Workers that stall, lose leases, retry and complete at once, over one month, on each database."""

from __future__ import annotations

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import completion, publication, reading, turns, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.next_action import SUSPECT_AFTER
from asset_pipeline.ledger.schema import audit_events, receipts
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import LEASE, MONTH, NOW, claimable, extraction, page, placement, rows, start

PAGES = 3
DOCUMENTS = 6


def test_six_restless_workers_settle_a_month_with_one_receipt_a_picture_and_no_gap(ledger: Ledger) -> None:
    job_ids = [start(ledger, f"{n}.pdf", PAGES, 1, collection=f"collection-{n % 2}") for n in range(DOCUMENTS)]

    deaths: Counter[str] = Counter()

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for step in range(400):
            # Each worker's clock runs ahead by its own pace, so that leases run out under others.
            now = NOW + LEASE * step * chance.random()
            # As the loop over a month does it: what lost workers is worked alone, when nothing else waits.
            waiting = claimable(ledger, now) or claimable(ledger, now, which=turns.next_suspects)[:1]
            with ledger.read() as conn:
                if not units.busy(conn, MONTH, now)[0]:
                    return
            for unit_id in waiting[: chance.randint(1, 3)]:
                attempt(unit_id, chance, now)
        raise AssertionError("the month did not settle")

    def attempt(unit_id: str, chance: random.Random, now: datetime) -> None:
        with ledger.begin() as tx:
            claim = units.claim_unit(tx, unit_id, "host:1:1", LEASE, now)
        if claim is None:
            return  # another was first
        if chance.random() < 0.2 and deaths[unit_id] < SUSPECT_AFTER:
            deaths[unit_id] += 1  # no more than an innocent may see: more would make it a dead letter
            return
        try:
            with ledger.begin() as tx:
                if chance.random() < 0.2:
                    units.retry_unit(tx, claim, Reason.STORAGE_UNAVAILABLE, now, now)
                    return
                number = claim.first_page
                placed = [placement(number, n, f"picture {n}") for n in range(1, 5)]
                chance.shuffle(placed)
                result = extraction(claim, [page(number, *placed)])
                publication.publish_unit(tx, claim, result, publication.Timings(), 0, now)
        except LeaseLost:
            with ledger.begin() as tx:
                units.note_return(tx, claim, now)
            return
        with ledger.begin() as tx:
            completion.complete_job(tx, claim.job_id, now)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, range(6)))

    with ledger.read() as conn:
        summary = reading.month_summary(conn, MONTH)
    assert summary.outcomes == {"succeeded": DOCUMENTS}
    assert (summary.archived, summary.collapsed) == (DOCUMENTS * 4, DOCUMENTS * 4 * (PAGES - 1))
    assert (summary.objects, summary.unaccounted) == (4, 0)
    assert len(rows(ledger, receipts)) == DOCUMENTS * PAGES * 4
    events = rows(ledger, audit_events)
    assert [row["seq"] for row in events] == list(range(1, len(events) + 1))
    kinds = Counter((row["type"], row["job_id"]) for row in events)
    assert {kinds["unit_published", job_id] for job_id in job_ids} == {PAGES}
    assert {kinds["job_succeeded", job_id] for job_id in job_ids} == {1}
