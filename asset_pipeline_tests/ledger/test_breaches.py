"""Budgets of stages: what breaks one, whose fault it is, and that attempt and event both say so."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from asset_pipeline.ledger import breaches, publication, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import attempts, audit_events
from asset_pipeline.policy import Objectives
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import NOW, claim_next, extraction, page, placement, rows, start

BUDGETS = Objectives(decode_seconds=2, fetch_seconds=1, publish_seconds=1, queue_seconds=10, usual_pixels=1000)


@pytest.mark.parametrize(
    ("milliseconds", "pixels", "reason", "expected"),
    [
        ({"fetch": 1000, "decode": 2000, "publish": 1000, "queue": 10_000}, 10_000, None, {}),
        ({"decode": 2001}, 1000, None, {"decode": "capacity"}),
        ({"decode": 2001}, 1001, None, {"decode": "input_shape"}),
        ({"queue": 10_001, "publish": 1001}, 1001, None, {"queue": "capacity", "publish": "input_shape"}),
        ({"fetch": 1001}, None, Reason.STORAGE_UNAVAILABLE, {"fetch": "capacity"}),
        ({"decode": 5}, None, Reason.MEMORY_EXCEEDED, {"decode": "input_shape"}),
        ({"decode": 300_000}, None, Reason.DEADLINE_EXCEEDED, {"decode": "input_shape"}),
        ({"queue": None, "decode": None}, None, None, {}),
    ],
)
def test_a_slow_stage_is_capacity_unless_the_document_explains_it(milliseconds, pixels, reason, expected) -> None:
    assert breaches.breaches(BUDGETS, milliseconds, pixels, reason) == expected


def test_what_is_written_is_read_again() -> None:
    found = {"queue": "capacity", "decode": "input_shape"}
    assert breaches.read(breaches.written(found)) == found
    assert breaches.written({}) is None
    assert breaches.read(None) == {}


def test_a_breach_stands_on_the_attempt_and_on_the_event_that_tells_its_reason(ledger: Ledger) -> None:
    start(ledger, pages=1)
    claim = claim_next(ledger, NOW + timedelta(hours=2))
    with ledger.begin() as tx:
        units.retry_unit(tx, claim, Reason.DEADLINE_EXCEEDED, NOW, NOW, decode_ms=300_000.0)
    (attempt,) = rows(ledger, attempts)
    assert attempt["breach"] == "queue=capacity,decode=input_shape"
    assert attempt["decode_ms"] == 300_000
    event = _last_event(ledger)
    assert (event["reason"], event["breach"]) == (
        "deadline_exceeded",
        {"queue": "capacity", "decode": "input_shape"},
    )


def test_a_published_unit_records_its_pixels_and_a_kept_budget_says_nothing(ledger: Ledger) -> None:
    start(ledger, pages=1)
    claim = claim_next(ledger)
    with ledger.begin() as tx:
        publication.publish_unit(
            tx, claim, extraction(claim, [page(1, placement(1))]), publication.Timings(1, 2, 3), 500, NOW
        )
    (attempt,) = rows(ledger, attempts)
    assert (attempt["pixels"], attempt["breach"]) == (60 * 40, None)
    assert "breach" not in _last_event(ledger)


def test_only_the_first_attempt_is_charged_with_the_time_in_the_queue(ledger: Ledger) -> None:
    start(ledger, pages=1)
    first = claim_next(ledger)
    with ledger.begin() as tx:
        units.retry_unit(tx, first, Reason.STORAGE_UNAVAILABLE, NOW, NOW)
    second = claim_next(ledger, NOW + timedelta(days=1))
    with ledger.begin() as tx:
        units.retry_unit(tx, second, Reason.STORAGE_UNAVAILABLE, NOW, NOW)
    assert [row["breach"] for row in rows(ledger, attempts)] == [None, None]


def _last_event(ledger: Ledger) -> dict:
    body = json.loads(rows(ledger, audit_events)[-1]["payload"])
    return body.get("facts", body)
