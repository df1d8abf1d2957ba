from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import jobs, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import attempts, audit_events
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    LEASE,
    MONTH,
    NOW,
    claim,
    claim_next,
    claimable,
    page,
    placement,
    publish,
    queue,
    rows,
    start,
)

LATER = NOW + LEASE


def busy(ledger: Ledger, now=NOW):
    with ledger.read() as conn:
        return units.busy(conn, MONTH, now)


def test_job_gets_its_units_once_however_often_it_is_planned(ledger: Ledger) -> None:
    job_id = start(ledger, pages=5, per_unit=2)
    with ledger.begin() as tx:
        assert units.plan_units(tx, job_id, [(1, 1), (2, 2), (3, 3), (4, 4), (5, 5)]) == 0
    ranges = [(row["first_page"], row["last_page"]) for row in rows(ledger, units_table)]
    assert ranges == [(1, 2), (3, 4), (5, 5)]


def test_job_that_has_ended_gets_no_units(ledger: Ledger) -> None:
    job_id = queue(ledger)
    with ledger.begin() as tx:
        jobs.refuse_job(tx, job_id, Reason.ENCRYPTED, NOW)
        assert units.plan_units(tx, job_id, [(1, None)]) == 0


def test_claim_names_all_that_a_worker_needs(ledger: Ledger) -> None:
    job_id = start(ledger, pages=3)
    (job,) = rows(ledger, jobs_table)
    taken = claim_next(ledger)
    assert taken == units.Claim(
        unit_id=f"{job_id}-00000",
        job_id=job_id,
        fence=1,
        first_page=1,
        last_page=3,
        source_hash=job["source_hash"],
        engine="pdf",
        extractor_version=job["extractor_version"],
        policy_digest=job["policy_digest"],
        lost_decoders=0,
        tries=0,
    )


