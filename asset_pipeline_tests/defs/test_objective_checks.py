"""Checks against what the policy holds the work to: they fail past its thresholds, fail no run and cost no step."""

from __future__ import annotations

from datetime import timedelta

import dagster as dg
import pytest

from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.defs.objective_checks import begun_in_time, nothing_past_deadline, validated_at_first_attempt
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger import units
from asset_pipeline.policy import Objectives, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline_tests.ledger.making import MONTH, NOW, claim_next, start
from asset_pipeline_tests.small_documents import drop_document

NAMES = {"validated_at_first_attempt", "begun_in_time", "nothing_past_deadline"}


def _answers(instance: dg.DagsterInstance, run_id: str) -> dict[str, bool]:
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    found = [record.event_log_entry.asset_check_evaluation for record in records]
    return {check.check_name: check.passed for check in found if check is not None and check.check_name in NAMES}


def test_a_month_that_went_well_passes(settings: Settings, instance: dg.DagsterInstance) -> None:
    drop_document(settings, "a.pdf", [1])
    (result,) = materialize_months(settings, ["2026-05"], instance=instance)
    assert _answers(instance, result.run_id) == dict.fromkeys(NAMES, True)


def test_a_month_past_the_thresholds_of_the_policy_fails_its_checks_and_not_its_run(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    settings.policy_file.write_text("objectives: {queue_seconds: 0.000001}\n")
    drop_document(settings, "a.pdf", [1])
    (result,) = materialize_months(settings, ["2026-05"], instance=instance)
    assert result.success
    answers = _answers(instance, result.run_id)
    assert (answers["begun_in_time"], answers["nothing_past_deadline"]) == (False, True)


def test_too_many_second_attempts_fail_the_first_signal(settings: Settings) -> None:
    with open_installation(settings) as inst:
        start(inst.ledger)
        claim = claim_next(inst.ledger)
        with inst.ledger.begin() as tx:
            units.retry_unit(tx, claim, Reason.STORAGE_UNAVAILABLE, NOW, NOW)
        answer = _asked(inst, validated_at_first_attempt, Objectives())
        assert not answer.passed
        assert answer.metadata["retried_storage_unavailable"].value == "1"
        assert _asked(inst, validated_at_first_attempt, Objectives(first_attempt_share=0)).passed


def test_a_month_without_work_breaks_nothing(settings: Settings) -> None:
    with open_installation(settings) as inst:
        assert _asked(inst, validated_at_first_attempt, Objectives()).passed
        assert _asked(inst, begun_in_time, Objectives()).passed


def test_what_is_kept_too_long_fails_the_third_signal(settings: Settings) -> None:
    with open_installation(settings) as inst:
        start(inst.ledger)
        with inst.ledger.read() as conn:
            assert nothing_past_deadline(conn, MONTH, Objectives(), NOW).passed
            late = nothing_past_deadline(conn, MONTH, Objectives(), NOW + timedelta(days=3651))
            assert not late.passed
            assert late.metadata["bytes"].value == "1000"
            assert nothing_past_deadline(conn, MONTH, Objectives(overdue_bytes=1000), NOW + timedelta(days=3651)).passed


def test_what_the_work_is_held_to_changes_no_result() -> None:
    strict = Policy(objectives=Objectives(decode_seconds=1))
    assert strict.extraction_digest == Policy().extraction_digest
    assert strict.digest != Policy().digest
    with pytest.raises(ValueError, match="less than or equal to 1"):
        Objectives(first_attempt_share=2)


def _asked(inst: Installation, check, held: Objectives) -> dg.AssetCheckResult:
    with inst.ledger.read() as conn:
        return check(conn, MONTH, held)
