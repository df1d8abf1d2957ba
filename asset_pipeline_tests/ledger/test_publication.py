from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import delete, insert, update
from sqlalchemy.exc import DBAPIError

from asset_pipeline.errors import IntegrityError
from asset_pipeline.ledger import publication, reading, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.objects import ObjectsSwept, lock_object, mark_stored, object_states
from asset_pipeline.ledger.schema import (
    attempts,
    audit_events,
    objects,
    pages,
    placements,
    quarantine,
    receipts,
)
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.model import Flag, Kind, Page, Status
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    NOW,
    claim,
    claim_next,
    extraction,
    page,
    placement,
    publish,
    rows,
    sha,
    start,
)

RESULT = (objects, receipts, placements, pages, quarantine)


def everything(ledger: Ledger) -> dict:
    return {table.name: rows(ledger, table) for table in RESULT}


def two_pages() -> list[Page]:
    figure = placement(2, 1, "chart", name="page-002-figure-001", kind=Kind.VECTOR_FIGURE, flags=[Flag.CLIPPED])
    return [page(1, placement(1, 1, "tern"), placement(1, 2, None)), page(2, placement(2, 1, "tern"), figure)]


def requeue(ledger: Ledger) -> None:
    """As an operator would: the unit is to be worked again."""
    with ledger.begin() as tx:
        tx.execute(update(units_table).values(state="queued"))


def test_everything_a_unit_delivered_is_recorded_at_once(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2)
    taken = claim_next(ledger)
    assert publish(ledger, taken, *two_pages()) == publication.Publication(receipts_added=3, acknowledged=0)
    assert [row["state"] for row in rows(ledger, units_table)] == ["done"]
    assert {row["sha256"] for row in rows(ledger, objects)} == {sha("tern"), sha("chart")}
    named = [row["asset_index"] for row in rows(ledger, receipts)]
    assert named == ["page-001-image-001", "page-002-figure-001", "page-002-image-001"]
    (held,) = rows(ledger, quarantine)
    assert (held["name"], held["reason"], held["state"]) == ("page-001-image-002", "truncated_stream", "held")
    (attempt,) = rows(ledger, attempts)
    assert (attempt["outcome"], attempt["decode_ms"], attempt["bytes_written"]) == ("published", 2, 500)
    event = rows(ledger, audit_events)[-1]
    counts = json.loads(event["payload"])
    assert (event["type"], event["job_id"]) == ("unit_published", job_id)
    assert (counts["pages"], counts["placements"], counts["receipts_added"]) == (2, 4, 3)
    assert counts["quarantined"] == {"truncated_stream": 1}


def test_pages_are_read_back_as_they_were_extracted(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2)
    told = two_pages()
    publish(ledger, claim_next(ledger), *told)
    with ledger.read() as conn:
        assert reading.pages_of(conn, job_id) == told


def test_what_a_database_cannot_hold_is_replaced_on_every_database_alike(ledger: Ledger) -> None:
    job_id = start(ledger)
    hostile = placement(1, 1, None, width=10**30, object_id=2**62, caption="a\0b\ud800c", filter=["\udfffDCT"])
    told = page(1, hostile).model_copy(update={"label": "i\0"})
    publish(ledger, claim_next(ledger), told)
    with ledger.read() as conn:
        (found,) = reading.pages_of(conn, job_id)
    row = found.placements[0]
    assert (found.label, row.caption, row.filter) == ("i\ufffd", "a\ufffdb\ufffdc", ["\ufffdDCT"])
    assert (row.width, row.object_id) == (2**53 - 1, 2**53 - 1)


def test_same_result_again_is_acknowledged_and_changes_nothing(ledger: Ledger) -> None:
    start(ledger, pages=2)
    publish(ledger, claim_next(ledger), *two_pages())
    before = everything(ledger)
    requeue(ledger)
    again = publish(ledger, claim_next(ledger), *two_pages())
    assert again == publication.Publication(receipts_added=0, acknowledged=3)
    assert everything(ledger) == before
    assert [row["outcome"] for row in rows(ledger, attempts)] == ["published", "acknowledged"]


@pytest.mark.parametrize("changed", ["picture", "display", "missing"])
def test_other_result_is_an_incident_that_is_recorded_and_overwrites_nothing(ledger: Ledger, changed: str) -> None:
    job_id = start(ledger, pages=2)
    publish(ledger, claim_next(ledger), *two_pages())
    before = everything(ledger)
    requeue(ledger)
    first = {
        "picture": placement(1, 1, "gull"),
        "display": placement(1, 1, "tern", display=sha("other")),
        "missing": placement(1, 1, None),
    }[changed]
    second = claim_next(ledger)
    with pytest.raises(IntegrityError) as caught:
        publish(ledger, second, page(1, first, placement(1, 2, None)), two_pages()[1])
    assert caught.value.reason is Reason.RECEIPT_CONFLICT
    assert everything(ledger) == before
    event = rows(ledger, audit_events)[-1]
    payload = json.loads(event["payload"])
    assert (event["type"], event["job_id"]) == ("receipt_conflict", job_id)
    assert (payload["assets"], payload["fence"]) == (["page-001-image-001"], 2)
    with ledger.begin() as tx:  # the unit is still ours to end
        units.fail_unit(tx, second, Reason.RECEIPT_CONFLICT, NOW)


