"""One attempt at a unit, and what the ledger says when it goes wrong."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from sqlalchemy import select

from asset_pipeline.errors import StorageError
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import completion, units
from asset_pipeline.ledger.schema import attempts, jobs
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline.storage import s3
from asset_pipeline.work.plan import Planned, open_jobs, plan_job
from asset_pipeline.work.unit import Outcome, work_unit
from asset_pipeline_tests.ledger.making import claimable
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
    return claimable(inst.ledger, datetime.now(UTC), MONTH)


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


@pytest.mark.parametrize("store", ["archive", "sources"])
def test_a_store_that_is_away_costs_no_document_a_try_however_often(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool, store: str
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    with away(settings, store):
        for _ in range(8):
            with pytest.raises(StorageError, match=f"The {store} (store|folder)"):
                work_unit(inst, pool, unit_id)
            row = unit_row(inst, unit_id)
            assert (row.state, row.tries, row.lost_decoders, row.lost_workers) == ("queued", 0, 0, 0)
    assert work_unit(inst, pool, unit_id).outcome is Outcome.PUBLISHED, "at once, without a back-off"


def test_a_disk_of_sources_that_is_not_mounted_is_no_fault_of_a_document(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    submit("b.pdf", [20])
    (queued,) = open_jobs(inst, MONTH, "queued")
    sources = Path(settings.store_address("sources"))
    sources.rename(sources.with_name("elsewhere"))
    sources.mkdir()
    with pytest.raises(StorageError, match="mounted"):
        work_unit(inst, pool, unit_id)
    with pytest.raises(StorageError, match="mounted"):
        plan_job(inst, pool, queued)
    assert (unit_row(inst, unit_id).state, unit_row(inst, unit_id).tries) == ("queued", 0)
    sources.rmdir()
    sources.with_name("elsewhere").rename(sources)
    assert plan_job(inst, pool, queued) == Planned(queued, None), "at once: nobody waits for a lease"
    assert work_unit(inst, pool, unit_id).outcome is Outcome.PUBLISHED


@contextmanager
def away(settings: Settings, name: str) -> Iterator[None]:
    """A store whose place is taken by a file, and then is there again with all it held."""
    place = Path(settings.store_address(name))
    place.mkdir(exist_ok=True)
    place.rename(place.with_name("elsewhere"))
    place.write_text("in the way")
    yield
    place.unlink()
    place.with_name("elsewhere").rename(place)


def test_a_service_that_says_when_to_come_back_is_left_alone_until_then(
    inst: Installation, submit: Callable, pool: DecoderPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "anybody")
    monkeypatch.setattr(s3, "TRIES", 1)  # the client's own pauses, which are not what is looked at here
    with busy_store() as archive, pytest.raises(StorageError, match="SlowDown"):
        work_unit(replace(inst, archive=archive), pool, unit_id)
    row = unit_row(inst, unit_id)
    assert (row.tries, row.reason) == (0, "provider_busy")
    assert row.not_before > datetime.now(UTC) + timedelta(seconds=50)
    assert work_unit(inst, pool, unit_id).outcome is Outcome.NOT_CLAIMED
    assert work_unit(inst, pool, unit_id, clock=later).outcome is Outcome.PUBLISHED


class SlowDown(BaseHTTPRequestHandler):
    """Answers every request as S3 does when it has too many."""

    def answer(self) -> None:
        body = b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
        self.send_response(503)
        self.send_header("Retry-After", "60")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = answer

    def log_message(self, *_: object) -> None:
        """Nothing: requests are not what is tested."""


@contextmanager
def busy_store() -> Iterator[s3.S3Store]:
    """A bucket of a server that has too many requests."""
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowDown) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield s3.S3Store("s3://bucket", endpoint=f"http://127.0.0.1:{server.server_port}", name="archive")
        server.shutdown()
        thread.join()


def test_one_object_that_can_never_be_stored_ends_in_a_dead_letter_of_its_document(
    inst: Installation, settings: Settings, submit: Callable, pool: DecoderPool
) -> None:
    submit("a.pdf", [10])
    (unit_id,) = plan(inst, pool)
    # The store answers, but every name below its objects is taken.
    Path(settings.store_address("archive")).mkdir(exist_ok=True)
    Path(settings.store_address("archive"), "objects").write_text("in the way")
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
    assert unit_row(inst, unit_id).lost_workers == 0, "it was late, not lost"


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
                taken += len(claimable(inst.ledger, datetime.now(UTC), MONTH))
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
