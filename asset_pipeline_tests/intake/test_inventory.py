"""What the inbox holds, as the ledger remembers it."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from asset_pipeline.errors import StorageError
from asset_pipeline.installation import open_installation
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger.uploads import UploadState, list_uploads
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline_tests.intake.conftest import on_both, pdf


def states(inst, month=None):
    with inst.ledger.read() as conn:
        return [(upload.key, upload.state) for upload in list_uploads(conn, month=month)]


def test_a_file_settles_between_two_sightings_that_are_far_enough_apart(patient, clock):
    patient.inbox.put_current("team/2026-03/a.pdf", pdf())
    first = take_inventory(patient, clock())
    clock.advance(9.9)
    second = take_inventory(patient, clock())
    assert [len(first.waiting), len(second.waiting)] == [1, 1]
    assert first.news == second.news == {}
    clock.advance(0.1)
    third = take_inventory(patient, clock())
    assert third.waiting == []
    assert list(third.news) == ["2026-03"]


def test_one_sighting_long_ago_is_not_enough(patient, clock):
    patient.inbox.put_current("team/2026-03/a.pdf", pdf())
    clock.advance(3600)
    assert take_inventory(patient, clock()).news == {}


def test_without_a_settle_time_the_first_sighting_is_enough(inst, clock):
    inst.inbox.put_current("team/2026-03/a.pdf", pdf())
    assert list(take_inventory(inst, clock()).news) == ["2026-03"]


@on_both
def test_a_file_that_changes_while_it_waits_starts_anew(patient, clock):
    patient.inbox.put_current("team/2026-03/a.pdf", pdf("half"))
    take_inventory(patient, clock())
    clock.advance(10)
    patient.inbox.put_current("team/2026-03/a.pdf", pdf("half and the other half"))
    assert len(take_inventory(patient, clock()).waiting) == 1
    assert sorted(states(patient)) == [
        ("team/2026-03/a.pdf", UploadState.SUPERSEDED),
        ("team/2026-03/a.pdf", UploadState.WAITING),
    ]
    clock.advance(10)
    assert list(take_inventory(patient, clock()).news) == ["2026-03"]


@on_both
def test_a_file_that_is_taken_away_is_superseded_and_settles_anew_when_it_returns(patient, clock, tmp_path):
    patient.inbox.put_current("team/2026-03/a.pdf", pdf())
    take_inventory(patient, clock())
    patient.inbox.delete("team/2026-03/a.pdf")
    clock.advance(10)
    assert take_inventory(patient, clock()).files == 0
    assert states(patient) == [("team/2026-03/a.pdf", UploadState.SUPERSEDED)]
    patient.inbox.put_current("team/2026-03/a.pdf", pdf())
    clock.advance(10)
    assert len(take_inventory(patient, clock()).waiting) == 1


def test_news_stay_the_same_until_there_are_others(inst, clock):
    inst.inbox.put_current("team/2026-03/a.pdf", pdf("a"))
    inst.inbox.put_current("team/2026-02/b.pdf", pdf("b"))
    first = take_inventory(inst, clock()).news
    clock.advance(30)
    assert take_inventory(inst, clock()).news == first
    inst.inbox.put_current("team/2026-03/c.pdf", pdf("c"))
    later = take_inventory(inst, clock()).news
    assert later["2026-02"] == first["2026-02"]
    assert later["2026-03"] != first["2026-03"]


@on_both
def test_what_makes_no_sense_is_rejected_with_a_reason_and_never_news(inst, clock):
    for key in ("loose.pdf", "team/loose.pdf", "team/2026-13/a.pdf", "team/2026-04/future.pdf", "team/2026-03/b/a.pdf"):
        inst.inbox.put_current(key, pdf())
    inventory = take_inventory(inst, clock())
    assert {upload.key: upload.reason for upload in inventory.rejected} == {
        "loose.pdf": Reason.KEY_NOT_UNDERSTOOD,
        "team/loose.pdf": Reason.KEY_NOT_UNDERSTOOD,
        "team/2026-03/b/a.pdf": Reason.KEY_NOT_UNDERSTOOD,
        "team/2026-04/future.pdf": Reason.MONTH_OUT_OF_RANGE,
        "team/2026-13/a.pdf": Reason.MONTH_OUT_OF_RANGE,
    }
    assert inventory.news == {}


def test_a_document_that_came_too_early_is_taken_when_its_month_begins(inst, clock):
    inst.inbox.put_current("team/2026-04/early.pdf", pdf())
    assert len(take_inventory(inst, clock()).rejected) == 1
    clock.time = datetime(2026, 4, 1, tzinfo=UTC)
    inventory = take_inventory(inst, clock())
    assert inventory.rejected == []
    assert [upload.name for upload in inventory.settled["2026-04"]] == ["early.pdf"]


def test_a_misplaced_file_that_is_moved_away_is_no_longer_rejected(inst, clock):
    inst.inbox.put_current("loose.pdf", pdf())
    take_inventory(inst, clock())
    inst.inbox.delete("loose.pdf")
    clock.advance(1)
    assert take_inventory(inst, clock()).rejected == []
    assert states(inst) == [("loose.pdf", UploadState.SUPERSEDED)]


def test_litter_is_not_counted(inst, clock):
    for key in ("team/2026-03/.DS_Store", "team/2026-03/a.pdf.part", "team/2026-03/@eaDir/a.pdf"):
        inst.inbox.put_current(key, b"x")
    assert take_inventory(inst, clock()).files == 0
    assert states(inst) == []


def test_the_inventory_of_one_month_leaves_the_others_alone(patient, clock):
    for key in ("a/2026-02/x.pdf", "a/2026-03/x.pdf", "b/2026-03/y.pdf", "loose.pdf"):
        patient.inbox.put_current(key, pdf(key))
    assert take_inventory(patient, clock()).files == 4
    patient.inbox.delete("a/2026-02/x.pdf")
    patient.inbox.delete("a/2026-03/x.pdf")
    clock.advance(10)
    inventory = take_inventory(patient, clock(), "2026-03")
    assert [upload.key for upload in inventory.settled["2026-03"]] == ["b/2026-03/y.pdf"]
    assert dict(states(patient)) == {
        "a/2026-02/x.pdf": UploadState.WAITING,
        "a/2026-03/x.pdf": UploadState.SUPERSEDED,
        "b/2026-03/y.pdf": UploadState.WAITING,
        "loose.pdf": UploadState.REJECTED,
    }


@on_both
def test_looking_again_writes_nothing_once_everything_is_settled(inst, clock, monkeypatch):
    inst.inbox.put_current("team/2026-03/a.pdf", pdf())
    inst.inbox.put_current("loose.pdf", pdf())
    first = take_inventory(inst, clock())
    clock.advance(30)
    monkeypatch.setattr(type(inst.ledger), "begin", None)
    assert take_inventory(inst, clock()).news == first.news


def test_a_link_in_the_inbox_is_rejected_and_never_followed(tmp_path, clock):
    (tmp_path / "secret.pdf").write_bytes(pdf("secret"))
    folder = tmp_path / "home" / "inbox" / "team" / "2026-03"
    folder.mkdir(parents=True)
    (folder / "link.pdf").symlink_to(tmp_path / "secret.pdf")
    os.mkfifo(folder / "pipe.pdf")
    with open_installation(Settings(home=tmp_path / "home", settle_seconds=0)) as inst:
        inventory = take_inventory(inst, clock())
    assert {upload.name: upload.reason for upload in inventory.rejected} == dict.fromkeys(
        ("link.pdf", "pipe.pdf"), Reason.MEDIA_TYPE_NOT_ALLOWED
    )
    assert inventory.news == {}


def test_a_name_that_is_no_text_is_rejected_and_recorded(tmp_path, clock):
    folder = tmp_path / "home" / "inbox" / "team" / "2026-03"
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"\xff\xfe.pdf")).write_bytes(pdf())
    with open_installation(Settings(home=tmp_path / "home", settle_seconds=0)) as inst:
        inventory = take_inventory(inst, clock())
    assert [upload.key for upload in inventory.rejected] == ["team/2026-03/\\xff\\xfe.pdf"]


def test_a_missing_inbox_is_said_to_be_missing(tmp_path, clock):
    with open_installation(Settings(home=tmp_path / "home")) as inst, pytest.raises(StorageError, match="inbox folder"):
        take_inventory(inst, clock())


@on_both
def test_an_inventory_can_be_taken_by_several_at_once(inst, clock):
    for n in range(20):
        inst.inbox.put_current(f"team/2026-03/{n}.pdf", pdf(str(n)))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: take_inventory(inst, clock()).news, range(4)))
    assert all(news == found[0] for news in found)
    assert len(states(inst)) == 20


def test_names_that_differ_only_in_composition_are_two_files(tmp_path, clock):
    with open_installation(Settings(home=tmp_path / "home", settle_seconds=0)) as inst:
        inst.inbox.put_current("team/2026-03/\u00e9.pdf", pdf("1"))
        inst.inbox.put_current("team/2026-03/e\u0301.pdf", pdf("2"))
        assert len(take_inventory(replace(inst), clock()).settled["2026-03"]) == 2
