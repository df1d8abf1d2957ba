"""A whole month: what a person sees of it when it ends."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from asset_pipeline.errors import StorageError
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import next_action, reading
from asset_pipeline.ledger.schema import attempts, jobs, placements, receipts, units
from asset_pipeline.ledger.units import claim_unit
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.month import pause_seconds, work_month
from asset_pipeline.work.plan import open_jobs, page_ranges, plan_job
from asset_pipeline_tests.ledger.making import claimable
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings, noisy_pdf


def count(inst: Installation, table) -> int:
    with inst.ledger.read() as conn:
        return conn.execute(select(func.count()).select_from(table)).scalar_one()


def stored_objects(settings: Settings) -> list[Path]:
    return sorted(Path(settings.store_address("archive"), "objects").glob("*/*"))


def test_every_page_of_a_long_document_is_accounted_for_across_its_units(inst: Installation, submit: Callable) -> None:
    submit("long.pdf", [10, 20, 10, 30, 40])
    work = work_month(inst, MONTH)
    assert (work.units, work.documents, work.pages) == (3, 1, 5)
    with inst.ledger.read() as conn:
        (document,) = reading.documents_of_month(conn, MONTH)
        pages = reading.pages_of(conn, document.job_id)
    assert document.state == "succeeded"
    assert [page.page for page in pages] == [1, 2, 3, 4, 5]
    assert [(page.archived, page.collapsed) for page in pages] == [(1, 0), (1, 0), (0, 1), (1, 0), (1, 0)]


def test_same_picture_in_two_documents_is_stored_once(inst: Installation, settings: Settings, submit: Callable) -> None:
    submit("first.pdf", [10])
    submit("second.pdf", [10])
    assert work_month(inst, MONTH).documents == 2
    assert len(stored_objects(settings)) == 1


def test_a_month_run_again_does_no_work(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20])
    work_month(inst, MONTH)
    before = count(inst, attempts)
    again = work_month(inst, MONTH)
    assert (again.units, again.documents, again.pictures) == (0, 0, 0)
    assert count(inst, attempts) == before


def test_one_refused_document_does_not_hold_up_the_others(inst: Installation, submit: Callable) -> None:
    submit("good.pdf", [10])
    submit("locked.pdf", [20], encrypted=True)
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        documents = reading.documents_of_month(conn, MONTH)
    assert sorted((row.state, row.reason) for row in documents) == [
        ("failed_permanently", "encrypted"),
        ("succeeded", None),
    ]


def test_a_broken_picture_is_quarantined_and_the_document_succeeds(inst: Installation, submit: Callable) -> None:
    submit("mixed.pdf", [10], broken_picture=True)
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        (document,) = reading.documents_of_month(conn, MONTH)
        pages = reading.pages_of(conn, document.job_id)
    assert document.state == "succeeded"
    assert [page.quarantined for page in pages] == [0, 1]


def test_nothing_is_left_in_the_working_folder(inst: Installation, settings: Settings, submit: Callable) -> None:
    submit("a.pdf", [10])
    submit("locked.pdf", [20], encrypted=True)
    work_month(inst, MONTH)
    assert list(settings.work_folder.iterdir()) == []


def test_progress_ends_at_the_whole(inst: Installation, submit: Callable) -> None:
    submit("long.pdf", [10, 20, 30, 40])
    seen: list[tuple[str, int, int]] = []
    work_month(inst, MONTH, progress=lambda *step: seen.append(step))
    assert ("inspect", 1, 1) in seen
    assert seen[-1] == ("extract", 2, 2)


def _run_in_process(home: Path, answers) -> None:
    settings = load_settings(home=home, settle_seconds=0, workers=1, pages_per_unit=1)
    with open_installation(settings) as inst:
        answers.put(work_month(inst, MONTH))


def test_two_runs_of_one_month_at_once_end_with_one_set_of_pictures(
    inst: Installation, settings: Settings, submit: Callable
) -> None:
    for number in range(4):
        submit(f"report-{number}.pdf", [number * 3, number * 3 + 1, number * 3])
    spawning = multiprocessing.get_context("spawn")
    answers = spawning.Queue()
    runs = [spawning.Process(target=_run_in_process, args=(settings.home, answers)) for _ in range(2)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(120)
    assert [run.exitcode for run in runs] == [0, 0]
    works = [answers.get(timeout=5) for _ in runs]
    assert sum(work.units for work in works) == 12
    assert sum(work.documents for work in works) == 4
    assert count(inst, receipts) == count(inst, placements) == 12
    with inst.ledger.read() as conn:
        states = Counter(conn.execute(select(jobs.c.state)).scalars())
    assert states == {"succeeded": 4}
    assert len(stored_objects(settings)) == 8


def test_what_a_killed_run_left_is_finished_by_the_next(tmp_path: Path) -> None:
    settings = fresh_settings(tmp_path, pages_per_unit=2, lease_seconds=1.5)
    document = drop_document(settings, "long.pdf", [1])
    noisy_pdf(document, 12)
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        killed = multiprocessing.get_context("spawn").Process(target=_run_and_wait, args=(settings.home,))
        killed.start()
        while not count(inst, receipts):
            time.sleep(0.02)
        killed.kill()
        killed.join()
        left = count(inst, receipts)
        work = work_month(inst, MONTH)
        assert 0 < left < 12
        assert left + work.pages == count(inst, receipts) == 12
        with inst.ledger.read() as conn:
            (document_row,) = reading.documents_of_month(conn, MONTH)
        assert (document_row.state, document_row.archived) == ("succeeded", 12)


def _run_and_wait(home: Path) -> None:
    with open_installation(load_settings(home=home, workers=1, pages_per_unit=2, lease_seconds=1.5)) as inst:
        work_month(inst, MONTH)


def test_units_of_a_worker_that_died_are_taken_over(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10, 20, 30])
    with DecoderPool(1, inst.policy) as pool:
        for job_id in open_jobs(inst, MONTH, "queued"):
            plan_job(inst, pool, job_id)
    now = datetime.now(UTC)
    unit_id = claimable(inst.ledger, now, MONTH)[0]
    with inst.ledger.begin() as tx:
        assert claim_unit(tx, unit_id, "a worker that dies", timedelta(seconds=1), now)
    work = work_month(inst, MONTH)
    assert work.units == 2
    with inst.ledger.read() as conn:
        assert set(conn.execute(select(units.c.state)).scalars()) == {"done"}


def test_a_store_that_goes_away_loses_nothing_and_the_next_run_finishes(
    inst: Installation, settings: Settings, submit: Callable
) -> None:
    for number in range(6):
        submit(f"{number}.pdf", [number * 5, number * 5 + 1, number * 5 + 2])
    archive = Path(settings.store_address("archive"))

    def go_away(stage: str, done: int, _total: int) -> None:
        if (stage, done) == ("extract", 2):
            archive.rename(archive.with_name("elsewhere"))
            archive.write_text("in the way")

    with pytest.raises(StorageError, match="The archive store cannot be written"):
        work_month(inst, MONTH, progress=go_away)
    with inst.ledger.read() as conn:
        left = conn.execute(select(units.c.state, units.c.tries, units.c.lost_workers)).tuples().all()
    assert {row[0] for row in left} == {"done", "queued"}
    assert {row[1:] for row in left} == {(0, 0)}
    with pytest.raises(StorageError):
        work_month(inst, MONTH)
    archive.unlink()
    archive.with_name("elsewhere").rename(archive)
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        states = Counter(row.state for row in reading.documents_of_month(conn, MONTH))
    assert states == {"succeeded": 6}


def test_a_source_that_cannot_be_read_while_its_store_answers_ends_its_own_document_only(
    inst: Installation, settings: Settings, submit: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    submit("good.pdf", [10])
    submit("bad.pdf", [20])
    monkeypatch.setattr(next_action, "FIRST_PAUSE", timedelta(0))
    objects = Path(settings.store_address("sources"), "objects")
    bad = hashlib.sha256(Path(settings.store_address("inbox"), "city", MONTH, "bad.pdf").read_bytes()).hexdigest()
    (objects / bad[:2]).rename(objects / "elsewhere")
    (objects / bad[:2]).symlink_to(objects / bad[:2])
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        states = sorted((row.name, row.state) for row in reading.documents_of_month(conn, MONTH))
    assert states == [("bad.pdf", "dead_lettered"), ("good.pdf", "succeeded")]


def _stop_and_wait(home: Path, number: int, answers) -> None:
    def note(_number: int, _frame: object) -> None:
        answers.put("handed on")
        raise SystemExit(7)

    signal.signal(number, note)
    settings = load_settings(home=home, settle_seconds=0, workers=2, pages_per_unit=1)
    with open_installation(settings) as inst:
        answers.put("began")
        work_month(inst, MONTH)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_handed_on_after_the_units_were_given_back(tmp_path: Path, number: int) -> None:
    settings = fresh_settings(tmp_path, pages_per_unit=1)
    noisy_pdf(drop_document(settings, "long.pdf", [1]), 40)
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        spawning = multiprocessing.get_context("spawn")
        answers = spawning.Queue()
        stopped = spawning.Process(target=_stop_and_wait, args=(settings.home, number, answers))
        stopped.start()
        assert answers.get(timeout=60) == "began"
        while not count(inst, receipts):
            time.sleep(0.02)
        os.kill(stopped.pid, number)
        assert answers.get(timeout=30) == "handed on"
        stopped.join(30)
        assert stopped.exitcode == 7
        with inst.ledger.read() as conn:
            assert "running" not in set(conn.execute(select(units.c.state)).scalars())
            assert set(conn.execute(select(units.c.tries, units.c.lost_workers)).tuples()) == {(0, 0)}
    assert list(settings.work_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("pages", "ranges"),
    [(None, [(1, None)]), (0, [(1, 0)]), (1, [(1, 1)]), (200, [(1, 200)]), (401, [(1, 200), (201, 400), (401, 401)])],
)
def test_page_ranges_cover_each_page_once(pages: int | None, ranges: list[tuple[int, int | None]]) -> None:
    assert page_ranges(pages, 200) == ranges


def test_waiting_ends_soon_after_the_next_unit_may_be_claimed() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    assert pause_seconds(None, now) == pause_seconds(now + timedelta(minutes=1), now) == 0.5
    assert pause_seconds(now + timedelta(seconds=0.1), now) == pytest.approx(0.1)
    assert pause_seconds(now - timedelta(seconds=5), now) == 0.02
