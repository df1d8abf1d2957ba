"""Audit events: what happened, signed and chained in the transaction that makes it so.

The number comes from a locked counter row in the caller's transaction, not from a database sequence,
whose gaps would look like deletions; a transaction that rolls back gives its number back. The lock is
held until commit: record events last, and many at once where there are many. What an event may hold, and
its shape, belong in ``evidence.chain``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, update

from asset_pipeline.evidence import chain
from asset_pipeline.evidence.actor import Actor, current_actor
from asset_pipeline.evidence.chain import Event
from asset_pipeline.evidence.keys import Signer
from asset_pipeline.evidence.types import KEY_ROTATED
from asset_pipeline.ledger.schema import audit_events, event_counter
from asset_pipeline.ledger.signing import COUNTER_ID, ensure_key, introduce, recorder_of

RECORDED = "recorded_seq"
"""Under this name a connection's ``info`` holds the number of the last event of its transaction."""


def record_event(
    tx: Connection,
    event_type: str,
    *,
    month: str | None = None,
    job_id: str | None = None,
    payload: Mapping[str, Any],
    now: datetime,
    actor: Actor | None = None,
) -> int:
    """Append an event in the caller's transaction; returns its sequence number (from 1).

    ``actor`` is who did it where that is not who acts in this process (``evidence.actor``).
    """
    return record_events(tx, [Event(event_type, now, month, job_id, payload, actor)])


def record_events(tx: Connection, events: Sequence[Event]) -> int:
    """Append ``events``, in order, in the caller's transaction; returns the number of the last one."""
    counter, signer = ensure_key(tx, events[0].at)
    return _append(tx, events, counter, [signer])


def rotate_key(tx: Connection, new: Signer, now: datetime) -> int:
    """Let ``new`` sign all later events. The event that says so is the old key's last, and signed by both."""
    counter, old = ensure_key(tx, now)
    facts = {"old_key_id": old.key_id, "new_key_id": new.key_id, "new_public_key": new.public_key.hex()}
    seq = _append(tx, [Event(KEY_ROTATED, now, facts=facts)], counter, [old, new])
    introduce(tx, new, seq + 1, now)
    return seq


def _append(tx: Connection, events: Sequence[Event], counter: RowMapping, signers: Sequence[Signer]) -> int:
    policy_digest, actor = recorder_of(tx).policy_digest, current_actor()
    seq, link = int(counter["seq"]), bytes.fromhex(counter["head"]) if counter["head"] else chain.GENESIS
    rows = []
    for event in events:
        seq += 1
        envelope = chain.seal(event, seq, link, signers, actor, policy_digest)
        link = envelope.link()
        rows.append(
            {
                "seq": seq,
                "type": event.type,
                "at": event.at,
                "month": event.month,
                "job_id": event.job_id,
                "payload": envelope.payload.decode(),
                "signatures": json.dumps([[row.key_id, row.value.hex()] for row in envelope.signatures]),
            }
        )
    tx.execute(insert(audit_events), rows)
    moved = update(event_counter).where(event_counter.c.counter_id == COUNTER_ID)
    tx.execute(moved.values(seq=seq, head=link.hex()))
    tx.info[RECORDED] = seq
    return seq
