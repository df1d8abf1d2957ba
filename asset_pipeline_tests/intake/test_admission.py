"""How a document becomes a job: once, with its bytes kept, or refused with a reason."""

from __future__ import annotations

import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import select

from asset_pipeline.errors import StorageError, UsageError
from asset_pipeline.extraction.engine import extractor_version, load_engine
from asset_pipeline.installation import open_installation
from asset_pipeline.intake import admission as admission_module
from asset_pipeline.intake import reading as reading_module
from asset_pipeline.intake.admission import Admission, admit_month
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger.schema import audit_events, jobs, policies, revisions, source_documents
from asset_pipeline.ledger.uploads import UploadState, list_uploads
from asset_pipeline.policy import Limits, MediaTypes, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import object_key
from asset_pipeline_tests.intake.conftest import NOON, on_both, pdf

KEY = "Team Nord/2026-03/Bericht März.pdf"


def admit(inst, clock, **options) -> Admission:
    return admit_month(inst, "2026-03", clock, **{"wait": False} | options)


def rows(inst, table):
    with inst.ledger.read() as conn:
        return [row._asdict() for row in conn.execute(select(table))]


def uploads(inst, **options):
    with inst.ledger.read() as conn:
        return list_uploads(conn, **options)


def put_again(inst, key, body):
    """Put bytes that may be the same: a tag holds whole seconds on S3."""
    if inst.settings.s3_endpoint:
        time.sleep(1.1)
    inst.inbox.put_current(key, body)


def finish(inst, state="succeeded"):
    """End every job, as work would."""
    with inst.ledger.begin() as tx:
        tx.execute(jobs.update().values(state=state))


@on_both
def test_a_document_becomes_one_queued_job(inst, clock):
    inst.inbox.put_current(KEY, pdf("hello"))
    result = admit(inst, clock)
    assert (result.admitted, result.duplicates, result.refused, result.rejected, result.waiting) == (1, 0, 0, 0, 0)
    (job,) = rows(inst, jobs)
    assert result.job_ids == [job["job_id"]]
    assert job["state"] == "queued"
    assert (job["collection"], job["month"]) == ("Team Nord", "2026-03")
    assert (job["revision"], job["parent_revision"]) == (1, None)
    assert job["source_hash"] == hashlib.sha256(pdf("hello")).hexdigest()
    assert job["engine"] == "pdf"
    assert job["extractor_version"] == extractor_version(load_engine("pdf"), inst.policy)
    assert job["policy_digest"] == inst.policy.digest
    assert [row["digest"] for row in rows(inst, policies)] == [inst.policy.digest]


