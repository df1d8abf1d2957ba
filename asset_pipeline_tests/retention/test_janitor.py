"""What the janitor removes, and what it never touches."""

from __future__ import annotations

import json
import multiprocessing
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from asset_pipeline.installation import Installation
from asset_pipeline.ledger.schema import audit_events
from asset_pipeline.retention.janitor import Sweep, sweep
from asset_pipeline.settings import Settings
from asset_pipeline.work.workplace import private_workplace


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=100)


def later() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=1000)


def _work_there(folder: Path, ready) -> None:
    with private_workplace(folder) as place:
        place.document.write_bytes(b"x" * 1000)
        ready.put(place.document.parent.name)
        multiprocessing.Event().wait(60)


@pytest.fixture
def worker(settings: Settings):
    """Another process that works in a directory of its own; ended at the latest with the test."""
    spawning = multiprocessing.get_context("fork")
    ready = spawning.Queue()
    process = spawning.Process(target=_work_there, args=(settings.work_folder, ready), daemon=True)
    process.start()
    process.place = settings.work_folder / ready.get(timeout=30)
    yield process
    process.kill()
    process.join()


def test_what_a_killed_process_left_goes_after_its_time_and_only_once(inst: Installation, worker) -> None:
    worker.kill()
    worker.join()
    assert sweep(inst, soon()) == Sweep(), "it is not old enough"
    assert worker.place.is_dir()
    done = sweep(inst, later())
    assert (done.directories, done.in_use, done.stuck) == (1, 0, 0)
    assert done.directory_bytes >= 1000
    assert not worker.place.exists()
    assert sweep(inst, later()) == Sweep()


def test_a_directory_in_which_another_process_works_is_never_touched(inst: Installation, worker) -> None:
    done = sweep(inst, later())
    assert (done.directories, done.in_use) == (0, 1)
    assert (worker.place / "document").read_bytes() == b"x" * 1000


def test_a_directory_of_this_process_is_never_touched(inst: Installation, settings: Settings) -> None:
    with private_workplace(settings.work_folder) as place:
        assert sweep(inst, later()).in_use == 1
        assert place.out.is_dir()


def test_what_a_version_without_locks_left_goes_too(inst: Installation, settings: Settings) -> None:
    old = settings.work_folder / ("0" * 32)
    (old / "out").mkdir(parents=True)
    assert sweep(inst, later()).directories == 1
    assert not old.exists()


def test_what_is_not_a_working_directory_stays(inst: Installation, settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    settings.work_folder.mkdir(parents=True, exist_ok=True)
    (settings.work_folder / "notes").mkdir()
    (settings.work_folder / ("a" * 32)).symlink_to(tmp_path / "elsewhere")
    assert sweep(inst, later()) == Sweep()
    assert (tmp_path / "elsewhere").is_dir()
    assert (settings.work_folder / "notes").is_dir()


def test_half_written_files_of_stores_go_and_the_inbox_is_left_alone(inst: Installation, settings: Settings) -> None:
    for name in ("sources", "archive", "quarantine", "inbox"):
        folder = Path(settings.store_address(name), "objects", "ab")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".incoming-0123").write_bytes(b"12345")
        (folder / "whole").write_bytes(b"whole")
        os.utime(folder / ".incoming-0123", (0, 0))
    done = sweep(inst, datetime.now(UTC))
    assert (done.files, done.file_bytes) == (3, 15)
    left = sorted(path.name for path in settings.home.rglob("objects/ab/*"))
    assert left == [".incoming-0123", "whole", "whole", "whole", "whole"]


def test_an_event_tells_how_much_went_and_no_path(inst: Installation, worker) -> None:
    worker.kill()
    worker.join()
    sweep(inst, later())
    sweep(inst, later())
    with inst.ledger.read() as conn:
        recorded = [row for row in conn.execute(select(audit_events)) if row.type == "leftovers_removed"]
    (event,) = recorded
    assert worker.place.name not in str(event)
    assert '"directories":1' in json.dumps(json.loads(event.payload), separators=(",", ":"))
