from __future__ import annotations

from datetime import timedelta

from sqlalchemy import insert

from asset_pipeline.ledger import jobs, reading, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import manifests
from asset_pipeline.model import Flag, Kind, Page, Status
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import (
    MONTH,
    NOW,
    add_upload,
    claim_next,
    finish,
    page,
    placement,
    publish,
    queue,
    sha,
    start,
)


def summary(ledger: Ledger, month: str = MONTH) -> reading.MonthSummary:
    with ledger.read() as conn:
        return reading.month_summary(conn, month)


def documents(ledger: Ledger) -> list[reading.DocumentRow]:
    with ledger.read() as conn:
        return reading.documents_of_month(conn, MONTH)


def publish_manifest(ledger: Ledger, document: reading.DocumentRow, edition: int, content: str) -> None:
    row = {
        "report_id": document.report_id,
        "edition": edition,
        "month": MONTH,
        "job_id": document.job_id,
        "content_digest": sha(content),
        "digest": sha(f"bytes of {content}"),
        "published_at": NOW,
    }
    with ledger.begin() as tx:
        tx.execute(insert(manifests).values(**row))


def test_month_of_which_nothing_is_known_is_empty(ledger: Ledger) -> None:
    empty = summary(ledger)
    assert (empty.documents, empty.pages, empty.archived, empty.object_bytes, empty.outcomes) == (0, 0, 0, 0, {})
    with ledger.read() as conn:
        assert reading.months(conn) == []
        assert reading.documents_of_month(conn, MONTH) == []
        assert reading.input_digest(conn, MONTH) == reading.content_digest(conn, MONTH)


def test_months_come_from_jobs_and_uploads(ledger: Ledger) -> None:
    queue(ledger, month="2026-07")
    with ledger.begin() as tx:
        add_upload(tx, "field-notes", "early.pdf", "waiting", month="2026-10")
        add_upload(tx, "field-notes", "bad.pdf", "rejected", month=None)
    with ledger.read() as conn:
        assert reading.months(conn) == ["2026-07", "2026-09", "2026-10"]


def a_month(ledger: Ledger) -> None:
    figure = placement(2, 1, "chart", name="page-002-figure-001", kind=Kind.VECTOR_FIGURE)
    hidden = placement(2, 2, "hidden", status=Status.NOT_SHOWN, display=None, flags=[Flag.HIDDEN_LAYER])
    tiny = placement(2, 3, "rule", status=Status.DECORATIVE)
    finish(
        ledger,
        "tides.pdf",
        page(1, placement(1, 1, "tern"), placement(1, 2, None), placement(1, 3, None, reason=Reason.TRAILING_DATA)),
        page(2, placement(2, 1, "tern"), figure, hidden, tiny),
        Page(page=3, drawn=None, reason=Reason.CONTENT_BUDGET_EXCEEDED),
    )
    finish(ledger, "minutes.pdf", page(1))
    locked = queue(ledger, "locked.pdf")
    crashing = queue(ledger, "crashing.pdf")
    with ledger.begin() as tx:
        jobs.refuse_job(tx, locked, Reason.ENCRYPTED, NOW)
        jobs.dead_letter_job(tx, crashing, Reason.DECODER_CRASHED, NOW)
        add_upload(tx, "field-notes", "copy.pdf", "duplicate")
        add_upload(tx, "field-notes", "notes.txt", "rejected", reason="key_not_understood")
        add_upload(tx, "field-notes", "growing.pdf", "waiting")
    queue(ledger, "waiting.pdf", "press-desk")
    start(ledger, "working.pdf", collection="press-desk")
    publish(ledger, claim_next(ledger), page(1, placement(1, 1, "early")))


def test_month_is_summed_over_its_documents_uploads_and_files(ledger: Ledger) -> None:
    a_month(ledger)
    found = summary(ledger)
    assert found.documents == 6
    assert found.outcomes == {
        "succeeded": 2,
        "failed_permanently": 1,
        "dead_lettered": 1,
        "queued": 1,
        "running": 1,
    }
    assert found.unfinished == 2
    assert (found.pages, found.unread_pages, found.unaccounted) == (4, 1, 0)
    counted = (found.drawn, found.archived, found.collapsed, found.decorative, found.not_shown, found.consumed)
    assert counted == (6, 1, 1, 1, 1, 0)
    assert (found.quarantined, found.derived) == (2, 1)
    assert found.quarantined_by_reason == {"truncated_stream": 1, "trailing_data": 1}
    assert found.refused_by_reason == {"encrypted": 1}
    assert found.dead_lettered_by_reason == {"decoder_crashed": 1}
    assert (found.objects, found.object_bytes) == (4, 2000)
    assert (found.duplicate_uploads, found.rejected_uploads, found.waiting_uploads) == (1, 1, 1)
    assert found.rejected_by_reason == {"key_not_understood": 1}
    assert found.source_bytes == 6000


def test_sums_of_a_month_are_the_sums_of_its_documents(ledger: Ledger) -> None:
    a_month(ledger)
    found, rows = summary(ledger), documents(ledger)
    for name in ("drawn", "archived", "collapsed", "decorative", "not_shown", "receipts", "unread_pages"):
        assert getattr(found, name) == sum(getattr(row, name) for row in rows)


