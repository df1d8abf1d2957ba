"""A pass of retention on every storage: all that is past its deadline goes, nothing before it, nothing that is held."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from asset_pipeline.archive.audit import compare_month
from asset_pipeline.archive.envelope import open_manifest
from asset_pipeline.archive.fsck import prove
from asset_pipeline.archive.manifest import manifest_key
from asset_pipeline.archive.proof import prove_ledger
from asset_pipeline.archive.sweep import GRACE, sweep_objects
from asset_pipeline.errors import StorageError, UsageError
from asset_pipeline.evidence.chain import moment
from asset_pipeline.history.measures import all_measures
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.expiry import keeps
from asset_pipeline.ledger.holds import Scope, lift_hold, list_holds, set_hold
from asset_pipeline.ledger.objects import half_deleted
from asset_pipeline.ledger.schema import deletions, jobs, objects, source_documents, tombstones
from asset_pipeline.retention.apply import Pass, apply
from asset_pipeline.retention.clocks import bytes_past_deadline
from asset_pipeline.retention.janitor import sweep
from asset_pipeline.retention.plan import plan
from asset_pipeline.work.previews import open_previews
from asset_pipeline_tests.retention.aging import (
    DAYS,
    POLICY,
    day,
    digests,
    events,
    files,
    job_of_name,
    pictures,
    put,
    read,
    shown,
)
from asset_pipeline_tests.small_documents import fresh_settings

MONTH = "2026-05"


SERVERS = "postgres and s3"
on_both = pytest.mark.parametrize("inst", ["sqlite and folders", SERVERS], indirect=True)
"""For what asks more of the database or the stores than to keep what they are given."""


@pytest.fixture
def inst(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    places: dict[str, object] = {}
    if getattr(request, "param", "") == SERVERS:
        places = {"ledger": request.getfixturevalue("postgres_ledger_url")}
        places |= request.getfixturevalue("s3_settings").settings()
    settings = fresh_settings(tmp_path, workers=1, sandbox=False, **places)
    settings.policy_file.write_text(POLICY)
    with open_installation(settings) as opened:
        yield opened


def run(inst: Installation, number: float) -> Pass:
    return apply(inst, day(number), lambda: open_previews(inst, 1))


def hold(inst: Installation, scope: Scope, subject: str | None, number: float = 1) -> str:
    with inst.ledger.begin() as tx:
        return set_hold(tx, scope, subject, "litigation", day(number))


@on_both
def test_what_is_past_its_deadline_goes_in_one_pass_with_its_hashes_kept_and_nothing_else_does(
    inst: Installation,
) -> None:
    put(inst, "old.pdf", [10, 20])
    read(inst, day(0))
    put(inst, "new.pdf", [20, 30])
    put(inst, "april.pdf", [40], month="2026-04")
    read(inst, day(5))
    read(inst, day(20), "2026-04")
    everything, before = files(inst), pictures(inst)
    old, new = job_of_name(inst, "old.pdf"), job_of_name(inst, "new.pdf")

    early = run(inst, DAYS - 0.01)
    assert (early.reports, early.deleted, early.months) == (0, [], [])
    assert files(inst) == everything, "nothing goes before its deadline"

    told = plan(inst, day(DAYS))
    assert files(inst) == everything, "a plan changes nothing"
    assert bytes_past_deadline(inst, day(DAYS)) == sum(
        line.bytes for line in told.lines if line.kind in ("picture", "source")
    )
    done = run(inst, DAYS)
    gone = {row.sha256 for row in done.deleted}
    assert [line for line in told.lines if line.kind != "thumbnail"] == done.lines
    assert [line.files for line in told.lines if line.kind == "thumbnail"] == [1]
    assert told.reports == {MONTH: 1}
    assert before - pictures(inst) == gone - {old["source_hash"]}
    assert len(before - pictures(inst)) == 1, "the picture that the newer report shows too stays"
    assert f"objects/{old['source_hash'][:2]}/{old['source_hash']}" not in files(inst)["sources"]
    assert f"objects/{new['source_hash'][:2]}/{new['source_hash']}" in files(inst)["sources"]
    assert bytes_past_deadline(inst, day(DAYS)) == 0
    assert digests(events(inst, "deletion_intended")) == digests(events(inst, "deleted")) == sorted(gone)
    with inst.ledger.read() as conn:
        stones = conn.execute(select(tombstones.c.sha256, tombstones.c.job_id, tombstones.c.why)).tuples().all()
        assert conn.execute(select(deletions)).all() == []
    assert sorted(stones) == sorted((digest, old["job_id"], "archive_deadline") for digest in gone)

    told_manifest = _manifest(inst, old)
    assert told_manifest["record"]["edition"] == 2
    assert told_manifest["record"]["deleted_at"] == moment(day(DAYS))
    assert _manifest(inst, new)["record"].get("deleted_at") is None
    text = shown(inst)
    assert "old.pdf" not in text
    assert "new.pdf" in text
    assert not any(digest in text for digest in gone)
    assert prove(inst).findings == []
    assert compare_month(inst, MONTH) == []

    again = run(inst, DAYS)
    assert (again.reports, again.deleted, again.months, again.manifests) == (0, [], [], 0)


def _manifest(inst: Installation, job: dict) -> dict:
    with inst.archive.open(manifest_key(job["month"], job["report_id"])) as stream:
        return open_manifest(stream.read()).body


@on_both
def test_after_every_file_of_a_month_is_deleted_the_events_still_prove_what_happened_to_it(inst: Installation) -> None:
    put(inst, "one.pdf", [10, 20])
    put(inst, "refused.pdf", [30], encrypted=True)
    read(inst, day(0))
    accepted = {name: job_of_name(inst, name) for name in ("one.pdf", "refused.pdf")}
    stored = pictures(inst)
    run(inst, DAYS + 1)
    assert files(inst) == {"sources": set(), "archive": set(), "quarantine": set()}
    proof = prove_ledger(inst, inst.trust(), processes=1)
    assert proof.verdict.findings == []

    one = accepted["one.pdf"]
    (came,) = [event for event in events(inst, "upload_admitted") if event["source_hash"] == one["source_hash"]]
    assert came["at"] == moment(day(0))
    (unit,) = [event for event in events(inst, "unit_published") if event["job_id"] == one["job_id"]]
    assert {digest for _, *found in unit["pictures"] for digest in found if digest} == stored
    published = [event for event in events(inst, "manifest_published") if event["job_id"] == one["job_id"]]
    assert [event["edition"] for event in published] == [1, 2]
    assert published[0]["extractor_version"] == one["extractor_version"]
    assert published[1]["previous_digest"] == published[0]["digest"]
    assert published[1]["deleted_at"] == moment(day(DAYS + 1))
    deleted = events(inst, "deleted")
    assert stored | {job["source_hash"] for job in accepted.values()} == set(digests(deleted))
    assert {event["at"] for event in deleted} == {moment(day(DAYS + 1))}
    assert ".pdf" not in json.dumps(deleted + events(inst, "jobs_expired", "deletion_intended"))


@pytest.mark.parametrize(
    ("inst", "scope"), [*(("", scope) for scope in Scope), (SERVERS, Scope.REPORT)], indirect=["inst"]
)
def test_what_is_held_stays_by_every_path_until_the_hold_is_lifted(inst: Installation, scope: Scope) -> None:
    put(inst, "held.pdf", [10, 20])
    put(inst, "free.pdf", [20, 30], collection="sea")
    read(inst, day(0))
    held = job_of_name(inst, "held.pdf")
    subject = {"report": held["report_id"], "collection": "city", "month": MONTH, "all": None}[scope.value]
    hold_id = hold(inst, scope, subject)
    _leave_unnamed(inst)
    kept = pictures(inst)
    narrow = scope in (Scope.REPORT, Scope.COLLECTION)
    assert plan(inst, day(DAYS)).held == (1 if narrow else 2)

    done = run(inst, DAYS)
    assert done.reports == (1 if narrow else 0)
    assert len(kept - pictures(inst)) == (1 if narrow else 0), "only what free.pdf alone shows"
    assert f"objects/{held['source_hash'][:2]}/{held['source_hash']}" in files(inst)["sources"]
    assert sweep_objects(inst, day(DAYS) + 10 * GRACE).held
    assert "a-quarantined-file" in files(inst)["quarantine"]
    sweep(inst, day(DAYS))
    assert (inst.settings.work_folder / ("0" * 32)).exists() == (scope is Scope.ALL)
    assert "held.pdf" in shown(inst)
    assert bytes_past_deadline(inst, day(400)) == 0, "what is held is not overdue"
    assert prove(inst).findings == []

    with inst.ledger.begin() as tx:
        assert lift_hold(tx, hold_id, "settled", day(DAYS + 5))
        assert not lift_hold(tx, hold_id, "settled", day(DAYS + 5))
        assert list_holds(tx) == []
        (past,) = list_holds(tx, lifted=True)
        assert (past.why, past.lifted_why) == ("litigation", "settled")
    run(inst, 400)
    assert files(inst) == {"sources": set(), "archive": set(), "quarantine": set()}
    assert not (inst.settings.work_folder / ("0" * 32)).exists()
    told = events(inst, "hold_set", "hold_lifted")
    assert [(event["type"], event["reason"]) for event in told] == [
        ("hold_set", "litigation"),
        ("hold_lifted", "settled"),
    ]
    assert '"city"' not in json.dumps(told)


def _leave_unnamed(inst: Installation) -> None:
    """A quarantined file and a working directory, both without an owner."""
    inst.quarantine.put_current("a-quarantined-file", b"who knows")
    left = inst.settings.work_folder / ("0" * 32)
    left.mkdir(parents=True)
    (left / "document").write_bytes(b"12345")
    import os

    os.utime(left, (0, 0))


@on_both
def test_a_hold_that_comes_between_intent_and_deletion_calls_the_deletion_off(inst: Installation) -> None:
    from asset_pipeline.ledger import deletions as deleting
    from asset_pipeline.ledger.expiry import Kind, due_jobs, due_pictures, due_sources

    put(inst, "late.pdf", [10, 20])
    read(inst, day(0))
    kept = files(inst)
    late = day(DAYS)
    with inst.ledger.read() as conn:
        found = {Kind.PICTURE: list(due_pictures(conn, late)), Kind.SOURCE: list(due_sources(conn, late))}
        due = due_jobs(conn, late)
    with inst.ledger.begin() as tx:
        deleting.expire_jobs(tx, due, late)
        for kind, rows in found.items():
            deleting.intend(tx, kind, rows, late)
    gone, stays = found[Kind.PICTURE]
    inst.archive.delete(gone.key)
    hold(inst, Scope.MONTH, MONTH, DAYS)
    run(inst, DAYS + 1)
    assert {key for key in kept["archive"] if key.startswith("objects/")} - {gone.key} == {stays.key}
    assert files(inst)["sources"] == kept["sources"]
    assert digests(events(inst, "deleted")) == [gone.sha256], "it was gone before the hold, and that is told"
    off = digests(events(inst, "deletion_called_off"))
    assert off == sorted([stays.sha256, *[row.sha256 for row in found[Kind.SOURCE]]])
    with inst.ledger.read() as conn:
        states = dict(conn.execute(select(objects.c.sha256, objects.c.state)).tuples().all())
        assert conn.execute(select(deletions)).all() == []
    assert states == {gone.sha256: "deleted", stays.sha256: "stored"}


def test_a_report_that_is_dropped_again_after_it_expired_is_a_new_admission_with_clocks_of_its_own(
    inst: Installation,
) -> None:
    put(inst, "again.pdf", [10])
    read(inst, day(0))
    first, stored = job_of_name(inst, "again.pdf"), pictures(inst)
    run(inst, DAYS)
    assert pictures(inst) == set()
    read(inst, day(DAYS + 1))
    assert pictures(inst) == set(), "the file that still lies in the inbox was taken in once"
    before = inst.inbox.entry("city/2026-05/again.pdf").tag
    while inst.inbox.entry("city/2026-05/again.pdf").tag == before:  # a bucket's tags hold whole seconds
        put(inst, "again.pdf", [10])
    read(inst, day(DAYS + 3))
    second = job_of_name(inst, "again.pdf")
    assert second["job_id"] != first["job_id"]
    assert (second["state"], second["revision"], second["report_id"]) == ("succeeded", 1, first["report_id"])
    assert second["archive_until"] == day(2 * DAYS + 3)
    assert pictures(inst) == stored
    record = _manifest(inst, second)["record"]
    assert (record["edition"], record["job_id"], "deleted_at" in record) == (3, second["job_id"], False)
    assert "again.pdf" in shown(inst)
    assert prove(inst).findings == []
    with inst.ledger.read() as conn:
        kept = conn.execute(select(jobs.c.job_id).where(keeps(day(DAYS + 3)))).scalars().all()
    assert kept == [second["job_id"]]
    run(inst, 2 * DAYS + 3)
    assert files(inst) == {"sources": set(), "archive": set(), "quarantine": set()}
    assert prove_ledger(inst, inst.trust(), processes=1).verdict.findings == []


def test_work_that_is_open_when_its_time_is_over_ends_and_nothing_of_it_comes_in_later(inst: Installation) -> None:
    from asset_pipeline.errors import LeaseLost
    from asset_pipeline.intake.admission import admit_month
    from asset_pipeline.ledger import units
    from asset_pipeline.ledger.jobs import start_job
    from asset_pipeline.ledger.requeue import WITHOUT_RESULT, requeue_job

    put(inst, "slow.pdf", [10])
    admit_month(inst, MONTH, lambda: day(0), wait=False)
    job_id = job_of_name(inst, "slow.pdf")["job_id"]
    with inst.ledger.begin() as tx:
        start_job(tx, job_id, pages=1, encrypted="none", now=day(0))
        units.plan_units(tx, job_id, [(1, 1)])
        claim = units.claim_unit(tx, f"{job_id}-00000", "host:1:1", timedelta(days=100), day(0))
    assert claim is not None
    run(inst, DAYS)
    job = job_of_name(inst, "slow.pdf")
    assert (job["state"], job["reason"]) == ("failed_permanently", "retention_expired")
    assert files(inst)["sources"] == set()
    with pytest.raises(LeaseLost), inst.ledger.begin() as tx:
        units.renew_lease(tx, claim, timedelta(days=1), day(DAYS))
    with inst.ledger.begin() as tx:
        assert not requeue_job(tx, job_id, day(DAYS + 1), WITHOUT_RESULT), "nothing brings an expired job back"
    assert _manifest(inst, job)["content"]["outcome"] == "retention_expired"


def test_no_requeue_and_no_newer_policy_moves_a_deadline(inst: Installation) -> None:
    from asset_pipeline.intake.admission import admit_month
    from asset_pipeline.ledger.jobs import dead_letter_job
    from asset_pipeline.ledger.requeue import requeue_job
    from asset_pipeline.reasons import Reason

    put(inst, "again.pdf", [10])
    admit_month(inst, MONTH, lambda: day(0), wait=False)
    before = job_of_name(inst, "again.pdf")
    assert (before["working_until"], before["archive_until"]) == (day(2), day(DAYS))
    with inst.ledger.begin() as tx:
        dead_letter_job(tx, before["job_id"], Reason.DECODER_CRASHED, day(1))
        assert requeue_job(tx, before["job_id"], day(1))
    inst.settings.policy_file.write_text("retention: {working_days: 90, archive_days: 900}\n")
    with open_installation(inst.settings) as later:
        read(later, day(3))
    after = job_of_name(inst, "again.pdf")
    assert (after["state"], after["working_until"], after["archive_until"]) == ("succeeded", day(2), day(DAYS))


def test_quarantined_bytes_go_with_the_working_clock_and_are_told_by_digest_alone(inst: Installation) -> None:
    inst.quarantine.put_current("some/key", b"who knows")
    (entry,) = inst.quarantine.list()
    due = entry.modified + timedelta(days=2)
    assert apply(inst, due - timedelta(seconds=1), lambda: open_previews(inst, 1)).deleted == []
    assert bytes_past_deadline(inst, due) == 9
    (row,) = apply(inst, due, lambda: open_previews(inst, 1)).deleted
    assert (row.kind.value, row.bytes, files(inst)["quarantine"]) == ("quarantine", 9, set())
    (event,) = events(inst, "deleted")
    assert (event["reason"], "some/key" in json.dumps(event)) == ("working_deadline", False)


def test_the_figure_and_its_limit_see_what_a_pass_has_to_delete(inst: Installation) -> None:
    put(inst, "one.pdf", [10])
    read(inst, day(0))

    def figure(number: float) -> float | None:
        return {row.name: row.value for row in all_measures(inst, day(number))}["overdue_bytes"]

    with inst.ledger.read() as conn:
        size = conn.execute(select(source_documents.c.bytes)).scalar_one()
    assert figure(DAYS - 1) == 0
    assert figure(DAYS + 1) == bytes_past_deadline(inst, day(DAYS + 1)) > size
    run(inst, DAYS + 1)
    assert figure(DAYS + 1) == 0


def test_a_hold_says_why_in_a_code(inst: Installation) -> None:
    with pytest.raises(UsageError, match="short code"), inst.ledger.begin() as tx:
        set_hold(tx, Scope.ALL, None, "Because the judge said so", day(0))


@on_both
def test_a_store_that_fails_in_the_middle_leaves_a_told_intent_that_the_next_pass_ends(
    inst: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(inst, "one.pdf", [10, 20, 30])
    read(inst, day(0))
    deleted: list[str] = []
    store = type(inst.archive)
    delete = store.delete

    def failing(self: object, key: str) -> None:
        if key.startswith("objects/"):
            deleted.append(key)
            if len(deleted) == 2:
                raise StorageError("The archive store is away.")
        delete(self, key)

    with monkeypatch.context() as patched:
        patched.setattr(store, "delete", failing)
        with pytest.raises(StorageError):
            run(inst, DAYS)
    (intent,) = [event for event in events(inst, "deletion_intended") if event["kind"] == "picture"]
    assert (intent["count"], digests(events(inst, "deleted"))) == (3, [])
    gone, kept = (key.rpartition("/")[2] for key in deleted[:2])
    assert gone not in pictures(inst)
    assert kept in pictures(inst)
    assert bytes_past_deadline(inst, day(DAYS)) > 0, "it is not gone until it is told to be"
    with inst.ledger.begin() as tx:
        assert half_deleted(tx) == [], "the sweep leaves alone what retention has begun"
    run(inst, DAYS)
    assert files(inst) == {"sources": set(), "archive": set(), "quarantine": set()}
    assert len(digests(events(inst, "deleted"))) == 4


@on_both
def test_a_document_that_comes_in_while_its_bytes_are_being_deleted_keeps_them(inst: Installation) -> None:
    from asset_pipeline.ledger import deletions as deleting
    from asset_pipeline.ledger.expiry import Kind, due_sources

    put(inst, "one.pdf", [10])
    read(inst, day(0))
    with inst.ledger.read() as conn:
        sources = list(due_sources(conn, day(DAYS)))
    with inst.ledger.begin() as tx:
        (told,) = deleting.intend(tx, Kind.SOURCE, sources, day(DAYS))
    put(inst, "other.pdf", [10])
    read(inst, day(DAYS))
    run(inst, DAYS)
    assert files(inst)["sources"] == {told.key}, "other.pdf has the same bytes"
    assert len(pictures(inst)) == 1, "and the same picture"
    assert digests(events(inst, "deletion_called_off")) == [told.sha256]
    assert prove(inst).findings == []
