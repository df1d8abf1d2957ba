from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert, update
from sqlalchemy.exc import DBAPIError

from asset_pipeline.ledger import jobs
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import audit_events, policies
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.policy import Policy, Retention
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import NOW, finish, page, queue, rows, sha, start

ENDS = ("succeeded", "failed_permanently", "dead_lettered")


def test_second_submission_of_same_bytes_finds_first_job(ledger: Ledger) -> None:
    first = queue(ledger)
    (before,) = rows(ledger, jobs_table)
    assert queue(ledger, correlation_id="another") == first
    assert rows(ledger, jobs_table) == [before]
    assert [row["type"] for row in rows(ledger, audit_events)] == ["job_queued"]


def test_queueing_says_whether_the_job_is_new(ledger: Ledger) -> None:
    queue(ledger)
    (job,) = rows(ledger, jobs_table)
    new = jobs.NewJob(**{name: job[name] for name in jobs.NewJob.__slots__})
    with ledger.begin() as tx:
        assert jobs.queue_job(tx, new, NOW) == (job["job_id"], False)


def test_eight_threads_that_queue_the_same_job_make_one(ledger: Ledger) -> None:
    queue(ledger, "warm-up.pdf")  # source and policy are recorded by intake, under its own lock
    (job,) = rows(ledger, jobs_table)
    new = jobs.NewJob(**{name: job[name] for name in jobs.NewJob.__slots__} | {"extractor_version": "pdf/2"})

    def one(_: int) -> tuple[str, bool]:
        with ledger.begin() as tx:
            return jobs.queue_job(tx, new, NOW)

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(one, range(8)))
    assert len({job_id for job_id, _ in answers}) == 1
    assert sum(created for _, created in answers) == 1


def test_other_bytes_other_report_or_other_extractor_is_another_job(ledger: Ledger) -> None:
    made = {
        queue(ledger),
        queue(ledger, source_hash=sha("changed"), revision=2, parent_revision=1),
        queue(ledger, "copy.pdf"),
        queue(ledger, extractor_version="pdf/2+policy-0123456789abcdef"),
    }
    assert len(made) == 4


def test_starting_records_what_inspection_found_and_twice_is_once(ledger: Ledger) -> None:
    job_id = queue(ledger)
    for later in (0, 60):
        with ledger.begin() as tx:
            assert jobs.start_job(tx, job_id, pages=3 + later, encrypted="owner_only", now=NOW)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["pages"], job["encrypted"], job["started_at"]) == ("running", 3, "owner_only", NOW)


@pytest.mark.parametrize("begin", [queue, start])
def test_open_job_is_refused_with_its_reason(ledger: Ledger, begin) -> None:
    job_id = begin(ledger)
    with ledger.begin() as tx:
        assert jobs.refuse_job(tx, job_id, Reason.ENCRYPTED, NOW, encrypted="user")
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"], job["encrypted"]) == ("failed_permanently", "encrypted", "user")
    event = rows(ledger, audit_events)[-1]
    assert (event["type"], event["job_id"], event["month"]) == ("job_failed", job_id, job["month"])
    assert json.loads(event["payload"])["reason"] == "encrypted"


def test_dead_letter_keeps_source_and_reason(ledger: Ledger) -> None:
    job_id = start(ledger)
    with ledger.begin() as tx:
        assert jobs.dead_letter_job(tx, job_id, Reason.DECODER_CRASHED, NOW)
    (job,) = rows(ledger, jobs_table)
    assert (job["state"], job["reason"], job["finished_at"]) == ("dead_lettered", "decoder_crashed", NOW)
    assert rows(ledger, audit_events)[-1]["type"] == "job_dead_lettered"


@pytest.mark.parametrize("end", ENDS)
def test_job_that_has_ended_moves_no_more(ledger: Ledger, end: str) -> None:
    job_id = finish(ledger, "tides.pdf", page(1)) if end == "succeeded" else queue(ledger)
    with ledger.begin() as tx:
        tx.execute(update(jobs_table).values(state=end))
    before, events = rows(ledger, jobs_table), rows(ledger, audit_events)
    with ledger.begin() as tx:
        assert not jobs.start_job(tx, job_id, pages=9, encrypted=None, now=NOW)
        assert not jobs.refuse_job(tx, job_id, Reason.ENCRYPTED, NOW)
        assert not jobs.dead_letter_job(tx, job_id, Reason.DECODER_CRASHED, NOW)
    assert rows(ledger, jobs_table) == before
    assert rows(ledger, audit_events) == events


def test_policy_is_kept_by_its_digest_and_never_changed(ledger: Ledger) -> None:
    other = Policy(retention=Retention(working_days=1))
    for policy in (Policy(), other, Policy()):
        with ledger.begin() as tx:
            jobs.record_policy(tx, policy, NOW)
    kept = {row["digest"]: Policy.model_validate(row["body"]) for row in rows(ledger, policies)}
    assert kept == {Policy().digest: Policy(), other.digest: other}
    with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as tx:
        tx.execute(update(policies).values(body={}))


def test_two_rows_with_one_job_key_are_refused_by_the_database(ledger: Ledger) -> None:
    queue(ledger)
    (job,) = rows(ledger, jobs_table)
    with pytest.raises(DBAPIError), ledger.begin() as tx:
        tx.execute(insert(jobs_table).values(**dict(job) | {"job_id": "another"}))
