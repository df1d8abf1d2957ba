"""Events as they lie in the ledger: signed, chained, sealed, and what is told when somebody reached into the tables."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
from sqlalchemy import text

from asset_pipeline.errors import ConfigurationError, IntegrityError, StorageError
from asset_pipeline.evidence import trust as trust_file
from asset_pipeline.evidence import verify as verifying
from asset_pipeline.evidence.actor import Actor
from asset_pipeline.evidence.chain import Event
from asset_pipeline.evidence.findings import Fault
from asset_pipeline.evidence.keys import make_key
from asset_pipeline.evidence.trust import Trust
from asset_pipeline.evidence.verify import Verdict
from asset_pipeline.ledger.chain import Log, notes
from asset_pipeline.ledger.checkpoints import Checkpointer, stored_notes
from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.events import record_event, record_events, rotate_key
from asset_pipeline.ledger.schema import audit_events, checkpoints, signing_keys
from asset_pipeline.ledger.signing import Recorder, recorded_trust
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline_tests.ledger.making import NOW, finish, page, placement, rows


def record(ledger: Ledger, count: int, now: datetime = NOW) -> None:
    with ledger.begin() as tx:
        record_events(tx, [Event("job_queued", now, "2026-09", f"job-{n}", {"n": n}) for n in range(count)])


def judge(ledger: Ledger, extra: list[str] | None = None) -> list[tuple[Fault, int | None]]:
    with ledger.read() as conn:
        log = Log(conn)
        verdict = verifying.verify(log, recorded_trust(conn, None), notes(conn) + (extra or []), processes=1)
    return [(found.fault, found.seq) for found in verdict.findings + log.findings]


def sealer(ledger: Ledger, tmp_path: Path, *stores: FolderStore) -> Checkpointer:
    archive = FolderStore(tmp_path / "archive", name="archive")
    return Checkpointer(ledger, Recorder(tmp_path / "keys"), [archive, *stores])


def reach_in(ledger: Ledger, *statements: str) -> None:
    """Change the tables as whoever owns the database can: the guards are taken away first."""
    with ledger.begin() as tx:
        if tx.dialect.name == "postgresql":
            tx.execute(text("ALTER TABLE audit_events DISABLE TRIGGER USER"))
        else:
            for name in ("audit_events_keeps_update", "audit_events_keeps_delete"):
                tx.execute(text(f"DROP TRIGGER {name}"))
        for statement in statements:
            tx.exec_driver_sql(statement)


def test_everything_a_document_goes_through_is_one_signed_chain(ledger: Ledger) -> None:
    finish(ledger, "tides.pdf", page(1, placement(1)), page(2, placement(2, 1, "gull"), placement(2, 2, None)))
    assert judge(ledger) == []
    schema = json.loads((Path(verifying.__file__).parent / "event.schema.json").read_text())
    bodies = [json.loads(row["payload"]) for row in rows(ledger, audit_events)]
    for body in bodies:
        jsonschema.validate(body, schema, cls=jsonschema.Draft202012Validator)
    (published,) = [body for body in bodies if body["type"] == "unit_published"]
    named = {name: (original, display) for name, original, display in published["pictures"]}
    assert set(named) == {"page-001-image-001", "page-002-image-001"}
    assert published["held"] == [["page-002-image-002", "truncated_stream"]]
    assert published["timings_ms"] == {"decode": 2, "fetch": 1, "publish": 3}
    assert (published["sequence"], published["revision"]) == (0, 1)


def test_an_event_names_who_did_it(ledger: Ledger) -> None:
    with ledger.begin() as tx:
        record_event(tx, "job_requeued", payload={}, now=NOW, actor=Actor("ada", "authenticated"))
        record_event(tx, "job_requeued", payload={}, now=NOW)
    told = [json.loads(row["payload"]) for row in rows(ledger, audit_events)]
    assert [(body["actor"], body["actor_source"]) for body in told] == [
        ("ada", "authenticated"),
        ("asset-pipeline", "system"),
    ]


def test_threads_that_record_at_once_make_one_chain(ledger: Ledger) -> None:
    def some(_: int) -> None:
        for _ in range(5):
            record(ledger, 3)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(some, range(6)))
    assert judge(ledger) == []
    assert len(rows(ledger, audit_events)) == 90


def test_a_rotation_in_the_middle_verifies_and_a_running_process_goes_on_with_the_new_key(
    ledger: Ledger, ledger_url: str, tmp_path: Path
) -> None:
    record(ledger, 3)
    other = open_ledger(ledger_url, recorder=Recorder(tmp_path / "keys"))
    with other.begin() as tx:
        assert rotate_key(tx, make_key(tmp_path / "keys"), NOW) == 4
    other.close()
    record(ledger, 3)
    assert judge(ledger) == []
    keys = rows(ledger, signing_keys)
    assert sorted(row["first_seq"] for row in keys) == [1, 5]


def test_a_ledger_whose_key_is_not_here_records_nothing(ledger: Ledger, ledger_url: str, tmp_path: Path) -> None:
    record(ledger, 1)
    for recorder in (Recorder(tmp_path / "elsewhere"), Recorder(tmp_path / "elsewhere", event_key="07" * 32), None):
        other = open_ledger(ledger_url, recorder=recorder)
        with pytest.raises(ConfigurationError, match="key"):
            record(other, 1)
        other.close()
    assert len(rows(ledger, audit_events)) == 1


def test_the_key_may_come_from_the_environment_certified_by_a_key_service(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SERVICE", "08" * 32)
    recorder = Recorder(tmp_path / "keys", event_key="07" * 32, key_service="env:SERVICE")
    ledger = open_ledger(ledger_url, recorder=recorder)
    record(ledger, 3)
    archive = FolderStore(tmp_path / "archive", name="archive")
    Checkpointer(ledger, recorder, [archive]).seal()
    authority = recorder.authority()
    assert authority is not None
    with ledger.read() as conn:
        trust = recorded_trust(conn, authority.public_key)
        verdict = verifying.verify(Log(conn), trust, notes(conn), processes=1)
        uncertified = replace(trust, keys=(replace(trust.keys[0], certificate=None),))
        doubted = verifying.verify(Log(conn), uncertified, notes(conn), processes=1)
    ledger.close()
    assert (verdict.findings, verdict.anchored) == ([], 3)
    assert {found.fault for found in doubted.findings} == {Fault.UNKNOWN_KEY}
    assert not (tmp_path / "keys").exists()


def test_a_log_begun_with_a_key_of_its_own_goes_on_under_a_key_service(
    ledger_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = FolderStore(tmp_path / "archive", name="archive")
    begun = open_ledger(ledger_url, recorder=Recorder(tmp_path / "keys"))
    record(begun, 3)
    Checkpointer(begun, Recorder(tmp_path / "keys"), [archive]).seal()
    begun.close()

    monkeypatch.setenv("SERVICE", "08" * 32)
    recorder = Recorder(tmp_path / "keys", key_service="env:SERVICE")
    authority = recorder.authority()
    assert authority is not None
    ledger = open_ledger(ledger_url, recorder=recorder)
    checkpointer = Checkpointer(ledger, recorder, [archive])

    def judged(trust: Trust) -> list[tuple[Fault, int | None]]:
        with ledger.read() as conn:
            verdict = verifying.verify(Log(conn), trust, notes(conn), processes=1)
        return [(found.fault, found.seq) for found in verdict.findings]

    def own() -> Trust:
        with ledger.read() as conn:
            return recorded_trust(conn, authority.public_key)

    record(ledger, 2)
    checkpointer.seal()
    assert own().is_uncertified
    assert judged(own()) == []
    with ledger.begin() as tx:
        assert rotate_key(tx, make_key(tmp_path / "keys"), NOW) == 6
    record(ledger, 2)
    checkpointer.seal()
    trust = own()
    assert not trust.is_uncertified
    assert judged(trust) == []
    handed_over = trust_file.loads(trust.dumps())
    assert judged(handed_over) == []

    uncertified = replace(trust, keys=(trust.keys[0], replace(trust.keys[1], certificate=None)))
    assert (Fault.UNKNOWN_KEY, 6) in judged(uncertified)
    assert (Fault.UNKNOWN_KEY, 7) in judged(uncertified)
    assert judged(replace(trust, since=0))[0] == (Fault.UNKNOWN_KEY, 1)
    ledger.close()


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        (["UPDATE audit_events SET payload = replace(payload, '\"n\":4', '\"n\":5') WHERE seq = 5"], "BAD_SIGNATURE"),
        (["UPDATE audit_events SET payload = payload || ' ' WHERE seq = 5"], "BAD_SIGNATURE"),
        (["UPDATE audit_events SET signatures = '[]' WHERE seq = 5"], "BAD_SIGNATURE"),
        (["UPDATE audit_events SET signatures = 'x' WHERE seq = 5"], "BAD_SIGNATURE"),
        (["UPDATE audit_events SET type = 'job_failed' WHERE seq = 5"], "REWRITTEN"),
        (["UPDATE audit_events SET month = NULL WHERE seq = 5"], "REWRITTEN"),
        (["DELETE FROM audit_events WHERE seq = 5"], "GAP"),
        (["DELETE FROM audit_events WHERE seq = 5", "UPDATE audit_events SET seq = 5 WHERE seq = 6"], "REWRITTEN"),
        (["DELETE FROM audit_events WHERE seq >= 9"], "CUT_TAIL"),
        (["UPDATE audit_events SET signatures = replace(signatures, '[[\"', '[[\"0') WHERE seq = 5"], "UNKNOWN_KEY"),
    ],
)
def test_whoever_reaches_into_the_table_is_found(
    ledger: Ledger, tmp_path: Path, statements: list[str], expected: str
) -> None:
    record(ledger, 12)
    sealer(ledger, tmp_path).seal()
    assert judge(ledger) == []
    reach_in(ledger, *statements)
    found = judge(ledger)
    assert Fault[expected] in [fault for fault, _ in found], found
    assert {seq for fault, seq in found if fault is Fault[expected]} & {5, 9}


def test_a_checkpoint_elsewhere_tells_of_a_tail_cut_off_with_the_checkpoints_and_the_counter(
    ledger: Ledger, tmp_path: Path
) -> None:
    record(ledger, 12)
    second = FolderStore(tmp_path / "second", name="second")
    checkpointer = sealer(ledger, tmp_path, second)
    checkpointer.seal()
    reach_in(ledger, "DELETE FROM audit_events WHERE seq > 8", "UPDATE event_counter SET seq = 8")
    with ledger.begin() as tx:
        if tx.dialect.name == "postgresql":
            tx.execute(text("ALTER TABLE checkpoints DISABLE TRIGGER USER"))
        else:
            tx.execute(text("DROP TRIGGER checkpoints_keeps_delete"))
        tx.execute(text("DELETE FROM checkpoints"))
    assert judge(ledger) == []
    assert judge(ledger, list(stored_notes(second))) == [(Fault.CUT_TAIL, 9)]
    with pytest.raises(IntegrityError):  # what was there is never replaced, and a broken chain is not vouched for
        record(ledger, 4)
        checkpointer.seal()


def test_a_checkpoint_is_made_of_256_events_and_again_when_asked(ledger: Ledger, tmp_path: Path) -> None:
    checkpointer = sealer(ledger, tmp_path)
    ledger.when_recorded = checkpointer.recorded
    now = datetime.now(UTC)
    for count in (255, 1, 300, 2):
        record(ledger, count, now)
    checkpointer.close()
    sizes = [row["size"] for row in rows(ledger, checkpoints)]
    assert sizes == [256, 556, 558]
    assert checkpointer.seal() is None
    stored = sorted((tmp_path / "archive" / "checkpoints").iterdir())
    assert [int(path.stem) for path in stored] == sizes
    assert [path.read_text() for path in stored] == [row["note"] for row in rows(ledger, checkpoints)]
    assert judge(ledger) == []


def test_a_checkpoint_is_made_of_what_was_left_uncovered_for_a_minute(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpointer = sealer(ledger, tmp_path)
    ledger.when_recorded = checkpointer.recorded
    record(ledger, 1)  # NOW lies in the past: as if another process had left it there
    assert [row["size"] for row in rows(ledger, checkpoints)] == [1]
    record(ledger, 1)
    assert [row["size"] for row in rows(ledger, checkpoints)] == [1]
    monkeypatch.setattr("asset_pipeline.ledger.checkpoints.SECONDS", 0.0)
    record(ledger, 1)
    assert [row["size"] for row in rows(ledger, checkpoints)] == [1, 3]


def sizes_when(ledger: Ledger, size: int) -> list[int]:
    """Sizes of the checkpoints once there is one of ``size`` events; whatever there is after five seconds."""
    until = time.monotonic() + 5
    while True:
        sizes = [row["size"] for row in rows(ledger, checkpoints)]
        if size in sizes or time.monotonic() > until:
            return sizes
        time.sleep(0.02)


def test_a_process_with_nothing_more_to_do_leaves_no_event_uncovered_for_longer_than_a_minute(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asset_pipeline.ledger.checkpoints.SECONDS", 0.2)
    checkpointer = sealer(ledger, tmp_path)
    ledger.when_recorded = checkpointer.recorded
    record(ledger, 1, datetime.now(UTC) + timedelta(minutes=1))  # by its own time it is not due for long
    assert sizes_when(ledger, 1) == [1]
    record(ledger, 2, datetime.now(UTC))
    assert sizes_when(ledger, 3) == [1, 3]
    checkpointer.close()


def test_a_checkpoint_that_could_not_be_stored_is_tried_again_though_nothing_more_happens(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asset_pipeline.ledger.checkpoints.SECONDS", 0.2)
    monkeypatch.setattr("asset_pipeline.ledger.checkpoints.PAUSE_SECONDS", 0.2)
    (tmp_path / "archive").write_text("in the way")
    checkpointer = sealer(ledger, tmp_path)
    ledger.when_recorded = checkpointer.recorded
    record(ledger, 1)
    assert rows(ledger, checkpoints) == []
    (tmp_path / "archive").unlink()
    assert sizes_when(ledger, 1) == [1]
    checkpointer.close()


def test_what_a_killed_process_left_uncovered_is_covered_by_whoever_looks_next(ledger: Ledger, tmp_path: Path) -> None:
    record(ledger, 3, datetime.now(UTC) - timedelta(seconds=31))  # and nobody's checkpoint is told of it
    looking = sealer(ledger, tmp_path)
    looking.catch_up()
    assert rows(ledger, checkpoints) == []
    looking.catch_up(30)
    assert [row["size"] for row in rows(ledger, checkpoints)] == [3]
    looking.catch_up(0)
    looking.close()
    assert [row["size"] for row in rows(ledger, checkpoints)] == [3]


def test_a_store_that_is_away_holds_up_nothing_and_the_next_checkpoint_covers_it_all(
    ledger: Ledger, tmp_path: Path
) -> None:
    (tmp_path / "archive").write_text("in the way")
    checkpointer = sealer(ledger, tmp_path)
    ledger.when_recorded = checkpointer.recorded
    record(ledger, 300)
    assert rows(ledger, checkpoints) == []
    with pytest.raises(StorageError):
        checkpointer.seal()
    (tmp_path / "archive").unlink()
    checkpointer.seal()
    assert [row["size"] for row in rows(ledger, checkpoints)] == [300]


@pytest.mark.parametrize("changed", ["'x'", 'replace(payload, \'"prev":"\', \'"prev":"0\')'])
def test_no_checkpoint_vouches_for_events_that_were_touched_before_it_was_made(
    ledger: Ledger, tmp_path: Path, changed: str
) -> None:
    record(ledger, 4)
    reach_in(ledger, f"UPDATE audit_events SET payload = {changed} WHERE seq = 4")
    with pytest.raises(IntegrityError, match="do not follow"):
        sealer(ledger, tmp_path).seal()
    assert rows(ledger, checkpoints) == []


def test_two_processes_that_seal_at_once_agree(ledger: Ledger, tmp_path: Path) -> None:
    record(ledger, 40)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: sealer(ledger, tmp_path).seal(), range(4)))
    assert [row["size"] for row in rows(ledger, checkpoints)] == [40]
    assert judge(ledger) == []


def test_facts_of_an_event_cannot_take_the_place_of_what_the_log_says(ledger: Ledger) -> None:
    for name in ("seq", "prev", "actor", "type", "at"):
        with pytest.raises(ValueError, match="facts"), ledger.begin() as tx:
            record_event(tx, "job_queued", payload={name: "1"}, now=NOW)


def test_a_verdict_counts_what_no_checkpoint_covers(ledger: Ledger, tmp_path: Path) -> None:
    record(ledger, 5)
    sealer(ledger, tmp_path).seal()
    record(ledger, 2)
    with ledger.read() as conn:
        verdict: Verdict = verifying.verify(Log(conn), recorded_trust(conn, None), notes(conn), processes=1)
    assert (verdict.anchored, verdict.unanchored) == (5, 2)
