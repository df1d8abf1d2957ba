"""What is still kept past its deadline: bytes, files, and for how long. 0 is the target (REQUIREMENTS R7.3).

Sources and pictures, from the ledger, which says what is stored. What several jobs share is overdue when no job keeps
it any more; what a legal hold keeps is not overdue. The rule belongs in ``ledger.expiry``, deleting in ``retention``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from asset_pipeline.ledger.expiry import past_deadline


@dataclass(frozen=True, slots=True)
class Overdue:
    """``seconds`` is how long the longest of it has been past its deadline."""

    bytes: int
    files: int
    seconds: float


def overdue(conn: Connection, now: datetime, month: str | None = None) -> Overdue:
    """What is past its deadline at ``now``; with ``month``, of what was last kept for a job of that month."""
    found = [row for row in past_deadline(conn, now) if month in (None, row.month)]
    return Overdue(
        bytes=sum(row.bytes for row in found),
        files=len(found),
        seconds=max(((now - row.deadline).total_seconds() for row in found), default=0.0),
    )
