from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
import rfc8785
from sqlalchemy import delete, text, update
from sqlalchemy.exc import DBAPIError

from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.schema import APPEND_ONLY, audit_events
from asset_pipeline_tests.ledger.making import NOW, rows


def test_events_of_eight_threads_have_one_sequence_without_gaps_or_repeats(ledger: Ledger) -> None:
    def record(worker: int) -> None:
        for step in range(10):
            try:
                with ledger.begin() as tx:
                    record_event(tx, "admitted", payload={"worker": worker, "step": step}, now=NOW)
                    if step % 3 == 0:
                        raise InterruptedError
            except InterruptedError:
                continue

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(record, range(8)))
    recorded = rows(ledger, audit_events)
    assert [row["seq"] for row in recorded] == list(range(1, 8 * 6 + 1))
    assert {json.loads(row["payload"])["step"] for row in recorded} == {1, 2, 4, 5, 7, 8}


def test_payload_is_canonical(ledger: Ledger) -> None:
    payload = {"b": 1, "a": {"z": [1, "c"], "y": None}}
    with ledger.begin() as tx:
        assert record_event(tx, "admitted", month="2026-09", payload=payload, now=NOW) == 1
    (row,) = rows(ledger, audit_events)
    assert row["payload"].startswith('{"a":{"y":null,"z":[1,"c"]},"actor":')
    assert rfc8785.dumps(json.loads(row["payload"])).decode() == row["payload"]
    assert row["at"] == NOW


@pytest.mark.parametrize("value", ["Annual report.pdf", "Bestandsaufnahme Küste", {"text": "two words"}, ["a b"], b"x"])
def test_event_refuses_what_could_be_text_of_a_document_or_a_name(ledger: Ledger, value: object) -> None:
    with pytest.raises(ValueError), ledger.begin() as tx:
        record_event(tx, "admitted", payload={"value": value}, now=NOW)
    assert rows(ledger, audit_events) == []


@pytest.mark.parametrize(
    "statement",
    [
        update(audit_events).values(type="other"),
        update(audit_events).values(seq=audit_events.c.seq + 1),
        delete(audit_events),
    ],
)
def test_recorded_event_cannot_be_changed_or_removed(ledger: Ledger, statement) -> None:
    with ledger.begin() as tx:
        record_event(tx, "admitted", payload={}, now=NOW)
    before = rows(ledger, audit_events)
    with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as tx:
        tx.execute(statement)
    assert rows(ledger, audit_events) == before


def test_recorded_event_cannot_be_replaced_or_truncated(ledger: Ledger) -> None:
    with ledger.begin() as tx:
        record_event(tx, "admitted", payload={}, now=NOW)
    before = rows(ledger, audit_events)
    columns = "(seq, type, at, payload) VALUES (1, 'forged', '2026-01-01 00:00:00', '{}')"
    with ledger.read() as conn:
        postgres = conn.dialect.name == "postgresql"
    forgery = "TRUNCATE audit_events" if postgres else f"INSERT OR REPLACE INTO audit_events {columns}"
    with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as tx:
        tx.execute(text(forgery))
    upsert = f"INSERT INTO audit_events {columns} ON CONFLICT (seq) DO UPDATE SET type = 'forged'"
    with pytest.raises(DBAPIError, match="append-only"), ledger.begin() as tx:
        tx.execute(text(upsert))
    assert rows(ledger, audit_events) == before


def test_every_append_only_table_refuses_deletion(ledger: Ledger) -> None:
    """An empty table fires no row trigger, so only the triggers' presence can be asked for all of them."""
    from asset_pipeline.ledger.migrations.append_only import unguarded

    with ledger.read() as conn:
        assert unguarded(conn, APPEND_ONLY) == []
