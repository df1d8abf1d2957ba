"""A library that is replaced between admission and work: the document is read by the new one, once."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import select, update

from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH


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
