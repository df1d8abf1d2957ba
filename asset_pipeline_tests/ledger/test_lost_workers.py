"""Workers that vanish: bounded for the document that makes them vanish, harmless for those beside it."""

from __future__ import annotations

from datetime import datetime, timedelta

from asset_pipeline.ledger import turns, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.next_action import MAX_LOST_WORKERS, SUSPECT_AFTER
from asset_pipeline.ledger.schema import attempts
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline_tests.ledger.making import (
    LEASE,
    NOW,
    claim,
    claimable,
    complete,
    page,
    placement,
    publish,
    rows,
    start,
)


def lose_workers(ledger: Ledger, unit_id: str, times: int, moment: datetime = NOW) -> datetime:
    """Claim the unit ``times`` times and never end an attempt; the moment at which the last lease has run out."""
    for _ in range(times):
        assert claim(ledger, unit_id, moment) is not None
        moment += LEASE
    return moment


def test_a_document_that_takes_every_worker_along_is_a_dead_letter_in_the_end(ledger: Ledger) -> None:
    job_id = start(ledger)
    unit_id = f"{job_id}-00000"
    moment = lose_workers(ledger, unit_id, MAX_LOST_WORKERS)
    assert claim(ledger, unit_id, moment) is None
    assert complete(ledger, job_id, moment)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"]) == ("dead_lettered", "worker_lost")
    assert [row["outcome"] for row in rows(ledger, attempts)] == ["fenced"] * MAX_LOST_WORKERS
    (unit,) = rows(ledger, units_table)
    assert (unit["tries"], unit["lost_decoders"]) == (0, 0), "crashes are counted apart from failures"


def test_what_was_at_hand_when_workers_vanished_is_worked_alone(ledger: Ledger) -> None:
    near, other = start(ledger, "near.pdf"), start(ledger, "other.pdf")
    moment = lose_workers(ledger, f"{near}-00000", SUSPECT_AFTER)
    assert claim(ledger, f"{near}-00000", moment) is not None
    moment += LEASE
    assert claimable(ledger, moment) == [f"{other}-00000"]
    assert claimable(ledger, moment, which=turns.next_suspects) == [f"{near}-00000"]


def test_workers_that_wake_late_were_not_lost_however_many_they_are(ledger: Ledger) -> None:
    job_id = start(ledger)
    moment, late = NOW, claim(ledger, f"{job_id}-00000")
    for _ in range(2 * MAX_LOST_WORKERS):
        moment += LEASE
        holder = claim(ledger, f"{job_id}-00000", moment)
        assert late is not None and holder is not None
        for _ in range(2):
            with ledger.begin() as tx:
                units.note_return(tx, late, moment)
        late = holder
    (unit,) = rows(ledger, units_table)
    assert unit["lost_workers"] == 0
    returned = {row["fence"]: row["returned_at"] for row in rows(ledger, attempts)}
    assert returned[1] == NOW + LEASE
    assert returned[unit["fence"]] is None


def test_a_unit_that_ends_well_after_lost_workers_is_published_like_any_other(ledger: Ledger) -> None:
    job_id = start(ledger)
    moment = lose_workers(ledger, f"{job_id}-00000", MAX_LOST_WORKERS - 1)
    last = claim(ledger, f"{job_id}-00000", moment)
    assert last is not None
    publish(ledger, last, page(1, placement(1)), now=moment + timedelta(seconds=1))
    assert complete(ledger, job_id)
