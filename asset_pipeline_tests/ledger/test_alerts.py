"""Alerts: each occasion is told once a channel, also when a channel is away or two processes look at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from asset_pipeline.ledger.alerts import (
    CLAIM,
    Alert,
    claim_alerts,
    forget_alerts,
    give_back,
    mark_sent,
    rearm,
    record_alerts,
)
from asset_pipeline.ledger.database import Ledger
from asset_pipeline_tests.ledger.making import NOW

RUN = Alert("run:1", "failed_run", "A run of 2026-05 failed.", "2026-05")
CHECK = Alert("check:images:whole:2026-05:ab", "failed_check", "A check failed.", "2026-05")


def _record(ledger: Ledger, *found: Alert, channels=("webhook",)) -> None:
    with ledger.begin() as tx:
        record_alerts(tx, found, channels, NOW)


def _claim(ledger: Ledger, channel: str = "webhook", now=NOW) -> list[Alert]:
    with ledger.begin() as tx:
        return claim_alerts(tx, channel, 100, now)


def test_an_occasion_that_was_told_is_not_told_again(ledger: Ledger) -> None:
    for expected in ([RUN], []):
        _record(ledger, RUN)
        taken = _claim(ledger)
        assert taken == expected
        with ledger.begin() as tx:
            mark_sent(tx, "webhook", taken, NOW)


def test_each_channel_is_told(ledger: Ledger) -> None:
    _record(ledger, RUN, CHECK, channels=("webhook", "mail"))
    assert set(_claim(ledger, "mail")) == {RUN, CHECK}
    assert set(_claim(ledger, "webhook")) == {RUN, CHECK}


def test_what_a_channel_did_not_take_waits_for_the_next_look(ledger: Ledger) -> None:
    _record(ledger, RUN)
    taken = _claim(ledger)
    assert _claim(ledger) == [], "somebody is delivering it"
    with ledger.begin() as tx:
        give_back(tx, "webhook", taken)
    assert _claim(ledger) == [RUN]


def test_the_claim_of_a_process_that_died_is_taken_over(ledger: Ledger) -> None:
    _record(ledger, RUN)
    assert _claim(ledger) == [RUN]
    assert _claim(ledger, now=NOW + CLAIM - timedelta(seconds=1)) == []
    assert _claim(ledger, now=NOW + CLAIM) == [RUN]


def test_eight_processes_that_look_at_once_tell_it_once(ledger: Ledger) -> None:
    def look(_: int) -> list[Alert]:
        _record(ledger, RUN, CHECK)
        return _claim(ledger)

    with ThreadPoolExecutor(8) as threads:
        told = [alert.key for found in threads.map(look, range(8)) for alert in found]
    assert sorted(told) == sorted([RUN.key, CHECK.key])


def test_an_occasion_that_is_over_may_come_again(ledger: Ledger) -> None:
    _record(ledger, CHECK, RUN)
    with ledger.begin() as tx:
        mark_sent(tx, "webhook", [CHECK, RUN], NOW)
        rearm(tx, "check:images:whole:2026-05:")
    _record(ledger, CHECK, RUN)
    assert _claim(ledger) == [CHECK]


def test_old_alerts_are_forgotten_and_undelivered_ones_are_not(ledger: Ledger) -> None:
    _record(ledger, CHECK, RUN)
    with ledger.begin() as tx:
        mark_sent(tx, "webhook", [CHECK], NOW)
        forget_alerts(tx, NOW + timedelta(days=90))
    _record(ledger, CHECK)
    assert _claim(ledger) == [CHECK, RUN]
