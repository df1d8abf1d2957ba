"""Gallery and catalogue are left alone while nothing is new, and made again when anything is that they are made of."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, Table, select, update

from asset_pipeline.archive.catalogue import catalogue_key, publish_catalogue
from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger.schema import jobs, objects, pages, placements
from asset_pipeline.settings import load_settings
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import DecoderPreviews, open_previews
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings

NOTES = (f"galleries/{MONTH}/made_from.json", f"catalogue/made_from/{MONTH}.json")
HEAD = f"galleries/{MONTH}/month.js"
TABLES = tuple(catalogue_key(table, MONTH) for table in ("pictures", "pages"))


class Made(NamedTuple):
    """From what both were made, and how many files were written."""

    gallery: str
    catalogue: str
    written: tuple[int, int]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of an installation with both, made once and copied: a decoder takes longer than all that is looked at."""
    settings = fresh_settings(tmp_path_factory.mktemp("made"))
    drop_document(settings, "a.pdf", [10, 20], broken_picture=True)
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, utc_now, wait=True)
        work_month(inst, MONTH)
        publish(inst)
    return settings.home


@pytest.fixture
def inst(made: Path, tmp_path: Path) -> Iterator[Installation]:
    shutil.copytree(made, tmp_path / "home")
    with open_installation(load_settings(home=tmp_path / "home", settle_seconds=0, workers=2)) as opened:
        yield opened


@pytest.fixture
def archive(inst: Installation) -> Path:
    return Path(inst.settings.store_address("archive"))


def publish(inst: Installation) -> Made:
    gallery = publish_gallery(inst, MONTH, lambda: open_previews(inst, 1))
    catalogue = publish_catalogue(inst, MONTH)
    archive = Path(inst.settings.store_address("archive"))
    notes = [json.loads((archive / note).read_bytes())["made_from"] for note in NOTES]
    return Made(*notes, (gallery.written, catalogue.written))


def contents(archive: Path) -> dict[str, tuple[int, bytes]]:
    shown = [path for room in ("galleries", "catalogue") for path in (archive / room).rglob("*") if path.is_file()]
    return {path.relative_to(archive).as_posix(): (path.stat().st_mtime_ns, path.read_bytes()) for path in shown}


def test_nothing_is_touched_and_no_decoder_started_while_nothing_is_new(inst: Installation, archive: Path) -> None:
    before = contents(archive)
    first = publish_gallery(inst, MONTH, no_decoder), publish_catalogue(inst, MONTH)
    assert contents(archive) == before
    for note in NOTES:
        (archive / note).unlink()
    again = publish_gallery(inst, MONTH, no_decoder), publish_catalogue(inst, MONTH)
    assert again == first, "what is told of files that were left alone is what is told of them when made"
    assert {name: body for name, (_, body) in contents(archive).items()} == {
        name: body for name, (_, body) in before.items()
    }


@pytest.mark.parametrize("lost", [HEAD, *TABLES, "data", "thumbnails", "pages"])
def test_a_file_that_is_gone_is_made_again(inst: Installation, archive: Path, lost: str) -> None:
    place = archive / lost if "." in lost else next((archive / "galleries" / MONTH / lost).iterdir())
    body = place.read_bytes()
    place.unlink()
    assert sum(publish(inst).written) == 1
    assert place.read_bytes() == body


def test_a_damaged_file_of_a_gallery_is_mended_by_making_it_anew(inst: Installation, archive: Path) -> None:
    before = {name: body for name, (_, body) in contents(archive).items()}
    for room in ("thumbnails", "data"):
        place = next((archive / "galleries" / MONTH / room).iterdir())
        place.write_bytes(bytes([place.read_bytes()[0] ^ 1]) + place.read_bytes()[1:])
    publish_gallery(inst, MONTH, lambda: open_previews(inst, 1), anew=True)
    assert {name: body for name, (_, body) in contents(archive).items()} == before


