"""Audit events: what happened, in an order without gaps.

The number comes from a locked counter row in the caller's transaction, not from a database sequence,
whose gaps would look like deletions; a transaction that rolls back gives its number back. The lock is
held until commit: record events last. Payloads hold ids, counts, digests and reason codes; anything
with a space or beyond ASCII is refused here, so that no document text or name slips in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import rfc8785
from sqlalchemy import Connection, insert, update

from asset_pipeline.ledger.schema import audit_events, event_counter

COUNTER_ID = 1
_TYPE = re.compile(r"[a-z][a-z_]{0,47}")
_CODE = re.compile(r"[\x21-\x7e]{0,512}")


def record_event(
    tx: Connection,
    event_type: str,
    *,
    month: str | None = None,
    job_id: str | None = None,
    payload: Mapping[str, Any],
    now: datetime,
) -> int:
    """Append an event in the caller's transaction; returns its sequence number (from 1)."""
    if not _TYPE.fullmatch(event_type):
        raise ValueError("an event type is lower-case words joined by underscores")
    _check(payload)
    body = rfc8785.dumps(dict(payload)).decode("utf-8")
    counter = update(event_counter).where(event_counter.c.counter_id == COUNTER_ID)
    seq: int = tx.execute(counter.values(seq=event_counter.c.seq + 1).returning(event_counter.c.seq)).scalar_one()
    tx.execute(insert(audit_events).values(seq=seq, type=event_type, at=now, month=month, job_id=job_id, payload=body))
    return seq


def _check(value: Any) -> None:
    """Refuse what could be a text of a document, a name or a path with spaces."""
    match value:
        case None | bool() | int() | float():
            return
        case str():
            if not _CODE.fullmatch(value):
                raise ValueError("an event holds ids, counts, digests and reason codes only")
        case Mapping():
            for key, part in value.items():
                _check(key)
                _check(part)
        case list() | tuple():
            for part in value:
                _check(part)
        case _:
            raise ValueError(f"an event cannot hold a {type(value).__name__}")
