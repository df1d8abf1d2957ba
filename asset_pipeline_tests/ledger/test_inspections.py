"""One worker at a time looks at a queued job, and one that vanishes while it looks is counted."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import inspections, turns
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.next_action import MAX_LOST_WORKERS, SUSPECT_AFTER
from asset_pipeline.ledger.requeue import requeue_job
from asset_pipeline.ledger.schema import audit_events, jobs
from asset_pipeline_tests.ledger.making import LEASE, MONTH, NOW, queue, rows, start

LATER = NOW + LEASE


def look(ledger: Ledger, job_id: str, now: datetime = NOW) -> inspections.Look | None:
    with ledger.begin() as tx:
        return inspections.claim_inspection(tx, job_id, LEASE, now)


def end(ledger: Ledger, held: inspections.Look) -> bool:
    with ledger.begin() as tx:
        return inspections.end_inspection(tx, held)


def to_inspect(ledger: Ledger, now: datetime = NOW, which=turns.next_turns) -> list[str]:
    with ledger.read() as conn:
        return [turn.job_id for turn in which(conn, MONTH, now, 100) if turn.unit_id is None]


def test_two_workers_never_inspect_one_document_at_once(ledger: Ledger) -> None:
    job_id = queue(ledger)
    first = look(ledger, job_id)
    assert first is not None
    assert look(ledger, job_id, LATER - timedelta(seconds=1)) is None
    assert to_inspect(ledger) == []
    with ledger.begin() as tx:
        inspections.renew_inspection(tx, first, LEASE, NOW + timedelta(seconds=30))
    assert to_inspect(ledger, LATER) == []
    assert end(ledger, first)
    assert to_inspect(ledger) == [job_id], "given back, it is anybody's at once"


def test_a_document_that_takes_along_whoever_opens_it_is_a_dead_letter(ledger: Ledger) -> None:
    job_id, moment = queue(ledger), NOW
    for _ in range(MAX_LOST_WORKERS):
        assert look(ledger, job_id, moment) is not None
        moment += LEASE
    assert look(ledger, job_id, moment) is None
    (job,) = rows(ledger, jobs)
    assert (job["state"], job["reason"]) == ("dead_lettered", "worker_lost")
    assert [row["type"] for row in rows(ledger, audit_events)][-1] == "job_dead_lettered"
    with ledger.begin() as tx:
        assert requeue_job(tx, job_id, moment)
    assert to_inspect(ledger, moment) == [job_id], "with a fresh budget"


def test_what_was_opened_when_workers_vanished_is_opened_alone(ledger: Ledger) -> None:
    near, other, moment = queue(ledger, "near.pdf"), queue(ledger, "other.pdf"), NOW
    for _ in range(SUSPECT_AFTER + 1):
        assert look(ledger, near, moment) is not None
        moment += LEASE
    assert to_inspect(ledger, moment) == [other]
    assert to_inspect(ledger, moment, turns.next_suspects) == [near]


def test_a_worker_that_wakes_late_changes_nothing_and_was_not_lost(ledger: Ledger) -> None:
    job_id = queue(ledger)
    late, holder = look(ledger, job_id), look(ledger, job_id, LATER)
    assert late is not None and holder is not None
    assert rows(ledger, jobs)[0]["lost_workers"] == 1
    with pytest.raises(LeaseLost), ledger.begin() as tx:
        inspections.renew_inspection(tx, late, LEASE, LATER)
    assert not end(ledger, late)
    assert rows(ledger, jobs)[0]["lost_workers"] == 0
    assert end(ledger, holder)


def test_what_has_begun_goes_first_in_its_collection_and_the_smallest_collection_has_two_turns(ledger: Ledger) -> None:
    waiting = [queue(ledger, f"{number}.pdf", collection="bulk") for number in range(3)]
    begun = start(ledger, "begun.pdf", pages=2, per_unit=1, collection="bulk")
    desk = {queue(ledger, f"{number}.pdf", collection="desk") for number in range(3)}
    with ledger.read() as conn:
        found = turns.next_turns(conn, MONTH, NOW, 4)
        everything = turns.next_turns(conn, MONTH, NOW, 100)
    assert {turn.ident for turn in found[:2]} | {found[3].ident} == desk
    assert [turn.ident for turn in everything if turn.unit_id] == [found[2].ident, f"{begun}-00001"]
    assert {turn.job_id for turn in everything[5:]} == set(waiting)
