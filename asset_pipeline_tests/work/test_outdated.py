"""A library that is replaced between admission and work: the document is read by the new one, once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import select, update

from asset_pipeline.installation import Installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.policy import Limits, Policy, Retention
from asset_pipeline.reasons import Reason
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH, drop_document


def test_an_open_job_of_a_replaced_extractor_is_done_by_the_new_one(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    with inst.ledger.begin() as tx:
        tx.execute(update(jobs).values(extractor_version="pdf/0", job_key="old", job_id="a" * 26))
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        states = dict(conn.execute(select(jobs.c.extractor_version, jobs.c.state)).tuples().all())
        (document,) = reading.documents_of_month(conn, MONTH)
    assert states.pop("pdf/0") == "dead_lettered"
    assert list(states.values()) == ["succeeded"]
    assert (document.state, document.archived) == ("succeeded", 1)


def test_a_finished_job_of_an_older_extractor_is_left_alone(inst: Installation, submit: Callable) -> None:
    submit("a.pdf", [10])
    work_month(inst, MONTH)
    with inst.ledger.begin() as tx:
        tx.execute(update(jobs).values(extractor_version="pdf/0", job_key="old"))
    assert work_month(inst, MONTH).units == 0


def test_a_document_that_a_limit_ended_is_tried_again_when_the_limit_is_raised_and_by_nothing_else(
    inst: Installation,
) -> None:
    narrow = replace(inst, policy=Policy(limits=Limits(pages=2)))
    drop_document(inst.settings, "a.pdf", [10, 20, 30])
    admit_month(narrow, MONTH, utc_now, wait=True)
    assert state(narrow) == ("failed_permanently", Reason.PAGE_BUDGET_EXCEEDED, 0)
    kept = Policy(limits=Limits(pages=2), retention=Retention(archive_days=30))
    assert work_month(replace(inst, policy=kept), MONTH).documents == 0, "its limits are the same"
    assert state(inst) == ("succeeded", None, 3)
    assert state(narrow) == ("succeeded", None, 3), "what has a result is not done again"
    with inst.ledger.read() as conn:
        assert len({row.archive_until for row in conn.execute(select(jobs.c.archive_until))}) == 1


def state(inst: Installation) -> tuple[str, Reason | None, int]:
    """Of the only document, after a run of its month."""
    work_month(inst, MONTH)
    with inst.ledger.read() as conn:
        (document,) = reading.documents_of_month(conn, MONTH)
    return document.state, document.reason, document.archived
