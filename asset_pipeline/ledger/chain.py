"""The log as it lies in the ledger, for who verifies or exports it: envelopes put together from rows.

Nothing is judged here but one thing that only rows can get wrong: columns that say other than what was signed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, select

from asset_pipeline.evidence.chain import EVENT, moment
from asset_pipeline.evidence.dsse import Envelope, Signature
from asset_pipeline.evidence.findings import Fault, Finding
from asset_pipeline.ledger.schema import audit_events, checkpoints, event_counter

PORTION = 2000


@dataclass(slots=True)
class Log:
    """The events of a ledger from ``first`` to ``last`` (None: the end), in order. ``findings`` fill as it is read."""

    conn: Connection
    first: int = 1
    last: int | None = None
    findings: list[Finding] = field(default_factory=list)

    def __iter__(self) -> Iterator[Envelope]:
        for row in self.rows():
            self._compare(row)
            yield envelope_of(row)

    def rows(self) -> Iterator[RowMapping]:
        """The rows, a portion at a time."""
        after = self.first - 1
        while True:
            query = select(audit_events).where(audit_events.c.seq > after).order_by(audit_events.c.seq).limit(PORTION)
            if self.last is not None:
                query = query.where(audit_events.c.seq <= self.last)
            found = self.conn.execute(query).mappings().all()
            yield from found
            if len(found) < PORTION:
                return
            after = found[-1]["seq"]

    def _compare(self, row: RowMapping) -> None:
        try:
            body = json.loads(row["payload"])
            said = {name: body.get(name) for name in ("seq", "type", "month", "job_id", "at")}
        except (ValueError, AttributeError):
            return  # the verifier tells what is wrong with it
        if said != _columns(row):
            self.findings.append(Finding(Fault.REWRITTEN, row["seq"], "columns of its row say other than was signed"))


def envelope_of(row: RowMapping) -> Envelope:
    """The signed event in a row; without signatures when those cannot be read."""
    try:
        signatures = tuple(Signature(key_id, bytes.fromhex(value)) for key_id, value in json.loads(row["signatures"]))
    except (ValueError, TypeError):
        signatures = ()
    return Envelope(EVENT, row["payload"].encode("utf-8", "surrogatepass"), signatures)


def last_seq(conn: Connection) -> int:
    """Number of the last event that the counter gave out: a log that ends before it was cut."""
    return int(conn.execute(select(event_counter.c.seq)).scalar_one())


def notes(conn: Connection) -> list[str]:
    """The checkpoints that the ledger keeps, by size."""
    return list(conn.execute(select(checkpoints.c.note).order_by(checkpoints.c.size)).scalars())


def span_of_month(conn: Connection, month: str) -> tuple[int, int] | None:
    """Numbers of the first and the last event about ``month``; None when there is none."""
    query = select(func.min(audit_events.c.seq), func.max(audit_events.c.seq)).where(audit_events.c.month == month)
    first, last = conn.execute(query).one()
    return None if first is None else (first, last)


def _columns(row: RowMapping) -> dict[str, Any]:
    at: datetime = row["at"]
    return {name: row[name] for name in ("seq", "type", "month", "job_id")} | {"at": moment(at)}
