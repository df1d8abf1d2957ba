"""The measures: what each says about made-up work, and what Prometheus reads."""

from __future__ import annotations

import os
import re
from datetime import timedelta

import pytest
from sqlalchemy import update

from asset_pipeline.history.measures import Measure, all_measures
from asset_pipeline.history.observations import percentile
from asset_pipeline.history.overdue import overdue
from asset_pipeline.history.prometheus import exposition
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import jobs, units
from asset_pipeline.ledger.schema import objects, source_documents
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    MONTH,
    NOW,
    claim_next,
    complete,
    finish,
    page,
    placement,
    publish,
    queue,
    sha,
    start,
)

HOUR = timedelta(hours=1)


def _values(inst: Installation, now=NOW, month: str | None = None) -> dict[tuple[str, ...], Measure]:
    found = all_measures(inst, now, month)
    named = {(row.name, *row.labels.values()): row for row in found}
    assert len(named) == len(found), "no measure is told twice"
    return named


def test_an_installation_without_work_has_nothing_to_measure_and_breaks_nothing(inst: Installation) -> None:
    measures = _values(inst)
    assert measures[("first_attempt_share",)].value is None
    assert measures[("queue_age",)].value is None
    assert measures[("overdue_bytes",)].value == 0
    assert not any(row.breach for row in measures.values())


def test_the_three_signals(inst: Installation) -> None:
    for number in range(3):
        finish(inst.ledger, f"{number}.pdf", page(1, placement(1)))
    start(inst.ledger, "again.pdf")
    first = claim_next(inst.ledger)
    with inst.ledger.begin() as tx:
        units.retry_unit(tx, first, Reason.STORAGE_UNAVAILABLE, NOW, NOW)
    measures = _values(inst, NOW + 2 * HOUR)
    share, age = measures[("first_attempt_share",)], measures[("queue_age",)]
    assert (share.value, share.limit, share.breach) == (0.75, 0.95, "breach")
    assert (age.value, age.limit, age.breach) == (7200, 3600, "capacity")
    assert _values(inst, NOW + timedelta(days=3649))[("overdue_bytes",)].value == 0
    late = _values(inst, NOW + timedelta(days=3651))[("overdue_bytes",)]
    assert (late.value, late.breach) == (4 * 1000 + 500, "breach"), "four sources and the one picture that they share"


def test_stages_have_median_and_95th_percentile_against_their_budget(inst: Installation) -> None:
    for number in range(20):
        start(inst.ledger, f"{number}.pdf")
        claim = claim_next(inst.ledger, NOW + timedelta(seconds=number))
        publish(inst.ledger, claim, page(1, placement(1)), now=NOW + HOUR)
        complete(inst.ledger, claim.job_id, NOW + HOUR)
    measures = _values(inst, NOW + HOUR)
    assert measures[("stage", "queue", "0.5")].value == 9
    assert measures[("stage", "queue", "0.95")].value == 18
    assert measures[("stage", "decode", "0.95")].value == 0.002
    assert measures[("stage", "completion", "0.95")].value == 3600
    assert measures[("stage_observations", "fetch")].value == 20
    assert measures[("stage", "decode", "0.95")].limit == 60
    assert measures[("objective", "completion")].value == 1
    assert measures[("peak_memory",)].value == 50_000_000
    assert measures[("bytes_written", "0.5")].value == 500


def test_a_slow_stage_is_told_with_the_class_that_its_attempts_have(inst: Installation) -> None:
    start(inst.ledger, "heavy.pdf")
    claim = claim_next(inst.ledger)
    with inst.ledger.begin() as tx:
        units.fail_unit(tx, claim, Reason.MEMORY_EXCEEDED, NOW, decode_ms=61_000.0)
    measures = _values(inst)
    assert measures[("stage", "decode", "0.95")].breach == "input_shape"
    assert measures[("breaches", "decode", "input_shape")].value == 1
    assert measures[("breaches", "decode", "capacity")].value == 0


def test_queue_depth_retries_and_dead_letters_are_told_by_what_they_are(inst: Installation) -> None:
    queue(inst.ledger, "a.pdf")
    queue(inst.ledger, "b.pdf", collection="press-desk")
    job_id = start(inst.ledger, "c.pdf", collection="press-desk")
    claim = claim_next(inst.ledger)
    with inst.ledger.begin() as tx:
        units.retry_unit(tx, claim, Reason.DECODER_CRASHED, NOW, NOW)
        jobs.dead_letter_job(tx, job_id, Reason.DECODER_CRASHED, NOW)
    measures = _values(inst, NOW + HOUR)
    assert measures[("queue_depth", "field-notes")].value == 1
    assert measures[("queue_depth", "press-desk")].value == 1
    assert measures[("retries", "decoder_crashed")].value == 1
    assert measures[("dead_letters", MONTH, "decoder_crashed")].value == 1
    assert measures[("oldest_job",)].value == 3600
    assert measures[("workload", "queued", "documents")].value == 2
    assert measures[("workload", "done", "documents")].value == 1
    assert measures[("workload", "queued", "bundles")].value == 0


def test_the_scaling_signal_asks_for_decoders_unless_the_store_is_the_brake(inst: Installation) -> None:
    queue(inst.ledger, "a.pdf")
    assert _values(inst, NOW + 2 * HOUR)[("scaling_signal",)].value == 2
    start(inst.ledger, "b.pdf")
    claim = claim_next(inst.ledger)
    with inst.ledger.begin() as tx:
        units.retry_unit(tx, claim, Reason.STORAGE_UNAVAILABLE, NOW, NOW, publish_ms=120_000.0)
    assert _values(inst, NOW + 2 * HOUR)[("scaling_signal",)].value == 0.5


