"""One attempt at a unit, and what the ledger says when it goes wrong."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import completion, units
from asset_pipeline.ledger.schema import attempts, jobs
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline.work.plan import open_jobs, plan_job
from asset_pipeline.work.unit import Outcome, work_unit
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings

ENGINES = "asset_pipeline_tests.work.engines"


@pytest.fixture
def pool(inst: Installation) -> Iterator[DecoderPool]:
    with DecoderPool(2, inst.policy) as opened:
        yield opened


def pool_of(inst: Installation, engine: str) -> DecoderPool:
    return DecoderPool(1, inst.policy, engines={"pdf": f"{ENGINES}:{engine}"})


def plan(inst: Installation, pool: DecoderPool) -> list[str]:
    for job_id in open_jobs(inst, MONTH, "queued"):
        plan_job(inst, pool, job_id)
    with inst.ledger.read() as conn:
        return units.claimable(conn, MONTH, datetime.now(UTC))


def later() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def unit_row(inst: Installation, unit_id: str):
    with inst.ledger.read() as conn:
        return conn.execute(select(units_table).where(units_table.c.unit_id == unit_id)).one()


def wait_until_running(inst: Installation, unit_id: str) -> None:
    while unit_row(inst, unit_id).state != "running":
        time.sleep(0.02)


def job_row(inst: Installation):
    with inst.ledger.read() as conn:
        return conn.execute(select(jobs)).one()


def test_an_attempt_that_succeeds_records_its_times(inst: Installation, submit: Callable, pool: DecoderPool) -> None:
    submit("a.pdf", [10, 20])
    (unit_id,) = plan(inst, pool)
    outcome = work_unit(inst, pool, unit_id)
    assert (outcome.outcome, outcome.pages, outcome.pictures) == (Outcome.PUBLISHED, 2, 2)
    assert outcome.bytes_written > 0
    with inst.ledger.read() as conn:
        row = conn.execute(select(attempts)).one()
    assert row.outcome == "published"
    assert row.ended_at >= row.started_at
    assert min(row.fetch_ms, row.decode_ms, row.publish_ms) > 0
    assert row.bytes_written == outcome.bytes_written
    assert row.peak_rss_bytes > 1_000_000


def test_a_unit_that_another_worker_holds_is_left_alone(
    inst: Installation, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    with inst.ledger.begin() as tx:
        units.claim_unit(tx, unit_id, "another", timedelta(minutes=1), datetime.now(UTC))
    assert work_unit(inst, pool, unit_id).outcome is Outcome.NOT_CLAIMED


def test_a_store_that_is_away_is_tried_again_later(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    archive = Path(settings.store_address("archive"))
    shutil.rmtree(archive, ignore_errors=True)
    archive.write_text("in the way")
    outcome = work_unit(inst, pool, unit_id)
    assert (outcome.outcome, outcome.reason) == (Outcome.RETRIED, Reason.STORAGE_UNAVAILABLE)
    assert unit_row(inst, unit_id).not_before > datetime.now(UTC)
    assert work_unit(inst, pool, unit_id).outcome is Outcome.NOT_CLAIMED, "the back-off is kept"
    archive.unlink()
    assert work_unit(inst, pool, unit_id, clock=later).outcome is Outcome.PUBLISHED


def test_a_store_that_stays_away_ends_in_a_dead_letter(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    Path(settings.store_address("archive")).write_text("in the way")
    moment = datetime.now(UTC)
    outcomes = []
    for _ in range(5):
        moment += timedelta(hours=1)
        outcomes.append(work_unit(inst, pool, unit_id, clock=lambda: moment).outcome)  # noqa: B023
    assert outcomes == [Outcome.RETRIED] * 4 + [Outcome.DEAD_LETTERED]
    with inst.ledger.begin() as tx:
        completion.complete_job(tx, job_row(inst).job_id, moment)
    assert job_row(inst).state == "dead_lettered"


def test_a_decoder_lost_twice_is_a_dead_letter_with_that_reason(
    inst: Installation, submit: Callable, pool: DecoderPool
) -> None:
    submit("poison.pdf", [10])
    (unit_id,) = plan(inst, pool)
    with pool_of(inst, "Crashing") as crashing:
        first = work_unit(inst, crashing, unit_id)
        second = work_unit(inst, crashing, unit_id, clock=later)
    assert (first.outcome, second.outcome) == (Outcome.RETRIED, Outcome.DEAD_LETTERED)
    with inst.ledger.begin() as tx:
        completion.complete_job(tx, job_row(inst).job_id, later())
    assert (job_row(inst).state, job_row(inst).reason) == ("dead_lettered", "decoder_crashed")


def test_a_document_whose_inspection_crashes_twice_is_a_dead_letter(inst: Installation, submit: Callable) -> None:
    submit("poison.pdf", [10])
    with pool_of(inst, "CrashingInspection") as crashing:
        assert plan(inst, crashing) == []
    assert (job_row(inst).state, job_row(inst).reason) == ("dead_lettered", "decoder_crashed")


def test_an_altered_source_is_not_retried(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    (source,) = Path(settings.store_address("sources"), "objects").glob("*/*")
    source.chmod(0o600)
    source.write_bytes(source.read_bytes() + b"x")
    outcome = work_unit(inst, pool, unit_id)
    assert (outcome.outcome, outcome.reason) == (Outcome.DEAD_LETTERED, Reason.SOURCE_HASH_MISMATCH)


def test_a_late_worker_changes_nothing(inst: Installation, submit: Callable, pool: DecoderPool) -> None:
    submit("a.pdf", [10, 20])
    (unit_id,) = plan(inst, pool)
    outcomes = []
    with pool_of(inst, "Unhurried") as unhurried:
        late = threading.Thread(target=lambda: outcomes.append(work_unit(inst, unhurried, unit_id).outcome))
        late.start()
        wait_until_running(inst, unit_id)
        assert work_unit(inst, pool, unit_id, clock=later).outcome is Outcome.PUBLISHED
        late.join(30)
    assert outcomes == [Outcome.FENCED]
    assert unit_row(inst, unit_id).state == "done"
    with inst.ledger.read() as conn:
        ended = conn.execute(select(attempts.c.fence, attempts.c.outcome).order_by(attempts.c.fence)).tuples().all()
    assert ended == [(1, "fenced"), (2, "published")]


def test_a_lease_is_renewed_while_the_decoder_works(tmp_path: Path) -> None:
    settings = fresh_settings(tmp_path, lease_seconds=0.6)
    drop_document(settings, "a.pdf", [10])
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        with pool_of(inst, "Unhurried") as unhurried:
            (unit_id,) = plan(inst, unhurried)
            outcomes = []
            worker = threading.Thread(target=lambda: outcomes.append(work_unit(inst, unhurried, unit_id).outcome))
            worker.start()
            wait_until_running(inst, unit_id)
            taken = 0
            while worker.is_alive():
                with inst.ledger.read() as conn:
                    taken += len(units.claimable(conn, MONTH, datetime.now(UTC)))
                time.sleep(0.05)
    assert (outcomes, taken) == ([Outcome.PUBLISHED], 0)


def test_an_interrupted_unit_is_given_back_at_once(inst: Installation, submit: Callable, pool: DecoderPool) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    stopping, outcomes = threading.Event(), []
    with pool_of(inst, "Slow") as slow:
        worker = threading.Thread(
            target=lambda: outcomes.append(work_unit(inst, slow, unit_id, stopping=stopping).outcome)
        )
        worker.start()
        wait_until_running(inst, unit_id)
        stopping.set()
        slow.close()
        worker.join(30)
    assert outcomes == [Outcome.RELEASED]
    assert work_unit(inst, pool, unit_id).outcome is Outcome.PUBLISHED


def test_a_result_of_another_extractor_version_is_not_published(
    inst: Installation, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    with pool_of(inst, "Newer") as newer:
        outcome = work_unit(inst, newer, unit_id)
    assert (outcome.outcome, outcome.reason) == (Outcome.DEAD_LETTERED, Reason.EXTRACTOR_CHANGED)
