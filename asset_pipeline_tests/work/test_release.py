"""A person decides about pictures that were held back."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select

from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.archive.publish import withheld_key
from asset_pipeline.errors import UsageError
from asset_pipeline.evidence.actor import Actor, acting_as
from asset_pipeline.installation import Installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.quarantine import HeldPicture, find_picture, held_pictures, reject_picture
from asset_pipeline.ledger.schema import audit_events, receipts
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.retention.clocks import due_in_quarantine
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.month import work_month
from asset_pipeline.work.release import Review, review_picture
from asset_pipeline_tests.small_documents import MONTH, drop_document

PERSON = Actor("ada", "claimed")


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def hold(inst: Installation) -> Callable[..., list[HeldPicture]]:
    """Work a document under a policy that allows no picture of more than ten pixels; what is held then."""

    def run(colours: list[int], **how: bool) -> list[HeldPicture]:
        strict = replace(inst, policy=Policy(limits=Limits(pixels=10)))
        drop_document(inst.settings, "a.pdf", colours, **how)
        admit_month(strict, MONTH, now, wait=True)
        work_month(strict, MONTH)
        publish_manifests(strict, MONTH, now())
        with inst.ledger.read() as conn:
            return held_pictures(conn, MONTH)

    return run


def events(inst: Installation, kind: str) -> list:
    with inst.ledger.read() as conn:
        return list(conn.execute(select(audit_events).where(audit_events.c.type == kind)))


def test_a_picture_that_passes_the_policy_of_today_is_archived_with_a_new_edition(
    inst: Installation, hold: Callable
) -> None:
    first, _ = hold([10, 20])
    assert (first.name, first.reason) == ("page-001-image-001", Reason.PIXEL_BUDGET_EXCEEDED)
    with acting_as(PERSON):
        assert review_picture(inst, first).reason is None
    with inst.ledger.read() as conn:
        (document,) = reading.documents_of_month(conn, MONTH)
        one, other = reading.pages_of(conn, document.job_id)
        (receipt,) = conn.execute(select(receipts)).all()
        decided = find_picture(conn, first.job_id, first.name)
    assert (one.archived, one.quarantined, other.archived, other.quarantined) == (1, 0, 0, 1)
    assert (document.drawn, document.unaccounted) == (2, 0)
    assert receipt.asset_index == first.name
    assert inst.archive.exists(object_key(receipt.content_hash))
    assert decided is not None and (decided.state, decided.decided_by) == ("released", "ada")
    (manifest,) = publish_manifests(inst, MONTH, now())
    assert (manifest.edition, manifest.written) == (2, True)
    (event,) = events(inst, "picture_released")
    assert "ada" in event.payload and inst.policy.digest in event.payload
    told = [event.payload for event in events(inst, "policy_changed")]
    assert [inst.policy.digest in payload for payload in told] == [False, True], "first used by the release"


def test_a_system_without_a_cage_releases_as_well(
    inst: Installation, hold: Callable, caplog: pytest.LogCaptureFixture
) -> None:
    (held,) = hold([10])
    without = replace(inst, settings=inst.settings.model_copy(update={"sandbox": False}))
    assert review_picture(without, held).reason is None
    assert "documents are read without a cage" in caplog.text


def test_its_bytes_are_kept_as_the_document_stores_them_and_are_in_no_manifest(
    inst: Installation, hold: Callable
) -> None:
    """Twice the same picture is one file; a picture whose bytes are gone has none."""
    one, same, other, broken = hold([10, 10, 20], broken_picture=True)
    assert one.sha256 == same.sha256 != other.sha256 and broken.sha256 is not None
    for picture in (one, other, broken):
        with inst.quarantine.open(withheld_key(picture.sha256)) as stream:
            stored = stream.read()
        assert (hashlib.sha256(stored).hexdigest(), len(stored)) == (picture.sha256, picture.bytes)
    with inst.quarantine.open(withheld_key(one.sha256)) as stream:
        assert zlib.decompress(stream.read()) == bytes([10, 245, 90]) * 64
    kept = {entry.key for entry in inst.quarantine.list()}
    assert kept == {withheld_key(picture.sha256) for picture in (one, other, broken)}
    ended = now() + timedelta(days=inst.policy.retention.working_days, minutes=1)
    assert {entry.key for entry in due_in_quarantine(inst, ended)} == kept, "gone with the working clock"
    for entry in inst.archive.list():
        with inst.archive.open(entry.key) as stream:
            text = stream.read()
        assert not any(picture.sha256.encode() in text for picture in (one, other, broken))


def test_two_releases_of_the_same_picture_are_one_archived_and_one_repeat(inst: Installation, hold: Callable) -> None:
    for picture in reversed(hold([10, 10])):
        review_picture(inst, picture)
    with inst.ledger.read() as conn:
        (document,) = reading.documents_of_month(conn, MONTH)
        pages = reading.pages_of(conn, document.job_id)
    assert [(page.archived, page.collapsed) for page in pages] == [(1, 0), (0, 1)]


def test_a_picture_that_still_fails_says_why_and_changes_nothing(inst: Installation, hold: Callable) -> None:
    broken = hold([], broken_picture=True)[0]
    review = review_picture(inst, broken)
    assert review == Review(Reason.TRUNCATED_STREAM)
    with inst.ledger.read() as conn:
        assert [picture.name for picture in held_pictures(conn)] == [broken.name]
        assert conn.execute(select(receipts)).all() == []
    (manifest,) = publish_manifests(inst, MONTH, now())
    assert (manifest.edition, manifest.written) == (1, False)
    assert events(inst, "picture_released") == []


def test_a_rejection_is_recorded_with_who_and_when_and_is_final(inst: Installation, hold: Callable) -> None:
    (picture,) = hold([10])
    with acting_as(PERSON), inst.ledger.begin() as tx:
        assert reject_picture(tx, picture, now())
    with inst.ledger.begin() as tx:
        assert not reject_picture(tx, picture, now())
    with inst.ledger.read() as conn:
        decided = find_picture(conn, picture.job_id, picture.name)
        assert held_pictures(conn) == []
        assert [row.state for row in held_pictures(conn, states=("rejected",))] == ["rejected"]
    assert decided is not None and decided.decided_by == "ada" and decided.decided_at is not None
    assert len(events(inst, "picture_rejected")) == 1
    with pytest.raises(UsageError, match="rejected already"):
        review_picture(inst, decided)
    with pytest.raises(UsageError, match="Somebody else"):
        review_picture(inst, picture)
