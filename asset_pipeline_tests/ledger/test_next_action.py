from __future__ import annotations

from datetime import timedelta

import pytest

from asset_pipeline.ledger.next_action import (
    DECODER_LOST,
    MAX_TRIES,
    Action,
    Attempt,
    backoff,
    final_state,
    next_action,
)
from asset_pipeline.reasons import Reason, is_transient

TRANSIENT = [reason for reason in Reason if is_transient(reason)]


def test_validated_and_stored_is_acknowledged() -> None:
    assert next_action(Attempt(validated=True, stored=True), tries=0) is Action.ACK
    assert next_action(Attempt(validated=True, stored=True), tries=99) is Action.ACK


def test_failed_validation_is_quarantined_and_never_retried() -> None:
    assert next_action(Attempt(validated=False, stored=False), tries=0) is Action.QUARANTINE
    assert next_action(Attempt(False, False, Reason.MALFORMED_DOCUMENT), tries=0) is Action.QUARANTINE


@pytest.mark.parametrize("reason", TRANSIENT)
@pytest.mark.parametrize("validated", [True, False])
def test_transient_failure_is_tried_four_times_more_and_then_given_up(reason: Reason, validated: bool) -> None:
    attempt = Attempt(validated=validated, stored=False, reason=reason)
    actions = [next_action(attempt, tries) for tries in range(MAX_TRIES + 2)]
    assert actions == [Action.RETRY] * 4 + [Action.DEAD_LETTER] * 2


@pytest.mark.parametrize("reason", sorted(DECODER_LOST))
def test_second_lost_decoder_ends_the_unit_whatever_budget_is_left(reason: Reason) -> None:
    attempt = Attempt(validated=False, stored=False, reason=reason)
    assert next_action(attempt, tries=0, lost_decoders=0) is Action.RETRY
    assert next_action(attempt, tries=0, lost_decoders=1) is Action.DEAD_LETTER


def test_lost_decoders_do_not_count_against_a_store_that_is_away() -> None:
    assert next_action(Attempt(False, False, Reason.STORAGE_UNAVAILABLE), tries=1, lost_decoders=1) is Action.RETRY


@pytest.mark.parametrize("reason", [reason for reason in Reason if not is_transient(reason)])
@pytest.mark.parametrize("validated", [True, False])
def test_whatever_is_not_on_the_allowlist_is_never_retried(reason: Reason, validated: bool) -> None:
    assert next_action(Attempt(validated, stored=False, reason=reason), tries=0) is not Action.RETRY


def test_contradiction_and_own_defect_go_to_the_operator_not_to_the_uploader() -> None:
    for reason in (Reason.SOURCE_HASH_MISMATCH, Reason.RECEIPT_CONFLICT, Reason.INTERNAL_ERROR):
        assert next_action(Attempt(False, False, reason), tries=0) is Action.DEAD_LETTER
        assert final_state(reason) == "dead_lettered"
    assert final_state(Reason.STORAGE_UNAVAILABLE) == "dead_lettered"
    assert final_state(Reason.ENCRYPTED) == "failed_permanently"


def test_stored_but_unvalidated_after_a_permanent_failure_is_not_lost_silently() -> None:
    assert next_action(Attempt(validated=True, stored=False, reason=Reason.POLICY_DENIED), 0) is Action.DEAD_LETTER


def test_pauses_grow_to_several_minutes_in_all() -> None:
    pauses = [backoff(tries, jitter=lambda: 0.5).total_seconds() for tries in range(4)]
    assert pauses == [5, 15, 45, 135]
    assert backoff(1000, jitter=lambda: 1) <= timedelta(minutes=15)


def test_jitter_spreads_pauses_by_a_quarter_either_way() -> None:
    assert backoff(0, jitter=lambda: 0).total_seconds() == 3.75
    assert backoff(0, jitter=lambda: 1).total_seconds() == 6.25
    assert len({backoff(2) for _ in range(20)}) > 1


def test_providers_hint_is_never_undercut() -> None:
    hint = timedelta(seconds=30)
    assert backoff(0, hint, jitter=lambda: 0) == hint
    assert hint < backoff(0, hint, jitter=lambda: 1) <= hint * 1.25
