"""The way back for a job that ended without a result."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import jobs, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.requeue import WITHOUT_RESULT, dead_letters, requeue_job, requeue_readers
from asset_pipeline.ledger.schema import audit_events, receipts
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    MONTH,
    NOW,
    claim,
    complete,
    finish,
    page,
    placement,
    publish,
    queue,
    rows,
    sha,
    start,
)

LATER = NOW + timedelta(hours=1)


def requeue(ledger: Ledger, job_id: str, *states: str) -> bool:
    with ledger.begin() as tx:
        return requeue_job(tx, job_id, LATER, *([states] if states else []))


def half_done(ledger: Ledger) -> str:
    """A dead letter of two units: one delivered, one failed."""
    job_id = start(ledger, pages=2, per_unit=1)
    first, second = claim(ledger, f"{job_id}-00000"), claim(ledger, f"{job_id}-00001")
    assert first is not None and second is not None
    publish(ledger, first, page(1, placement(1)))
    with ledger.begin() as tx:
        units.fail_unit(tx, second, Reason.DECODER_CRASHED, NOW)
    assert complete(ledger, job_id)
    return job_id


def test_a_requeued_job_goes_on_where_it_was_with_a_fresh_budget(ledger: Ledger) -> None:
    job_id = half_done(ledger)
    before, (dead,) = rows(ledger, receipts), rows(ledger, jobs_table)
    assert requeue(ledger, job_id)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"], job["finished_at"]) == ("queued", None, None)
    assert (job["working_until"], job["archive_until"]) == (dead["working_until"], dead["archive_until"])
    done, again = rows(ledger, units_table)
    assert (done["state"], again["state"]) == ("done", "queued")
    assert (again["fence"], again["tries"], again["lost_decoders"], again["lost_workers"]) == (1, 0, 0, 0)
    with ledger.begin() as tx:
        assert jobs.start_job(tx, job_id, pages=2, encrypted="none", now=LATER)
        assert units.plan_units(tx, job_id, [(1, 1), (2, 2)]) == 0
    taken = claim(ledger, f"{job_id}-00001", LATER)
    assert taken is not None and taken.fence == 2
    publish(ledger, taken, page(2, placement(2, picture="gull")), now=LATER)
    assert complete(ledger, job_id, LATER)
    assert rows(ledger, jobs_table)[0]["state"] == "succeeded"
    assert [row for row in rows(ledger, receipts) if row["asset_index"].startswith("page-001")] == before


def test_a_requeue_is_recorded_with_what_the_job_ended_for(ledger: Ledger) -> None:
    assert requeue(ledger, half_done(ledger))
    event = rows(ledger, audit_events)[-1]
    assert event["type"] == "job_requeued"
    assert "decoder_crashed" in event["payload"]
    assert "dead_lettered" in json.dumps(event["payload"])


@pytest.mark.parametrize("end", ["succeeded", "queued", "running", "failed_permanently"])
def test_only_dead_letters_are_requeued_unless_a_refused_job_is_named(ledger: Ledger, end: str) -> None:
    made = {
        "succeeded": lambda: finish(ledger, "tides.pdf", page(1)),
        "queued": lambda: queue(ledger),
        "running": lambda: start(ledger),
        "failed_permanently": lambda: refused(ledger),
    }
    job_id = made[end]()
    events = rows(ledger, audit_events)
    assert not requeue(ledger, job_id)
    assert rows(ledger, jobs_table)[0]["state"] == end
    assert rows(ledger, audit_events) == events
    assert requeue(ledger, job_id, *WITHOUT_RESULT) == (end == "failed_permanently")


def refused(ledger: Ledger) -> str:
    job_id = queue(ledger)
    with ledger.begin() as tx:
        jobs.refuse_job(tx, job_id, Reason.ENCRYPTED, NOW)
    return job_id


def test_a_worker_of_the_first_life_changes_nothing_in_the_second(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2, per_unit=1)
    slow, failing = claim(ledger, f"{job_id}-00000"), claim(ledger, f"{job_id}-00001")
    assert slow is not None and failing is not None
    with ledger.begin() as tx:
        units.fail_unit(tx, failing, Reason.DECODER_CRASHED, NOW)
    assert complete(ledger, job_id)
    assert requeue(ledger, job_id)
    with pytest.raises(LeaseLost):
        publish(ledger, slow, page(1, placement(1)))
    assert rows(ledger, receipts) == []


def test_all_of_a_month_leaves_out_what_something_else_took_the_place_of(ledger: Ledger) -> None:
    replaced = half_done(ledger)
    (job,) = rows(ledger, jobs_table)
    queue(ledger, extractor_version="pdf/2+policy-0123456789abcdef", correlation_id=job["correlation_id"])
    with ledger.begin() as tx:
        tx.execute(jobs_table.update().where(jobs_table.c.job_id != replaced).values(queued_at=LATER))
    lone = queue(ledger, "lone.pdf")
    with ledger.begin() as tx:
        jobs.dead_letter_job(tx, lone, Reason.WORKER_LOST, NOW)
    with ledger.read() as conn:
        assert dead_letters(conn, MONTH) == [lone]


def test_source_that_is_right_again_requeues_those_who_died_of_it_only(ledger: Ledger) -> None:
    shared = sha("shared")
    one, other = (queue(ledger, name, source_hash=shared) for name in ("a.pdf", "b.pdf"))
    crashed = queue(ledger, "c.pdf", source_hash=shared)
    with ledger.begin() as tx:
        for job_id in (one, other):
            jobs.dead_letter_job(tx, job_id, Reason.SOURCE_HASH_MISMATCH, NOW)
        jobs.dead_letter_job(tx, crashed, Reason.DECODER_CRASHED, NOW)
    with ledger.begin() as tx:
        assert requeue_readers(tx, shared, LATER) == 2
    states = {row["job_id"]: row["state"] for row in rows(ledger, jobs_table)}
    assert states == {one: "queued", other: "queued", crashed: "dead_lettered"}
