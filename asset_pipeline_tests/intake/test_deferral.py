"""A bulk import comes in no faster than it is worked, and everybody can see when the rest of it will."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from asset_pipeline.intake.admission import admit_month
from asset_pipeline.intake.deferral import deferrals
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.ledger.uploads import UploadState, list_uploads
from asset_pipeline_tests.intake.conftest import on_both, pdf

SIZE = 1_000
CAP = 3 * SIZE


@pytest.fixture
def capped(inst):
    """An installation that lets a collection have three of these documents queued."""
    return replace(inst, settings=inst.settings.model_copy(update={"queued_bytes": CAP}))


def drop(inst, collection, *names, month="2026-03", size=SIZE):
    for name in names:
        key = f"{collection}/{month}/{name}.pdf"
        inst.inbox.put_current(key, pdf(key).ljust(size, b"."))


def admit(inst, clock, month="2026-03"):
    return admit_month(inst, month, clock, wait=False)


def end_some(inst, clock, count):
    """End that many jobs, as work would, each after a minute."""
    with inst.ledger.begin() as tx:
        found = jobs.select().where(jobs.c.state == "queued").order_by(jobs.c.job_id).limit(count)
        for job in tx.execute(found).all():
            began = clock()
            clock.advance(60)
            ended = jobs.update().where(jobs.c.job_id == job.job_id)
            tx.execute(ended.values(state="succeeded", started_at=began, finished_at=clock()))


def deferred(inst, clock):
    with inst.ledger.read() as conn:
        held = deferrals(inst, conn, clock())
        waiting = list_uploads(conn, states=[UploadState.WAITING])
    return {upload.name.removesuffix(".pdf"): held[upload.upload_id] for upload in waiting if upload.upload_id in held}


@on_both
def test_a_bulk_import_is_deferred_beyond_its_cap_and_holds_up_no_other_collection(capped, clock):
    drop(capped, "bulk", *"abcdefgh")
    drop(capped, "desk", "memo")
    first = admit(capped, clock)
    assert (first.admitted, first.deferred) == (4, 5)
    held = deferred(capped, clock)
    assert list(held) == list("defgh")
    assert [held[name].bytes_before for name in "def"] == [SIZE, 2 * SIZE, 3 * SIZE]
    assert held["d"].expected_at is None, "nothing was worked yet, so nobody can tell"
    end_some(capped, clock, 4)
    assert admit(capped, clock).admitted == 3
    assert list(deferred(capped, clock)) == list("gh")


def test_a_deferred_upload_is_told_with_the_hour_at_which_it_is_taken(capped, clock):
    drop(capped, "bulk", *"abcde")
    admit(capped, clock)
    end_some(capped, clock, 1)
    take_inventory(capped, clock())
    held = deferred(capped, clock)["e"]
    assert held.expected_at == clock() + timedelta(minutes=1), "one was worked in a minute, and one more has to be"
    assert held.meaning == "Its collection has 2,000 bytes queued or in work, and may have 3,000 bytes."
    assert held.remedy.endswith(f"about {held.expected_at:%Y-%m-%d %H:%M} UTC.")


def test_a_document_larger_than_the_cap_comes_in_when_nothing_else_is_queued(capped, clock):
    drop(capped, "bulk", "a")
    drop(capped, "bulk", "b", size=5 * SIZE)
    drop(capped, "bulk", "c")
    assert admit(capped, clock).admitted == 1
    assert list(deferred(capped, clock)) == ["b", "c"], "and no smaller one overtakes it"
    end_some(capped, clock, 1)
    assert admit(capped, clock).admitted == 1
    assert list(deferred(capped, clock)) == ["c"]


def test_a_month_is_news_again_when_there_is_room_and_not_with_every_document_that_ends(capped, clock):
    drop(capped, "bulk", *"abcdef")
    admit(capped, clock)
    assert take_inventory(capped, clock()).news == {}, "no run is asked for that could take nothing"
    end_some(capped, clock, 1)
    news = take_inventory(capped, clock()).news
    assert list(news) == ["2026-03"]
    end_some(capped, clock, 1)
    assert take_inventory(capped, clock()).news == news, "one run is enough"
    # Another month takes the room before that run begins: the same uploads must be asked for once more.
    drop(capped, "bulk", "x", "y", month="2026-02")
    admit(capped, clock, "2026-02")
    assert admit(capped, clock).admitted == 0
    end_some(capped, clock, 3)
    later = take_inventory(capped, clock()).news
    assert list(later) == ["2026-03"] and later != news