def test_receipt_is_unique_per_job_and_asset_and_never_changed(ledger: Ledger) -> None:
    start(ledger)
    publish(ledger, claim_next(ledger), page(1, placement(1)))
    (receipt,) = rows(ledger, receipts)
    with pytest.raises(DBAPIError), ledger.begin() as tx:
        tx.execute(insert(receipts).values(**receipt))
    for statement in (update(receipts).values(content_hash=sha("gull")), delete(receipts)):
        with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as tx:
            tx.execute(statement)
    assert rows(ledger, receipts) == [receipt]


def test_picture_shared_by_two_documents_is_one_object_with_two_receipts(ledger: Ledger) -> None:
    for name in ("one.pdf", "two.pdf"):
        start(ledger, name)
        publish(ledger, claim_next(ledger), page(1, placement(1, 1, "tern")))
    assert len(rows(ledger, objects)) == 1
    assert len(rows(ledger, receipts)) == 2


@pytest.mark.parametrize("state", ["deleting", "deleted"])
def test_object_that_is_being_deleted_is_relied_upon_only_when_it_was_put_again(ledger: Ledger, state: str) -> None:
    start(ledger, pages=2, per_unit=1)
    publish(ledger, claim_next(ledger), page(1, placement(1)))
    with ledger.begin() as tx:
        tx.execute(update(objects).values(state=state))
    second = claim_next(ledger)
    before = everything(ledger)
    with pytest.raises(ObjectsSwept):
        publish(ledger, second, page(2, placement(2)))
    assert everything(ledger) == before
    (picture,) = extraction(second, [page(2, placement(2))]).pictures
    with ledger.begin() as tx:
        assert lock_object(tx, picture.sha256) == state
        mark_stored(tx, picture, NOW)
    publish(ledger, second, page(2, placement(2)))
    with ledger.read() as conn:
        assert object_states(conn, [sha("tern"), sha("gull")]) == {sha("tern"): "stored"}


def test_publications_that_share_pictures_do_not_block_each_other_for_ever(ledger: Ledger) -> None:
    start(ledger, pages=8, per_unit=1)
    taken = [claim_next(ledger) for _ in range(8)]
    shared = [f"picture {n}" for n in range(40)]

    def one(held: units.Claim) -> int:
        number = held.first_page
        order = shared if number % 2 else shared[::-1]
        placed = [placement(number, n, name) for n, name in enumerate(order, start=1)]
        return publish(ledger, held, page(number, *placed)).receipts_added

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(one, taken)) == [40] * 8


@pytest.mark.parametrize(
    "changes",
    [
        {"extractor_version": "pdf/2"},
        {"outcome": Reason.MALFORMED_DOCUMENT},
        {"pictures": []},
        {"pages": []},
        {"pages": [page(1, placement(1)), page(1)]},
        {"pages": [page(1, placement(1)), page(2)]},
    ],
)
def test_result_that_is_not_one_of_this_unit_is_refused_whole(ledger: Ledger, changes: dict) -> None:
    start(ledger)
    taken = claim_next(ledger)
    result = extraction(taken, [page(1, placement(1))]).model_copy(update=changes)
    with pytest.raises(IntegrityError), ledger.begin() as tx:
        publication.publish_unit(tx, taken, result, publication.Timings(), 0, NOW)
    assert not any(everything(ledger).values())
    assert rows(ledger, units_table)[0]["state"] == "running"


def test_result_of_other_bytes_is_refused(ledger: Ledger) -> None:
    start(ledger)
    taken = claim_next(ledger)
    result = extraction(taken, [page(1)])
    result = result.model_copy(update={"source": result.source.model_copy(update={"sha256": sha("other")})})
    with pytest.raises(IntegrityError) as caught, ledger.begin() as tx:
        publication.publish_unit(tx, taken, result, publication.Timings(), 0, NOW)
    assert caught.value.reason is Reason.SOURCE_HASH_MISMATCH


def test_page_without_pictures_and_page_that_could_not_be_read_are_recorded_too(ledger: Ledger) -> None:
    job_id = start(ledger, pages=2)
    unread = Page(page=2, drawn=None, reason=Reason.CONTENT_BUDGET_EXCEEDED)
    publish(ledger, claim_next(ledger), page(1), unread)
    with ledger.read() as conn:
        assert reading.pages_of(conn, job_id) == [page(1), unread]


def test_paused_worker_that_wakes_late_loses_and_the_second_ends_well(ledger: Ledger) -> None:
    from datetime import timedelta

    from asset_pipeline.errors import LeaseLost

    job_id = start(ledger)
    paused = claim_next(ledger)
    second = claim(ledger, paused.unit_id, NOW + timedelta(seconds=90))
    assert second is not None
    result = page(1, placement(1))
    publish(ledger, second, result)
    with pytest.raises(LeaseLost):
        publish(ledger, paused, result)
    assert len(rows(ledger, receipts)) == 1
    published = [row for row in rows(ledger, audit_events) if row["type"] == "unit_published"]
    assert [row["job_id"] for row in published] == [job_id]


def test_quarantined_original_of_a_hidden_picture_has_no_receipt_but_a_hidden_one_has(ledger: Ledger) -> None:
    start(ledger)
    hidden = placement(1, 1, "hidden", status=Status.NOT_SHOWN, display=None, flags=[Flag.HIDDEN_LAYER])
    publish(ledger, claim_next(ledger), page(1, hidden, placement(1, 2, None)))
    assert [row["asset_index"] for row in rows(ledger, receipts)] == ["page-001-image-001"]