def test_temporary_volume_and_cleanup_lag_are_those_of_the_working_folder(inst: Installation) -> None:
    place = inst.settings.work_folder / ("a" * 32) / "out"
    place.mkdir(parents=True)
    (place / "picture").write_bytes(b"x" * 5000)
    began = NOW.timestamp() - 1000
    os.utime(place.parent, (began, began))
    measures = _values(inst)
    assert measures[("temporary_bytes",)].value == 5000
    assert measures[("cleanup_lag",)].value == pytest.approx(100)


def test_names_of_collections_are_hidden_where_the_policy_hides_names(inst: Installation) -> None:
    queue(inst.ledger, "a.pdf")
    object.__setattr__(inst, "policy", inst.policy.model_copy(update={"show_names": False}))
    assert _values(inst)[("queue_depth", "all")].value == 1
    assert "field-notes" not in exposition(all_measures(inst, NOW))


def test_bytes_that_a_later_deadline_still_protects_are_not_overdue(inst: Installation) -> None:
    finish(inst.ledger, "a.pdf", page(1, placement(1)), archive_until=NOW + HOUR)
    finish(inst.ledger, "b.pdf", page(1, placement(1), placement(1, 2, picture="gull")), source_hash=sha("b"))
    with inst.ledger.read() as conn:
        assert overdue(conn, NOW).bytes == 0
        late = overdue(conn, NOW + 2 * HOUR)
    assert (late.bytes, late.files) == (1000, 1), "the source of a.pdf; the tern is also in b.pdf"
    finish(inst.ledger, "c.pdf", page(1, placement(1, picture="owl")), archive_until=NOW + HOUR, source_hash=sha("c"))
    with inst.ledger.read() as conn:
        late = overdue(conn, NOW + 2 * HOUR)
        assert overdue(conn, NOW + 2 * HOUR, MONTH) == late
        assert overdue(conn, NOW + 2 * HOUR, "2026-08").bytes == 0
    assert (late.bytes, late.files, late.seconds) == (1000 + 1000 + 500, 3, 3600)


def test_what_was_deleted_is_not_overdue(inst: Installation) -> None:
    finish(inst.ledger, "c.pdf", page(1, placement(1, picture="owl")), archive_until=NOW + HOUR)
    with inst.ledger.begin() as tx:
        tx.execute(update(objects).values(state="deleted"))
        tx.execute(update(source_documents).values(stored=0))
    with inst.ledger.read() as conn:
        assert overdue(conn, NOW + timedelta(days=9)).bytes == 0


def test_a_percentile_is_a_value_that_occurred() -> None:
    assert percentile([], 0.95) is None
    assert percentile([7], 0.95) == 7
    assert percentile(range(1, 101), 0.95) == 95


_HELP = re.compile(r"# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (?:[^\\\n]|\\\\|\\n)*")
_TYPE = re.compile(r"# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) gauge")
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{{{_LABEL}(?:,{_LABEL})*\}})? (\S+)")


def parse(text: str) -> dict[str, float]:
    """Read the text exposition format strictly: HELP, TYPE, then the samples of that name, none of them twice."""
    assert text.endswith("\n")
    lines, families, samples = text.split("\n")[:-1], [], {}
    while lines:
        name = _HELP.fullmatch(lines.pop(0))[1]
        assert _TYPE.fullmatch(lines.pop(0))[1] == name
        assert name not in families
        families.append(name)
        count = len(samples)
        while lines and not lines[0].startswith("#"):
            sample = _SAMPLE.fullmatch(lines.pop(0))
            assert sample[1] == name
            assert sample[1] + (sample[2] or "") not in samples
            samples[sample[1] + (sample[2] or "")] = float(sample[3])
        assert len(samples) > count
    return samples


def test_prometheus_text_is_valid_and_holds_every_measure(inst: Installation) -> None:
    finish(inst.ledger, "a.pdf", page(1, placement(1)))
    queue(inst.ledger, "b.pdf", collection='odd "name" \\ of\na collection')
    found = all_measures(inst, NOW + 2 * HOUR)
    samples = parse(exposition(found))
    assert samples["asset_pipeline_queue_age_seconds"] == 7200
    assert samples["asset_pipeline_queue_age_seconds_limit"] == 3600
    assert samples['asset_pipeline_breach{of="queue_age",class="capacity"}'] == 1
    assert samples['asset_pipeline_stage_seconds{stage="decode",quantile="0.95"}'] == 0.002
    assert samples['asset_pipeline_queue_depth{collection="odd \\"name\\" \\\\ of\\na collection"}'] == 1
    values = [row for row in found if row.value is not None]
    assert len(samples) == len(values) + 2 * sum(row.limit is not None for row in values)


def test_one_month_is_measured_by_itself(inst: Installation) -> None:
    finish(inst.ledger, "a.pdf", page(1, placement(1)))
    assert _values(inst, month=MONTH)[("attempts",)].value == 1
    assert _values(inst, month="2026-08")[("attempts",)].value == 0
    assert _values(inst, NOW + timedelta(days=40))[("attempts",)].value == 0, "the last 30 days"
