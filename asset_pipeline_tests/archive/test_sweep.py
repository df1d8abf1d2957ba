"""What nothing names is deleted after a grace time, and never while somebody is about to name it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from asset_pipeline.archive.publish import store_pictures
from asset_pipeline.archive.sweep import GRACE, SweptObjects, sweep_objects, unnamed_files
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger import publication
from asset_pipeline.ledger.objects import ObjectsSwept, begin_deletion, hold_objects
from asset_pipeline.ledger.schema import audit_events, objects, placements
from asset_pipeline.ledger.units import Claim
from asset_pipeline.model import Extraction
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline.storage.store import object_key
from asset_pipeline_tests.ledger.making import NOW, claim, extraction, page, placement, sha, start
from asset_pipeline_tests.small_documents import fresh_settings

LATER = datetime.now(UTC) + 3 * GRACE


@pytest.fixture(params=["sqlite", "postgres"])
def inst(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    place = {"ledger": request.getfixturevalue("postgres_ledger_url")} if request.param == "postgres" else {}
    with open_installation(fresh_settings(tmp_path, **place)) as opened:
        yield opened


def a_unit(inst: Installation, folder: Path, name: str, *pictures: str) -> tuple[Claim, Extraction]:
    """A claimed unit and its result: a page that shows ``pictures``, whose bytes are their names."""
    taken = claim(inst.ledger, f"{start(inst.ledger, name)}-00000")
    assert taken is not None
    told = extraction(taken, [page(1, *(placement(1, n, text) for n, text in enumerate(pictures, 1)))])
    sizes = {sha(text): len(text) for text in pictures}
    for text in pictures:
        (folder / f"{sha(text)}.jpg").write_text(text)
    return taken, told.model_copy(
        update={"pictures": [row.model_copy(update={"bytes": sizes[row.sha256]}) for row in told.pictures]}
    )


def record(inst: Installation, taken: Claim, told: Extraction) -> None:
    with inst.ledger.begin() as tx:
        publication.publish_unit(tx, taken, told, publication.Timings(), 0, NOW)


def publish(inst: Installation, folder: Path, taken: Claim, told: Extraction) -> int:
    """As a worker does, with another attempt when files were swept meanwhile; how many attempts it took."""
    for attempt in range(1, 50):
        store_pictures(inst, folder, told)
        try:
            record(inst, taken, told)
        except ObjectsSwept:
            continue
        return attempt
    raise AssertionError("it never came to an end")


def leave_behind(inst: Installation, folder: Path, told: Extraction, *, recorded: bool = True) -> None:
    """What a stopped publication leaves: files, long ago, that nothing names, whether the ledger knows them or not."""
    store_pictures(inst, folder, told)
    if recorded:
        with inst.ledger.begin() as tx:
            hold_objects(tx, told.pictures, NOW)


def file_of(inst: Installation, text: str) -> Path:
    return Path(inst.settings.store_address("archive"), object_key(sha(text)))


def states(inst: Installation) -> dict[str, str]:
    with inst.ledger.read() as conn:
        return dict(conn.execute(select(objects.c.sha256, objects.c.state)).tuples().all())


def events(inst: Installation) -> list[tuple[str, list[str]]]:
    with inst.ledger.read() as conn:
        rows = conn.execute(select(audit_events.c.type, audit_events.c.payload).order_by(audit_events.c.seq)).tuples()
        return [(kind, json.loads(body)["objects"]) for kind, body in rows if kind.startswith("objects_")]


@pytest.mark.parametrize("recorded", [True, False], ids=["known", "unknown"])
def test_what_nothing_names_goes_after_the_grace_time_with_an_event_before_and_after(
    inst: Installation, tmp_path: Path, recorded: bool
) -> None:
    taken, told = a_unit(inst, tmp_path, "kept.pdf", "named")
    publish(inst, tmp_path, taken, told)
    _, lost = a_unit(inst, tmp_path, "lost.pdf", "left")
    leave_behind(inst, tmp_path, lost, recorded=recorded)
    assert [row.sha256 for row in unnamed_files(inst)] == [sha("left")]

    assert sweep_objects(inst, datetime.now(UTC)) == SweptObjects()
    assert file_of(inst, "left").exists(), "it may be of a unit that is being published"
    assert sweep_objects(inst, LATER) == SweptObjects(files=1, bytes=len("left"))
    assert (file_of(inst, "left").exists(), file_of(inst, "named").read_text()) == (False, "named")
    assert states(inst) == {sha("left"): "deleted", sha("named"): "stored"}
    assert events(inst) == [("objects_deleting", [sha("left")]), ("objects_deleted", [sha("left")])]
    assert sweep_objects(inst, LATER) == SweptObjects()


def test_a_sweep_that_was_stopped_is_ended_by_the_next(inst: Installation, tmp_path: Path) -> None:
    for name, gone in (("one", False), ("two", True)):
        _, lost = a_unit(inst, tmp_path, f"{name}.pdf", name)
        leave_behind(inst, tmp_path, lost)
        with inst.ledger.begin() as tx:
            begin_deletion(tx, {sha(name): 3}, LATER, LATER)
        if gone:
            file_of(inst, name).unlink()
    assert sweep_objects(inst, LATER).files == 2
    assert set(states(inst).values()) == {"deleted"}


def test_a_file_that_came_back_although_its_row_is_deleted_is_swept_again(inst: Installation, tmp_path: Path) -> None:
    _, lost = a_unit(inst, tmp_path, "lost.pdf", "left")
    leave_behind(inst, tmp_path, lost)
    sweep_objects(inst, LATER)
    file_of(inst, "left").write_text("left")
    assert sweep_objects(inst, LATER + GRACE).files == 1
    assert not file_of(inst, "left").exists()


@pytest.mark.parametrize("recorded", [True, False], ids=["known", "unknown"])
def test_files_that_are_swept_between_storing_and_recording_are_put_again(
    inst: Installation, tmp_path: Path, recorded: bool
) -> None:
    taken, told = a_unit(inst, tmp_path, "a.pdf", "tern", "gull")
    leave_behind(inst, tmp_path, told, recorded=recorded)
    store_pictures(inst, tmp_path, told)
    assert sweep_objects(inst, LATER).files == 2
    with pytest.raises(ObjectsSwept):
        record(inst, taken, told)
    assert publish(inst, tmp_path, taken, told) == 1
    assert {file_of(inst, text).read_text() for text in ("tern", "gull")} == {"tern", "gull"}
    with inst.ledger.read() as conn:
        facts = conn.execute(select(objects.c.media_type, objects.c.width, objects.c.state).distinct()).tuples().all()
    assert facts == [("image/jpeg", 60, "stored")], "a row that the sweep made says again what the file is"


def test_a_sweep_waits_for_a_publication_that_is_about_to_name_a_file(inst: Installation, tmp_path: Path) -> None:
    taken, told = a_unit(inst, tmp_path, "a.pdf", "tern")
    leave_behind(inst, tmp_path, told)
    swept: list[SweptObjects] = []
    sweeper = threading.Thread(target=lambda: swept.append(sweep_objects(inst, LATER)))
    with inst.ledger.begin() as tx:
        hold_objects(tx, told.pictures, NOW)
        sweeper.start()
        sweeper.join(0.5)
        assert sweeper.is_alive(), "it must not delete what is held"
        publication.publish_unit(tx, taken, told, publication.Timings(), 0, NOW)
    sweeper.join(30)
    assert swept == [SweptObjects()]
    assert file_of(inst, "tern").exists()
    assert states(inst) == {sha("tern"): "stored"}


class Unhurried(FolderStore):
    """Takes its time between being asked to delete a file and doing it."""

    asked = threading.Event()
    go_on = threading.Event()

    def delete(self, key: str) -> None:
        self.asked.set()
        self.go_on.wait(30)
        super().delete(key)


def test_a_publication_waits_for_a_file_that_is_just_being_deleted_and_puts_it_again(
    inst: Installation, tmp_path: Path
) -> None:
    taken, told = a_unit(inst, tmp_path, "a.pdf", "tern")
    leave_behind(inst, tmp_path, told)
    slow = Unhurried(Path(inst.settings.store_address("archive")), name="archive")
    slow.asked, slow.go_on = threading.Event(), threading.Event()
    with ThreadPoolExecutor(2) as threads:
        sweeping = threads.submit(sweep_objects, replace(inst, archive=slow), LATER)
        assert slow.asked.wait(30)
        publishing = threads.submit(publish, inst, tmp_path, taken, told)
        assert not publishing.done()
        slow.go_on.set()
        assert sweeping.result(30).files == 1
        publishing.result(30)
    assert file_of(inst, "tern").read_text() == "tern"
    assert states(inst) == {sha("tern"): "stored"}


def test_while_everything_is_swept_all_the_time_no_record_ever_names_nothing(
    inst: Installation, tmp_path: Path
) -> None:
    units = [a_unit(inst, tmp_path, f"{n}.pdf", f"first of {n}", f"second of {n}") for n in range(12)]
    for number, (_, told) in enumerate(units):
        leave_behind(inst, tmp_path, told, recorded=bool(number % 2))
    done = threading.Event()

    def sweep() -> int:
        count = 0
        while not done.is_set():
            count += sweep_objects(inst, LATER).files
        return count

    with ThreadPoolExecutor(4) as threads:
        sweeping = threads.submit(sweep)
        attempts = list(threads.map(lambda unit: publish(inst, tmp_path, *unit), units))
        done.set()
        assert sweeping.result(60) >= 0
    assert len(attempts) == 12
    with inst.ledger.read() as conn:
        named = set(conn.execute(select(placements.c.picture)).scalars())
    assert named == {sha(f"{place} of {n}") for n in range(12) for place in ("first", "second")}
    assert set(states(inst).values()) == {"stored"}
    assert all(inst.archive.entry(object_key(digest)).bytes for digest in named)


def test_a_known_file_that_is_gone_or_cut_is_put_again_before_a_second_document_relies_on_it(
    inst: Installation, tmp_path: Path
) -> None:
    taken, told = a_unit(inst, tmp_path, "a.pdf", "tern", "gull", "plover")
    publish(inst, tmp_path, taken, told)
    file_of(inst, "tern").unlink()
    file_of(inst, "gull").chmod(0o600)
    file_of(inst, "gull").write_text("gul")
    taken, told = a_unit(inst, tmp_path, "b.pdf", "tern", "gull", "plover")
    publish(inst, tmp_path, taken, told)
    assert [file_of(inst, text).read_text() for text in ("tern", "gull", "plover")] == ["tern", "gull", "plover"]
    with inst.ledger.read() as conn:
        query = select(audit_events.c.payload).where(audit_events.c.type == "object_repaired")
        told_of = {row["sha256"]: row["found_bytes"] for row in map(json.loads, conn.execute(query).scalars())}
    assert told_of == {sha("tern"): None, sha("gull"): 3}


def test_a_grace_time_is_counted_from_when_a_file_was_last_put(inst: Installation, tmp_path: Path) -> None:
    _, lost = a_unit(inst, tmp_path, "lost.pdf", "left")
    leave_behind(inst, tmp_path, lost)
    with inst.ledger.begin() as tx:
        tx.execute(update(objects).values(stored_at=LATER - timedelta(hours=1)))
    assert sweep_objects(inst, LATER).files == 0
