"""`evidence`, `manifest` and `policy` as a person or a script uses them."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import jsonschema
import pytest
import yaml

from asset_pipeline.evidence.chain import moment
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger.events import record_event
from asset_pipeline.settings import load_settings
from asset_pipeline_tests.small_documents import MONTH, drop_document


@pytest.fixture
def archived(command, place: Path):
    """A month of one document, archived by `run`."""
    drop_document(load_settings(home=place / ".asset_pipeline"), "a.pdf", [10, 20])
    ended = command("run", MONTH)
    assert ended.status == 0, ended.err
    assert "A key that signs this installation's records was made" in ended.err
    return command


def leave_uncovered(place: Path, seconds: float) -> str:
    """Record an event so long ago in a process that is killed; when that was, as an answer writes it."""
    at = datetime.now(UTC) - timedelta(seconds=seconds)
    with open_installation(load_settings(home=place / ".asset_pipeline")) as inst:
        inst.ledger.when_recorded = None
        with inst.ledger.begin() as tx:
            record_event(tx, "job_requeued", payload={}, now=at)
    return moment(at)


def test_events_that_no_checkpoint_covers_are_told_with_their_age_and_the_janitor_covers_them(
    command, place: Path
) -> None:
    since = leave_uncovered(place, 61)
    told = json.loads(command("evidence", "verify", "--format", "json").out)
    assert (told["sound"], told["not_covered"], told["not_covered_since"]) == (True, 1, since)
    assert any("Nothing proves that the log goes no further" in word for word in told["proves"])
    assert command("janitor").status == 0
    told = json.loads(command("evidence", "verify", "--format", "json").out)
    assert (told["sound"], told["not_covered"], told["not_covered_since"]) == (True, 0, None)


def test_a_key_service_named_later_takes_over_with_the_next_rotation(command, place: Path) -> None:
    leave_uncovered(place, 61)
    assert command("janitor").status == 0
    service = {"ASSET_PIPELINE_KEY_SERVICE": "env:SERVICE", "SERVICE": "08" * 32}
    verified = command("evidence", "verify", **service)
    assert (verified.status, "rotate-key" in verified.err) == (0, True)
    assert command("evidence", "rotate-key", **service).status == 0
    verified = command("evidence", "verify", **service)
    assert (verified.status, "rotate-key" in verified.err) == (0, False)
    (place / "trust.json").write_text(command("evidence", "trust", **service).out)
    assert command("evidence", "verify", "--trust", "trust.json", **service).status == 0


def test_a_month_is_proved_exported_and_traced_by_the_command_line(archived, place: Path) -> None:
    verified = archived("evidence", "verify", "--format", "json")
    told = json.loads(verified.out)
    assert (verified.status, told["sound"], told["not_covered"], told["findings"]) == (0, True, 0, [])
    (place / "trust.json").write_text(archived("evidence", "trust").out)

    exported = archived("evidence", "export", MONTH, "bag", "--pictures")
    assert exported.status == 0, exported.err
    bag = archived("evidence", "verify", "bag", "--trust", "trust.json", ASSET_PIPELINE_HOME="/nowhere")
    assert bag.status == 0, bag.err

    source = json.loads(archived("evidence", "source", "page-002-image-001", "--format", "json").out)["sources"]
    assert [(row["document"], row["page"]) for row in source] == [("a.pdf", 2)]
    assert archived("evidence", "source", "page-999-image-001").one_line_error()

    (manifest,) = (place / ".asset_pipeline" / "archive" / "manifests" / MONTH).glob("*.json")
    for how in (("--trust", "trust.json"), ()):
        ended = archived("manifest", "verify", manifest, *how, "--format", "json")
        assert (ended.status, json.loads(ended.out)["report_id"]) == (0, manifest.stem)
    shown = json.loads(archived("manifest", "show", manifest).out)
    assert shown["record"]["name"] == "a.pdf"
    assert [row["sequence"] for row in shown["record"]["units"]] == [0]
    (place / "other.json").write_bytes(manifest.read_bytes().replace(b'"sig":"', b'"sig":"AAAA', 1)[:-1])
    assert archived("manifest", "verify", "other.json").status == 15


def test_each_kind_of_damage_ends_with_its_own_status_and_names_the_event(archived, place: Path) -> None:
    ledger = place / ".asset_pipeline" / "ledger.db"
    sound = ledger.read_bytes()
    damages = {
        10: 'UPDATE audit_events SET payload = replace(payload, \'"actor":"\', \'"actor":"x\') WHERE seq = 2',
        11: "DELETE FROM audit_events WHERE seq = 2",
        12: "DELETE FROM audit_events WHERE seq >= 2",
    }
    for status, damage in damages.items():
        with sqlite3.connect(ledger) as database:
            for trigger in ("audit_events_keeps_update", "audit_events_keeps_delete"):
                database.execute(f"DROP TRIGGER IF EXISTS {trigger}")
            assert database.execute(damage).rowcount
        database.close()
        ended = archived("evidence", "verify", "--format", "json")
        assert (ended.status, json.loads(ended.out)["findings"][0]["event"]) == (status, 2)
        ledger.write_bytes(sound)


def test_a_key_is_replaced_by_a_command_and_the_log_goes_on(archived, place: Path) -> None:
    before = archived("evidence", "trust").out
    rotated = archived("evidence", "rotate-key")
    assert rotated.status == 0, rotated.err
    drop_document(load_settings(home=place / ".asset_pipeline"), "b.pdf", [30])
    assert archived("run", MONTH).status == 0
    assert archived("evidence", "verify").status == 0
    (place / "old.json").write_text(before)
    assert archived("evidence", "verify", "--trust", "old.json").status == 14
    given = archived("evidence", "rotate-key", ASSET_PIPELINE_EVENT_KEY="07" * 32)
    assert "--to env:" in given.one_line_error()


def test_policy_commands_take_the_one_in_force_and_say_what_a_file_would_change(command, place: Path) -> None:
    for name in ("show", "check", "diff"):
        assert command("policy", name).status == 0
    schema = json.loads(command("policy", "schema").out)
    (place / "new.yaml").write_text(yaml.safe_dump({"limits": {"pages": 7}, "retention": {"archive_days": 30}}))
    jsonschema.validate(yaml.safe_load((place / "new.yaml").read_text()), schema, cls=jsonschema.Draft202012Validator)
    told = json.loads(command("policy", "diff", "new.yaml", "--format", "json").out)["changes"]
    assert {(row["field"], row["after"], row["changes_extraction"]) for row in told} == {
        ("limits.pages", 7, True),
        ("retention.archive_days", 30, False),
    }
    (place / "new.yaml").write_text("limits: {pages: -1}\n")
    wrong = command("policy", "check", "new.yaml")
    assert wrong.status == 1
    assert "limits.pages" in wrong.one_line_error()


def test_a_new_policy_is_an_event_of_the_log(archived, place: Path) -> None:
    (place / ".asset_pipeline" / "policy.yaml").write_text("retention: {archive_days: 30}\n")
    drop_document(load_settings(home=place / ".asset_pipeline"), "b.pdf", [30])
    assert archived("run", MONTH).status == 0
    with sqlite3.connect(place / ".asset_pipeline" / "ledger.db") as database:
        rows = database.execute("SELECT payload FROM audit_events WHERE type = 'policy_changed' ORDER BY seq")
        first, second = (json.loads(payload) for (payload,) in rows)
    database.close()
    assert (first["previous_digest"], second["previous_digest"]) == (None, first["policy_digest"])
    assert first["extraction_digest"] == second["extraction_digest"]
    assert second["actor_source"] == "claimed"