@pytest.mark.parametrize("altered", [HEAD, *TABLES])
def test_a_file_that_keeps_its_name_and_length_but_not_its_bytes_is_made_again(
    inst: Installation, archive: Path, altered: str
) -> None:
    body = (archive / altered).read_bytes()
    (archive / altered).write_bytes(bytes([body[0] ^ 1]) + body[1:])
    assert sum(publish(inst).written) == 1
    assert (archive / altered).read_bytes() == body


def test_a_file_that_does_not_belong_there_goes_away(inst: Installation, archive: Path) -> None:
    (archive / "galleries" / MONTH / "stray.html").write_bytes(b"hello")
    publish(inst)
    assert not (archive / "galleries" / MONTH / "stray.html").exists()


@pytest.mark.parametrize("said", [b"", b"{}", b"[1]", b"\xff", b'{"made_from":1}'])
def test_a_note_that_is_none_is_no_reason_to_fail_or_to_leave_anything(
    inst: Installation, archive: Path, said: bytes
) -> None:
    before = contents(archive)
    for note in NOTES:
        (archive / note).write_bytes(said)
    (archive / HEAD).unlink()
    publish(inst)
    assert {name: body for name, (_, body) in contents(archive).items()} == {
        name: body for name, (_, body) in before.items()
    }


def test_a_new_document_changes_both(inst: Installation, archive: Path) -> None:
    before = publish(inst)
    drop_document(inst.settings, "b.pdf", [30])
    admit_month(inst, MONTH, utc_now, wait=True)
    work_month(inst, MONTH)
    assert all(publish(inst).written)
    assert publish(inst).written == (0, 0)
    assert publish(inst)[:2] != before[:2]


def test_a_document_that_waits_is_told_before_it_is_taken(inst: Installation, archive: Path) -> None:
    drop_document(inst.settings, "waiting.pdf", [20])
    take_inventory(inst, utc_now(), MONTH)
    assert publish(inst).written[0] > 0
    assert b"waiting.pdf" in (archive / HEAD).read_bytes()


def captioned(tx: Connection) -> None:
    detail = tx.execute(select(placements.c.detail).limit(1)).scalar_one()
    tx.execute(update(placements).values(detail=detail | {"caption": "Figure 1"}))


def with_values(table: Table, **values: Any) -> Callable[[Connection], Any]:
    return lambda tx: tx.execute(update(table).values(**values))


CHANGES = {
    "pictures are released": with_values(placements, status="archived", reason=None),
    "pictures have a caption": captioned,
    "pages are called otherwise": with_values(pages, label="i"),
    "files look otherwise": with_values(objects, phash="0000"),
    "the report was deleted": with_values(jobs, expired_at=utc_now()),
    "the report was given up": with_values(jobs, state="dead_lettered", reason="retries_exhausted"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_the_ledger_says_otherwise_is_told_otherwise(inst: Installation, archive: Path, what: str) -> None:
    before = publish(inst)
    with inst.ledger.begin() as tx:
        CHANGES[what](tx)
    after = publish(inst)
    assert after.gallery != before.gallery
    assert after.catalogue != before.catalogue
    assert after.written[1] > 0


def test_a_policy_that_hides_names_hides_them_in_what_is_there_already(inst: Installation, archive: Path) -> None:
    opaque = replace(inst, policy=inst.policy.model_copy(update={"show_names": False}))
    assert b"a.pdf" in (archive / HEAD).read_bytes()
    assert all(publish(opaque).written)
    assert b"a.pdf" not in (archive / HEAD).read_bytes()


def test_another_version_of_the_program_makes_both_again(
    inst: Installation, archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, head = publish(inst), (archive / HEAD).read_bytes()
    monkeypatch.setattr("asset_pipeline.archive.made_from.program_digest", lambda: "another")
    after = publish(inst)
    assert (after.gallery != before.gallery, after.catalogue != before.catalogue) == (True, True)
    assert (after.written, (archive / HEAD).read_bytes()) == ((0, 0), head), "made again, and the same"


@contextmanager
def no_decoder() -> Iterator[DecoderPreviews]:
    raise AssertionError("a decoder was started")
    yield