def test_documents_come_by_collection_and_name_with_their_counts(ledger: Ledger) -> None:
    a_month(ledger)
    rows = documents(ledger)
    assert [(row.collection, row.name) for row in rows] == [
        ("field-notes", "crashing.pdf"),
        ("field-notes", "locked.pdf"),
        ("field-notes", "minutes.pdf"),
        ("field-notes", "tides.pdf"),
        ("press-desk", "waiting.pdf"),
        ("press-desk", "working.pdf"),
    ]
    tides = rows[3]
    assert (tides.state, tides.pages, tides.drawn, tides.quarantined, tides.receipts) == ("succeeded", 3, 6, 2, 5)
    assert (tides.source_bytes, tides.media_type, tides.edition) == (1000, "application/pdf", None)
    assert (rows[1].state, rows[1].reason, rows[1].drawn) == ("failed_permanently", "encrypted", 0)
    assert (rows[5].state, rows[5].drawn, rows[5].receipts) == ("running", 0, 1)


def test_missing_page_of_a_succeeded_job_is_unaccounted(ledger: Ledger) -> None:
    from sqlalchemy import delete, update

    from asset_pipeline.ledger.schema import pages

    finish(ledger, "tides.pdf", page(1), page(2, placement(2)), page(3))
    with ledger.begin() as tx:
        tx.execute(delete(pages).where(pages.c.page == 1))
        tx.execute(update(pages).where(pages.c.page == 2).values(drawn=5))
    assert summary(ledger).unaccounted == 2


def test_report_counts_once_by_its_newest_revision_and_extractor(ledger: Ledger) -> None:
    finish(ledger, "tides.pdf", page(1, placement(1, 1, "old bytes")))
    revised = sha("changed")
    finish(ledger, "tides.pdf", page(1, placement(1, 1, "tern")), source_hash=revised, revision=2, parent_revision=1)
    (row,) = documents(ledger)
    assert (row.revision, row.parent_revision, row.source_hash, row.archived) == (2, 1, revised, 1)
    with ledger.begin() as tx:
        new = {name: getattr(row, name) for name in jobs.NewJob.__slots__} | {"extractor_version": "pdf/2"}
        newer, _ = jobs.queue_job(tx, jobs.NewJob(**new), NOW + timedelta(days=1))
        jobs.queue_job(tx, jobs.NewJob(**new | {"revision": 1, "source_hash": sha("bytes of tides.pdf")}), NOW)
    (row,) = documents(ledger)
    assert (row.job_id, row.state, row.archived) == (newer, "queued", 0)
    assert summary(ledger).documents == 1


def test_pictures_of_a_job_are_its_files_each_once(ledger: Ledger) -> None:
    hidden = placement(2, 2, "hidden", status=Status.NOT_SHOWN, display=None)
    job_id = finish(
        ledger,
        "tides.pdf",
        page(1, placement(1, 1, "tern"), placement(1, 2, "cmyk", display=sha("shown"))),
        page(2, placement(2, 1, "tern"), hidden, placement(2, 3, None)),
    )
    with ledger.read() as conn:
        found = {row.sha256: row for row in reading.pictures_of(conn, job_id)}
    assert {digest: row.renditions for digest, row in found.items()} == {
        sha("tern"): ("original", "display"),
        sha("cmyk"): ("original",),
        sha("shown"): ("display",),
        sha("hidden"): ("original",),
    }
    tern = found[sha("tern")]
    assert (tern.name, tern.page, tern.placements, tern.has_alpha) == ("page-001-image-001", 1, 2, False)


def test_sample_of_a_month_shows_archived_pictures_only(ledger: Ledger) -> None:
    a_month(ledger)
    with ledger.read() as conn:
        shown = reading.shown_pictures(conn, MONTH, 10)
        assert reading.shown_pictures(conn, MONTH, 1) == shown[:1]
    assert [(row.name, row.display) for row in shown] == [
        ("page-001-image-001", sha("tern")),
        ("page-002-figure-001", sha("chart")),
    ]


def test_data_version_of_the_input_changes_with_its_bytes_only(ledger: Ledger) -> None:
    def version() -> str:
        with ledger.read() as conn:
            return reading.input_digest(conn, MONTH)

    queue(ledger)
    first = version()
    queue(ledger, extractor_version="pdf/2")
    assert version() == first
    queue(ledger, source_hash=sha("changed"), revision=2, parent_revision=1)
    assert version() != first


def test_data_version_of_the_output_follows_the_newest_manifests(ledger: Ledger) -> None:
    def version() -> str:
        with ledger.read() as conn:
            return reading.content_digest(conn, MONTH)

    queue(ledger, "one.pdf")
    queue(ledger, "two.pdf")
    one, two = documents(ledger)
    publish_manifest(ledger, one, 1, "a")
    publish_manifest(ledger, two, 1, "b")
    first = version()
    publish_manifest(ledger, one, 2, "c")
    second = version()
    publish_manifest(ledger, one, 3, "a")
    assert (version() == first, second == first) == (True, False)
    assert [row.edition for row in documents(ledger)] == [3, 1]
    assert documents(ledger)[0].manifest_digest == sha("bytes of a")


def test_open_units_of_a_month_are_not_in_its_documents(ledger: Ledger) -> None:
    start(ledger, pages=4, per_unit=1)
    with ledger.read() as conn:
        assert units.busy(conn, MONTH, NOW)[0] == 4
    assert len(documents(ledger)) == 1
