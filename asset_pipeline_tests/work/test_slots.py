"""A store that all machines share is used by no more workers at once than the settings say."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.slots import take_slot
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.slots import STORES, store_slot
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings


@contextmanager
def installations(settings, count: int) -> Iterator[list[Installation]]:
    if not count:
        yield []
        return
    with open_installation(settings) as first, installations(settings, count - 1) as others:
        yield [first, *others]


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_six_workers_of_three_machines_use_two_slots_two_at_a_time(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    more = {"ledger": request.getfixturevalue("postgres_ledger_url")} if database == "postgres" else {}
    settings = fresh_settings(tmp_path, store_slots=2, **more)
    lock, inside, most = threading.Lock(), [0], [0]

    def work(inst: Installation) -> None:
        for _ in range(3):
            with store_slot(inst, None, utc_now):
                with lock:
                    inside[0] += 1
                    most[0] = max(most[0], inside[0])
                time.sleep(0.01)
                with lock:
                    inside[0] -= 1

    with installations(settings, 3) as machines:
        workers = [threading.Thread(target=work, args=(inst,)) for inst in machines * 2]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(120)
    assert most == [2]


def test_the_slot_of_a_worker_that_vanished_is_free_when_its_lease_has_run_out(inst: Installation) -> None:
    now = datetime.now(UTC)
    later = now + timedelta(seconds=90)
    with inst.ledger.begin() as tx:
        assert [take_slot(tx, STORES, 2, holder, later, now) for holder in ("a", "b", "c")] == [0, 1, None]
        assert take_slot(tx, STORES, 2, "c", later + timedelta(seconds=90), later) == 0
        assert take_slot(tx, STORES, 1, "d", later, now) is None, "a smaller cap gives out no slot beyond it"


def test_a_month_under_a_cap_reads_and_writes_its_stores_one_worker_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = fresh_settings(tmp_path, store_slots=1, workers=2, pages_per_unit=1)
    lock, inside, most = threading.Lock(), [0], [0]
    fetch = FolderStore.fetch

    def slowly(self: FolderStore, key: str, target: Path, sha256: str) -> int:
        with lock:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
        time.sleep(0.05)
        try:
            return fetch(self, key, target, sha256)
        finally:
            with lock:
                inside[0] -= 1

    monkeypatch.setattr(FolderStore, "fetch", slowly)
    with open_installation(settings) as inst:
        for number in range(3):
            drop_document(settings, f"{number}.pdf", [number, 100 + number])
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        assert work_month(inst, MONTH).documents == 3
    assert most == [1]