def test_attempt_is_recorded_before_anything_is_published(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    (attempt,) = rows(ledger, attempts)
    assert (attempt["unit_id"], attempt["fence"], attempt["ended_at"]) == (taken.unit_id, 1, None)
    event = rows(ledger, audit_events)[-1]
    payload = json.loads(event["payload"])
    assert event["type"] == "attempt_started"
    assert payload["policy_digest"] == taken.policy_digest
    assert payload["source_hash"] == taken.source_hash


def claim_next_of(ledger: Ledger) -> units.Claim:
    start(ledger)
    return claim_next(ledger)


def test_eight_threads_that_claim_one_unit_find_one_winner(ledger: Ledger) -> None:
    job_id = start(ledger)
    with ThreadPoolExecutor(8) as threads:
        taken = list(threads.map(lambda n: claim(ledger, f"{job_id}-00000", worker=f"w{n}"), range(8)))
    winners = [one for one in taken if one is not None]
    assert [one.fence for one in winners] == [1]
    assert len(rows(ledger, attempts)) == 1


def test_four_processes_share_the_units_of_a_month_without_overlap(
    ledger: Ledger, ledger_url: str, tmp_path: Path
) -> None:
    start(ledger, pages=24, per_unit=1)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _CLAIM_ALL, ledger_url, MONTH, str(tmp_path / "keys")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    taken = [unit for worker in workers for unit in json.loads(worker.communicate(timeout=60)[0])]
    assert sorted(taken) == [row["unit_id"] for row in rows(ledger, units_table)]


_CLAIM_ALL = """
import json, os, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from asset_pipeline.ledger.database import open_ledger
from asset_pipeline.ledger.signing import Recorder
from asset_pipeline.ledger.turns import next_turns
from asset_pipeline.ledger.units import claim_unit
ledger = open_ledger(sys.argv[1], recorder=Recorder(Path(sys.argv[3])))
now, mine = datetime(2026, 9, 30, 12, tzinfo=UTC), []
with ledger.read() as conn:
    waiting = [turn.unit_id for turn in next_turns(conn, sys.argv[2], now, 1000)]
for unit in waiting:
    with ledger.begin() as tx:
        if claim_unit(tx, unit, str(os.getpid()), timedelta(seconds=90), now):
            mine.append(unit)
ledger.close()
print(json.dumps(mine))
"""


def test_held_unit_is_nobody_elses_until_its_lease_runs_out(ledger: Ledger) -> None:
    first = claim_next_of(ledger)
    assert claimable(ledger) == []
    assert claim(ledger, first.unit_id, LATER - timedelta(seconds=1)) is None
    assert claimable(ledger, LATER) == [first.unit_id]
    second = claim(ledger, first.unit_id, LATER)
    assert second is not None and second.fence == 2
    outcomes = [(row["fence"], row["outcome"], row["reason"]) for row in rows(ledger, attempts)]
    assert outcomes == [(1, "fenced", "lease_conflict"), (2, None, None)]


def test_renewed_lease_holds_longer(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    with ledger.begin() as tx:
        units.renew_lease(tx, taken, LEASE, NOW + timedelta(seconds=30))
    assert claimable(ledger, LATER) == []
    assert claimable(ledger, LATER + timedelta(seconds=30)) == [taken.unit_id]


@pytest.mark.parametrize("write", ["renew", "retry", "fail", "publish"])
def test_late_worker_loses_its_lease_and_changes_nothing(ledger: Ledger, write: str) -> None:
    late = claim_next_of(ledger)
    holder = claim(ledger, late.unit_id, LATER, worker="holder")
    before = {table: rows(ledger, table) for table in (units_table, jobs_table, attempts, audit_events)}
    with pytest.raises(LeaseLost):
        _write(ledger, late, write)
    assert {table: rows(ledger, table) for table in before} == before
    assert holder is not None
    _write(ledger, holder, write)


def _write(ledger: Ledger, held: units.Claim, write: str) -> None:
    if write == "publish":
        publish(ledger, held, page(1, placement(1)))
        return
    with ledger.begin() as tx:
        if write == "renew":
            units.renew_lease(tx, held, LEASE, LATER)
        elif write == "retry":
            units.retry_unit(tx, held, Reason.STORAGE_UNAVAILABLE, LATER, LATER)
        else:
            units.fail_unit(tx, held, Reason.STORAGE_UNAVAILABLE, LATER)


def test_lease_that_ran_out_but_that_nobody_took_over_is_still_good(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    assert publish(ledger, taken, page(1, placement(1)), now=LATER + timedelta(hours=1)).receipts_added == 1


def test_fences_of_two_page_ranges_do_not_touch_each_other(ledger: Ledger) -> None:
    start(ledger, pages=2, per_unit=1)
    one, other = claim_next(ledger), claim_next(ledger)
    claim(ledger, one.unit_id, LATER)
    with ledger.begin() as tx:
        units.renew_lease(tx, other, LEASE, LATER)


def test_retried_unit_waits_for_its_pause_and_spends_its_budget(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    due = NOW + timedelta(seconds=15)
    with ledger.begin() as tx:
        units.retry_unit(tx, taken, Reason.STORAGE_UNAVAILABLE, due, NOW)
    assert claimable(ledger) == []
    assert claim(ledger, taken.unit_id, NOW) is None
    again = claim(ledger, taken.unit_id, due)
    assert again is not None
    assert (again.fence, again.tries, again.lost_decoders) == (2, 1, 0)
    assert rows(ledger, jobs_table)[0]["tries"] == 1
    assert rows(ledger, attempts)[0]["outcome"] == "retried"


def test_provider_that_asks_to_wait_costs_no_budget(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    with ledger.begin() as tx:
        units.retry_unit(tx, taken, Reason.PROVIDER_BUSY, NOW, NOW, spends_budget=False)
    assert claim_next(ledger).tries == 0
    assert rows(ledger, jobs_table)[0]["tries"] == 0


@pytest.mark.parametrize("reason", [Reason.DECODER_CRASHED, Reason.DEADLINE_EXCEEDED, Reason.MEMORY_EXCEEDED])
def test_lost_decoder_is_counted_on_its_unit(ledger: Ledger, reason: Reason) -> None:
    taken = claim_next_of(ledger)
    with ledger.begin() as tx:
        units.retry_unit(tx, taken, reason, NOW, NOW)
    assert claim_next(ledger).lost_decoders == 1


def test_deadlines_are_not_extended_by_a_retry(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    (before,) = rows(ledger, jobs_table)
    with ledger.begin() as tx:
        units.retry_unit(tx, taken, Reason.STORAGE_UNAVAILABLE, NOW, NOW)
    (after,) = rows(ledger, jobs_table)
    assert (after["working_until"], after["archive_until"]) == (before["working_until"], before["archive_until"])


@pytest.mark.parametrize(
    ("reason", "outcome"), [(Reason.MALFORMED_DOCUMENT, "refused"), (Reason.DECODER_CRASHED, "dead_lettered")]
)
def test_failed_unit_is_never_claimed_again(ledger: Ledger, reason: Reason, outcome: str) -> None:
    taken = claim_next_of(ledger)
    with ledger.begin() as tx:
        units.fail_unit(tx, taken, reason, NOW)
    assert claimable(ledger, NOW + timedelta(days=1)) == []
    assert claim(ledger, taken.unit_id, NOW + timedelta(days=1)) is None
    assert rows(ledger, attempts)[0]["outcome"] == outcome
    assert rows(ledger, audit_events)[-1]["type"] == "attempt_ended"


def test_done_unit_is_never_claimed_again(ledger: Ledger) -> None:
    taken = claim_next_of(ledger)
    publish(ledger, taken, page(1, placement(1)))
    assert claim(ledger, taken.unit_id, NOW + timedelta(days=1)) is None


def test_units_of_a_job_that_ended_are_not_offered(ledger: Ledger) -> None:
    job_id = start(ledger)
    with ledger.begin() as tx:
        jobs.dead_letter_job(tx, job_id, Reason.INTERNAL_ERROR, NOW)
    assert claimable(ledger) == []
    assert claim(ledger, f"{job_id}-00000") is None
    assert busy(ledger) == (0, None)


def test_bulk_import_of_one_collection_does_not_starve_another(ledger: Ledger) -> None:
    """Collections take turns, the smallest first, then the documents within one, then page ranges in order."""
    long = start(ledger, "long.pdf", pages=3, per_unit=1, collection="annual-reports")
    many = [start(ledger, f"{n}.pdf", collection="annual-reports") for n in range(3)]
    small = start(ledger, "small.pdf", collection="field-notes")
    press = start(ledger, "press.pdf", pages=2, per_unit=1, collection="press-desk")
    order = claimable(ledger)
    assert order[:2] == [f"{small}-00000", f"{press}-00000"]
    bulk = [unit for unit in order if unit[:26] in (long, *many)]
    assert {unit[:26] for unit in bulk[:4]} == {long, *many}
    assert [unit for unit in order if unit.startswith(long)] == [f"{long}-{n:05d}" for n in range(3)]
    assert order[3] == f"{press}-00001"


def test_other_months_are_not_offered(ledger: Ledger) -> None:
    start(ledger, month="2026-08")
    assert claimable(ledger) == []
    assert busy(ledger) == (0, None)


def test_busy_tells_when_to_ask_again(ledger: Ledger) -> None:
    assert busy(ledger) == (0, None)
    start(ledger, pages=3, per_unit=1)
    assert busy(ledger) == (3, NOW)
    first, second, third = (claim_next(ledger) for _ in range(3))
    assert busy(ledger) == (3, LATER)
    with ledger.begin() as tx:
        units.retry_unit(tx, first, Reason.STORAGE_UNAVAILABLE, NOW + timedelta(seconds=15), NOW)
    assert busy(ledger) == (3, NOW + timedelta(seconds=15))
    publish(ledger, second, page(2))
    with ledger.begin() as tx:
        units.fail_unit(tx, third, Reason.MALFORMED_DOCUMENT, NOW)
    assert busy(ledger, LATER) == (1, LATER)
