"""A document that is sent again: its job was given up, or its stored bytes are not what they were."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import select

from asset_pipeline.intake.admission import Admission, admit_month
from asset_pipeline.ledger.schema import audit_events, jobs
from asset_pipeline.ledger.uploads import UploadState, list_uploads
from asset_pipeline.storage.store import object_key
from asset_pipeline_tests.intake.conftest import on_both, pdf
from asset_pipeline_tests.intake.test_admission import put_again

KEY = "Team Nord/2026-03/Bericht März.pdf"
SOURCE = object_key(hashlib.sha256(pdf("hello")).hexdigest())


@pytest.fixture
def admit(inst, clock):
    def run() -> Admission:
        clock.advance(60)
        return admit_month(inst, "2026-03", clock, wait=False)

    return run


@pytest.fixture
def ended(inst, admit):
    """Admits the document and ends its job in a state, for a reason."""

    def run(state: str, reason: str | None = None) -> str:
        inst.inbox.put_current(KEY, pdf("hello"))
        (job_id,) = admit().job_ids
        with inst.ledger.begin() as tx:
            tx.execute(jobs.update().values(state=state, reason=reason))
        return job_id

    return run


def all_jobs(inst):
    with inst.ledger.read() as conn:
        return conn.execute(select(jobs)).mappings().all()


def events(inst) -> list[str]:
    with inst.ledger.read() as conn:
        return list(conn.execute(select(audit_events.c.type).order_by(audit_events.c.seq)).scalars())


@on_both
def test_bytes_whose_job_was_given_up_are_worked_again_by_the_same_job(inst, admit, ended):
    job_id = ended("dead_lettered", "storage_unavailable")
    (before,) = all_jobs(inst)
    put_again(inst, KEY, pdf("hello"))
    assert admit() == Admission(requeued=1)
    (job,) = all_jobs(inst)
    assert (job["job_id"], job["state"], job["reason"]) == (job_id, "queued", None)
    assert (job["working_until"], job["archive_until"]) == (before["working_until"], before["archive_until"])
    with inst.ledger.read() as conn:
        (upload,) = list_uploads(conn, states=[UploadState.DUPLICATE])
    assert upload.job_id == job_id
    assert events(inst)[-2:] == ["job_requeued", "upload_requeued"]


@pytest.mark.parametrize("state", ["succeeded", "failed_permanently", "running"])
def test_bytes_whose_job_has_a_verdict_or_is_at_work_are_a_duplicate(inst, admit, ended, state):
    ended(state, "malformed_document" if state == "failed_permanently" else None)
    put_again(inst, KEY, pdf("hello"))
    assert admit() == Admission(duplicates=1)
    assert [job["state"] for job in all_jobs(inst)] == [state]


@on_both
@pytest.mark.parametrize("harm", ["altered", "gone"])
def test_a_stored_source_that_was_harmed_is_put_right_when_it_is_sent_again(inst, admit, ended, harm):
    job_id = ended("dead_lettered", "source_hash_mismatch")
    if harm == "gone":
        inst.sources.delete(SOURCE)
    else:
        inst.sources.put_current(SOURCE, b"altered")
    put_again(inst, KEY, pdf("hello"))
    assert admit().requeued == 1
    with inst.sources.open(SOURCE) as stream:
        assert stream.read() == pdf("hello")
    assert [(job["job_id"], job["state"]) for job in all_jobs(inst)] == [(job_id, "queued")]
    assert "source_repaired" in events(inst)


@on_both
def test_a_second_report_of_the_same_bytes_helps_the_first_one_whose_source_was_altered(inst, admit, ended):
    first = ended("dead_lettered", "source_hash_mismatch")
    inst.sources.put_current(SOURCE, b"altered")
    inst.inbox.put_current("other/2026-03/copy.pdf", pdf("hello"))
    assert admit().admitted == 1
    assert {job["job_id"]: job["state"] for job in all_jobs(inst)}[first] == "queued"


def test_a_sound_source_is_not_said_to_be_repaired(inst, admit, ended):
    ended("succeeded")
    put_again(inst, KEY, pdf("hello"))
    admit()
    assert "source_repaired" not in events(inst)
