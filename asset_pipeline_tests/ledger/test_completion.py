from __future__ import annotations

import json
from itertools import permutations

import pytest
from sqlalchemy import delete, update

from asset_pipeline.account import collapse_repeats
from asset_pipeline.errors import IntegrityError
from asset_pipeline.ledger import jobs, reading, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import audit_events, pages, placements
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.turns import next_turns
from asset_pipeline.model import Flag, Page, Status
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    NOW,
    claim,
    claim_next,
    complete,
    page,
    placement,
    publish,
    rows,
    start,
)


def document() -> list[Page]:
    return [
        page(1, placement(1, 1, "logo"), placement(1, 2, None)),
        page(2, placement(2, 1, "logo"), placement(2, 2, "tern", flags=[Flag.CLIPPED])),
        page(3, placement(3, 1, "tern", flags=[Flag.MIRRORED]), placement(3, 2, "gull"), placement(3, 3, "gull")),
    ]


def work(ledger: Ledger, job_id: str, read: list[Page], order) -> None:
    for number in order:
        taken = claim(ledger, f"{job_id}-{number - 1:05d}")
        assert taken is not None
        publish(ledger, taken, read[number - 1])


@pytest.mark.parametrize("order", list(permutations([1, 2, 3])))
def test_repeats_are_the_same_in_whatever_order_page_ranges_were_read(ledger: Ledger, order: tuple[int, ...]) -> None:
    job_id = start(ledger, pages=3, per_unit=1)
    work(ledger, job_id, document(), order)
    assert complete(ledger, job_id)
    with ledger.read() as conn:
        found = reading.pages_of(conn, job_id)
    assert found == collapse_repeats(document())
    assert [[row.status.value for row in each.placements] for each in found] == [
        ["archived", "quarantined"],
        ["collapsed", "archived"],
        ["collapsed", "archived", "collapsed"],
    ]
    assert found[2].placements[0].flags == [Flag.MIRRORED, Flag.REPEAT]


def test_success_is_recorded_with_the_sums_of_the_document(ledger: Ledger) -> None:
    job_id = start(ledger, pages=3, per_unit=1)
    work(ledger, job_id, document(), (1, 2, 3))
    assert complete(ledger, job_id)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"], job["finished_at"], job["pages"]) == ("succeeded", None, NOW, 3)
    event = rows(ledger, audit_events)[-1]
    payload = json.loads(event["payload"])
    assert event["type"] == "job_succeeded"
    sums = {name: payload[name] for name in ("pages", "drawn", "archived", "collapsed", "quarantined")}
    assert sums == {"pages": 3, "drawn": 7, "archived": 3, "collapsed": 3, "quarantined": 1}


def test_completing_twice_is_completing_once(ledger: Ledger) -> None:
    job_id = start(ledger)
    publish(ledger, claim_next(ledger), page(1, placement(1)))
    assert complete(ledger, job_id)
    before = rows(ledger, jobs_table), rows(ledger, audit_events)
    assert not complete(ledger, job_id)
    assert (rows(ledger, jobs_table), rows(ledger, audit_events)) == before


def test_job_waits_for_all_of_its_units(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2, per_unit=1)
    assert not complete(ledger, job_id)
    publish(ledger, claim_next(ledger), page(1))
    assert not complete(ledger, job_id)
    second = claim_next(ledger)
    assert not complete(ledger, job_id)
    publish(ledger, second, page(2))
    assert complete(ledger, job_id)


def test_running_job_without_units_is_not_complete(ledger: Ledger) -> None:
    job_id = start(ledger, pages=0)
    assert not complete(ledger, job_id)


@pytest.mark.parametrize(
    "damage",
    [
        delete(placements).where(placements.c.page == 2),
        update(pages).where(pages.c.page == 2).values(drawn=9),
        update(pages).where(pages.c.page == 2).values(drawn=None),
        delete(pages).where(pages.c.page == 3),
        update(jobs_table).values(pages=4),
        update(jobs_table).values(pages=2),
    ],
)
def test_job_with_a_page_that_is_not_accounted_for_never_succeeds(ledger: Ledger, damage) -> None:
    job_id = start(ledger, pages=3, per_unit=1)
    work(ledger, job_id, document(), (1, 2, 3))
    with ledger.begin() as tx:
        tx.execute(damage)
    before = rows(ledger, placements), rows(ledger, pages)
    with pytest.raises(IntegrityError, match="does not add up"):
        complete(ledger, job_id)
    assert (rows(ledger, placements), rows(ledger, pages)) == before
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"]) == ("dead_lettered", "internal_error")
    assert not complete(ledger, job_id)


def test_page_whose_drawing_could_not_be_counted_is_accounted_for_by_its_reason(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2)
    unread = Page(page=2, drawn=None, reason=Reason.CONTENT_BUDGET_EXCEEDED)
    publish(ledger, claim_next(ledger), page(1, placement(1)), unread)
    assert complete(ledger, job_id)


def test_pages_that_planning_could_not_count_are_counted_at_the_end(ledger: Ledger) -> None:
    job_id = start(ledger, pages=0)
    with ledger.begin() as tx:
        tx.execute(update(jobs_table).values(pages=None))
        units.plan_units(tx, job_id, [(1, None)])
    publish(ledger, claim_next(ledger), page(1), page(2))
    assert complete(ledger, job_id)
    assert rows(ledger, jobs_table)[0]["pages"] == 2


@pytest.mark.parametrize(
    ("reason", "state", "event"),
    [
        (Reason.MALFORMED_DOCUMENT, "failed_permanently", "job_failed"),
        (Reason.DECODER_CRASHED, "dead_lettered", "job_dead_lettered"),
        (Reason.STORAGE_UNAVAILABLE, "dead_lettered", "job_dead_lettered"),
        (Reason.RECEIPT_CONFLICT, "dead_lettered", "job_dead_lettered"),
        (Reason.INTERNAL_ERROR, "dead_lettered", "job_dead_lettered"),
    ],
)
def test_failed_unit_ends_its_job_by_the_reason(ledger: Ledger, reason: Reason, state: str, event: str) -> None:
    job_id = start(ledger, pages=3, per_unit=1)
    publish(ledger, claim_next(ledger), page(1, placement(1)))
    failing = claim_next(ledger)
    with ledger.begin() as tx:
        units.fail_unit(tx, failing, reason, NOW)
    assert complete(ledger, job_id)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"]) == (state, reason.value)
    assert rows(ledger, audit_events)[-1]["type"] == event
    with ledger.read() as conn:
        assert next_turns(conn, job["month"], NOW, 1) == []


def test_queued_job_is_not_completed(ledger: Ledger) -> None:
    job_id = start(ledger)
    with ledger.begin() as tx:
        jobs.refuse_job(tx, job_id, Reason.ENCRYPTED, NOW)
    assert not complete(ledger, job_id)


def test_only_status_and_repeat_flag_of_repeats_change(ledger: Ledger) -> None:
    job_id = start(ledger, pages=3, per_unit=1)
    work(ledger, job_id, document(), (1, 2, 3))
    before = {row["name"]: dict(row) for row in rows(ledger, placements)}
    complete(ledger, job_id)
    for row in rows(ledger, placements):
        old = before[row["name"]]
        if row["status"] == Status.COLLAPSED:
            old = old | {"status": "collapsed", "detail": old["detail"] | {"flags": row["detail"]["flags"]}}
            assert row["detail"]["flags"][-1] == "repeat"
        assert dict(row) == old