def test_both_clocks_start_at_admission(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    admit(inst, clock)
    (job,) = rows(inst, jobs)
    assert job["working_until"] == NOON + timedelta(days=inst.policy.retention.working_days)
    assert job["archive_until"] == NOON + timedelta(days=inst.policy.retention.archive_days)


@on_both
def test_the_source_is_kept_by_its_digest_with_the_offset_of_its_signature(inst, clock):
    body = b"junk\n" + pdf("hello")
    inst.inbox.put_current(KEY, body)
    admit(inst, clock)
    (source,) = rows(inst, source_documents)
    assert source["sha256"] == hashlib.sha256(body).hexdigest()
    assert source["bytes"] == len(body)
    assert (source["media_type"], source["signature_offset"], source["stored"]) == ("application/pdf", 5, 1)
    with inst.sources.open(object_key(source["sha256"])) as stream:
        assert stream.read() == body


def test_the_correlation_id_is_there_before_any_work_and_follows_into_the_job(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    take_inventory(inst, clock())
    (seen,) = uploads(inst)
    assert seen.correlation_id
    admit(inst, clock)
    assert rows(inst, jobs)[0]["correlation_id"] == seen.correlation_id


@on_both
def test_running_again_admits_nothing_again(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    admit(inst, clock)
    clock.advance(60)
    assert admit(inst, clock) == Admission()
    assert len(rows(inst, jobs)) == 1


def test_other_months_are_left_alone(inst, clock):
    inst.inbox.put_current("team/2026-02/a.pdf", pdf())
    assert admit(inst, clock) == Admission()
    assert uploads(inst) == []


@on_both
def test_the_same_bytes_under_the_same_name_are_a_duplicate_that_names_its_job(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    (job_id,) = admit(inst, clock).job_ids
    put_again(inst, KEY, pdf())
    clock.advance(60)
    result = admit(inst, clock)
    assert (result.admitted, result.duplicates, result.job_ids) == (0, 1, [])
    (second,) = uploads(inst, states=[UploadState.DUPLICATE])
    assert second.job_id == job_id
    assert len(rows(inst, jobs)) == 1


@on_both
def test_changed_bytes_under_the_same_name_are_a_revision_that_names_its_parent(inst, clock):
    for text in ("one", "two", "three"):
        inst.inbox.put_current(KEY, pdf(text))
        clock.advance(60)
        assert admit(inst, clock).admitted == 1
    made = sorted(rows(inst, jobs), key=lambda job: job["revision"])
    assert [(job["revision"], job["parent_revision"]) for job in made] == [(1, None), (2, 1), (3, 2)]
    assert len({job["report_id"] for job in made}) == 1
    assert len(rows(inst, revisions)) == 3


def test_going_back_to_earlier_bytes_finds_the_earlier_job(inst, clock):
    for text in ("one", "two"):
        inst.inbox.put_current(KEY, pdf(text))
        clock.advance(60)
        admit(inst, clock)
    put_again(inst, KEY, pdf("one"))
    clock.advance(60)
    assert admit(inst, clock).duplicates == 1
    first = next(job for job in rows(inst, jobs) if job["revision"] == 1)
    assert uploads(inst, states=[UploadState.DUPLICATE])[0].job_id == first["job_id"]


@on_both
def test_a_second_name_for_the_same_bytes_is_a_second_report_that_shares_the_source(inst, clock):
    inst.inbox.put_current("team/2026-03/a.pdf", pdf())
    inst.inbox.put_current("team/2026-03/b.pdf", pdf())
    inst.inbox.put_current("other/2026-03/a.pdf", pdf())
    assert admit(inst, clock).admitted == 3
    assert len({job["report_id"] for job in rows(inst, jobs)}) == 3
    assert len(rows(inst, source_documents)) == 1
    assert len(list(inst.sources.list())) == 1


def test_report_ids_are_the_same_in_every_opening_and_hide_the_name(inst, clock):
    inst.inbox.put_current(KEY, pdf("one"))
    admit(inst, clock)
    with open_installation(inst.settings) as again:
        again.inbox.put_current(KEY, pdf("two"))
        clock.advance(60)
        admit(again, clock)
    ids = {job["report_id"] for job in rows(inst, jobs)}
    assert len(ids) == 1
    assert len(ids.pop()) == 26


@pytest.mark.parametrize(
    ("name", "body", "reason"),
    [
        ("a.pdf", b"\x89PNG\r\n\x1a\n and so on", Reason.SIGNATURE_MISMATCH),
        ("a.png", b"\x89PNG\r\n\x1a\n and so on", Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("a.pdf", b"x" * 1024 + b"%PDF-1.7", Reason.SIGNATURE_MISMATCH),
        ("a.pdf", b"", Reason.EMPTY_DOCUMENT),
    ],
)
def test_a_document_of_another_type_is_refused_as_a_failed_job_and_its_bytes_are_kept(inst, clock, name, body, reason):
    inst.inbox.put_current(f"team/2026-03/{name}", body)
    result = admit(inst, clock)
    assert (result.admitted, result.refused, len(result.job_ids)) == (0, 1, 1)
    (job,) = rows(inst, jobs)
    assert (job["state"], job["reason"]) == ("failed_permanently", reason)
    (upload,) = uploads(inst)
    assert (upload.state, upload.reason, upload.job_id) == (UploadState.ADMITTED, reason, job["job_id"])
    assert inst.sources.exists(object_key(hashlib.sha256(body).hexdigest()))


@on_both
def test_a_document_that_is_too_large_is_refused_and_its_bytes_are_not_kept(inst, clock):
    small = replace(inst, policy=Policy(limits=Limits(source_bytes=100)))
    body = pdf("x" * 200)
    inst.inbox.put_current(KEY, body)
    assert admit(small, clock).refused == 1
    (job,) = rows(inst, jobs)
    assert (job["state"], job["reason"]) == ("failed_permanently", Reason.PAYLOAD_TOO_LARGE)
    (source,) = rows(inst, source_documents)
    assert (source["sha256"], source["bytes"], source["stored"]) == (hashlib.sha256(body).hexdigest(), len(body), 0)
    assert not inst.sources.exists(object_key(source["sha256"]))


def test_a_refused_document_is_not_refused_again_and_again(inst, clock):
    inst.inbox.put_current("team/2026-03/a.png", b"\x89PNG\r\n\x1a\n")
    admit(inst, clock)
    clock.advance(60)
    assert admit(inst, clock) == Admission()
    stricter = replace(inst, policy=Policy(limits=Limits(pages=10)))
    assert admit(stricter, clock) == Admission()
    assert take_inventory(inst, clock()).news == {}


def test_a_refused_document_comes_in_when_the_policy_is_widened_and_the_month_run_again(inst, clock):
    small = replace(inst, policy=Policy(limits=Limits(source_bytes=100)))
    inst.inbox.put_current(KEY, pdf("x" * 200))
    admit(small, clock)
    clock.advance(60)
    assert admit(inst, clock).admitted == 1
    assert sorted(job["state"] for job in rows(inst, jobs)) == ["failed_permanently", "queued"]
    assert {job["revision"] for job in rows(inst, jobs)} == {1}
    assert [source["stored"] for source in rows(inst, source_documents)] == [1]
    assert uploads(inst)[0].reason is None
    assert admit(inst, clock) == Admission()


def test_another_media_type_comes_in_when_the_policy_accepts_it(inst, clock):
    inst.inbox.put_current("team/2026-03/a.png", b"\x89PNG\r\n\x1a\n")
    assert admit(inst, clock).refused == 1
    wider = replace(inst, policy=Policy(media_types=MediaTypes(documents=("application/pdf", "image/png"))))
    assert admit(wider, clock).admitted == 1


def test_a_new_extractor_version_re_extracts_nothing_by_itself(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    admit(inst, clock)
    finish(inst)
    newer = replace(inst, policy=Policy(limits=Limits(pages=10)))
    clock.advance(60)
    assert admit(newer, clock) == Admission()
    put_again(inst, KEY, pdf())
    assert admit(newer, clock).duplicates == 1
    assert len(rows(inst, jobs)) == 1


def test_sending_a_failed_document_again_tries_a_newer_extractor(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    admit(inst, clock)
    finish(inst, "dead_lettered")
    newer = replace(inst, policy=Policy(limits=Limits(pages=10)))
    put_again(inst, KEY, pdf())
    clock.advance(60)
    assert admit(newer, clock).admitted == 1
    assert sorted(job["state"] for job in rows(inst, jobs)) == ["dead_lettered", "queued"]
    assert {job["revision"] for job in rows(inst, jobs)} == {1}


def test_going_back_to_an_extractor_whose_job_was_given_up_works_that_job_again(inst, clock):
    newer = replace(inst, policy=Policy(limits=Limits(pages=10)))
    for place in (inst, newer):
        put_again(inst, KEY, pdf())
        clock.advance(60)
        admit(place, clock)
        finish(inst, "dead_lettered")
    put_again(inst, KEY, pdf())
    clock.advance(60)
    assert admit(inst, clock) == Admission(requeued=1)
    assert sorted(job["state"] for job in rows(inst, jobs)) == ["dead_lettered", "queued"]


def test_a_run_by_hand_waits_for_files_to_settle_and_shows_it(patient, clock):
    patient.inbox.put_current(KEY, pdf())
    told = []
    result = admit(patient, clock, wait=True, progress=lambda *step: told.append(step), sleep=clock.advance)
    assert result.admitted == 1
    assert told == [("settle", 0, 1), ("admit", 0, 1), ("admit", 1, 1)]
    assert clock() - NOON == timedelta(seconds=10)


def test_a_run_by_hand_does_not_wait_for_ever_for_a_file_that_grows(patient, clock):
    body = pdf()
    patient.inbox.put_current("team/2026-03/done.pdf", body)

    def grow(seconds):
        nonlocal body
        body += b"more"
        patient.inbox.put_current(KEY, body)
        clock.advance(seconds)

    patient.inbox.put_current(KEY, body)
    result = admit(patient, clock, wait=True, sleep=grow)
    assert (result.admitted, result.waiting) == (1, 1)


def test_a_scheduled_run_does_not_wait(patient, clock):
    patient.inbox.put_current(KEY, pdf())
    result = admit(patient, clock, sleep=None)
    assert (result.admitted, result.waiting) == (0, 1)


@on_both
@pytest.mark.parametrize("change", ["replaced", "shorter", "gone"])
def test_a_file_that_changes_while_it_is_read_stays_waiting(inst, clock, monkeypatch, change):
    inst.inbox.put_current(KEY, pdf("first"))
    inventory = take_inventory(inst, clock(), "2026-03")
    acts = {
        "replaced": lambda: inst.inbox.put_current(KEY, pdf("other")),
        "shorter": lambda: inst.inbox.put_current(KEY, pdf()),
        "gone": lambda: inst.inbox.delete(KEY),
    }
    acts[change]()
    monkeypatch.setattr(admission_module, "take_inventory", lambda *place: inventory)
    result = admit(inst, clock)
    assert (result.admitted, result.waiting) == (0, 1)
    assert rows(inst, jobs) == rows(inst, source_documents) == []
    for body in (pdf("first"), pdf("other"), pdf()):
        assert not inst.sources.exists(object_key(hashlib.sha256(body).hexdigest()))


@on_both
def test_two_runs_of_one_month_at_once_make_each_job_once(inst, clock):
    for n in range(12):
        inst.inbox.put_current(f"team/2026-03/{n}.pdf", pdf(str(n % 4)))
    with open_installation(inst.settings) as other, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda place: admit(place, clock), (inst, other)))
    assert sum(result.admitted for result in results) == 12
    assert sum(result.duplicates for result in results) == 0
    assert len(rows(inst, jobs)) == 12
    assert {upload.state for upload in uploads(inst)} == {UploadState.ADMITTED}


@on_both
def test_nothing_is_left_in_the_working_folder(inst, clock, monkeypatch):
    inst.inbox.put_current(KEY, pdf())
    monkeypatch.setattr(type(inst.sources), "put_once", _away)
    with pytest.raises(StorageError):
        admit(inst, clock)
    assert list(inst.settings.work_folder.iterdir()) == []
    assert uploads(inst)[0].state is UploadState.WAITING
    monkeypatch.undo()
    with inst.ledger.read() as conn:
        assert conn.execute(select(jobs)).all() == []


def _away(*place):
    raise StorageError("The sources store is away.")


def test_a_month_that_takes_no_documents_is_a_usage_error(inst, clock):
    for month in ("2026-04", "2023-12", "2026-13", "March"):
        with pytest.raises(UsageError):
            admit_month(inst, month, clock, wait=False)


def test_rejected_files_of_the_month_are_counted(inst, clock):
    inst.inbox.put_current("team/2026-03/folder/a.pdf", pdf())
    assert admit(inst, clock).rejected == 1


def test_events_say_what_happened_without_a_name(inst, clock):
    inst.inbox.put_current(KEY, pdf())
    inst.inbox.put_current("team/2026-03/Geheim.png", b"\x89PNG\r\n\x1a\n")
    admit(inst, clock)
    events = rows(inst, audit_events)
    assert {"upload_admitted", "upload_refused", "job_queued"} <= {event["type"] for event in events}
    for event in events:
        assert "Bericht" not in event["payload"]
        assert "Geheim" not in event["payload"]
        assert "Nord" not in event["payload"]


def test_a_full_disk_is_told_apart_from_a_missing_inbox(inst, clock, monkeypatch):
    inst.inbox.put_current(KEY, pdf())
    monkeypatch.setattr(reading_module, "write_all", _disk_full)
    with pytest.raises(StorageError, match="A working file cannot be written: No space left on device"):
        admit(inst, clock)
    assert uploads(inst)[0].state is UploadState.WAITING


def _disk_full(descriptor, body):
    raise OSError(28, "No space left on device")
