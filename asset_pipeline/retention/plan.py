"""What the next pass would delete: counts and bytes by kind and by month. Looks only; nothing is changed.

Told from the same queries that the pass deletes by (``ledger.expiry``), as of one moment.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from asset_pipeline.archive.gallery.publish import gallery_prefix
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.expiry import due_jobs, keeps, months_to_tell, past_deadline
from asset_pipeline.ledger.holds import Hold, is_held, keeps_everything, list_holds
from asset_pipeline.ledger.schema import jobs, placements
from asset_pipeline.retention.clocks import due_in_quarantine, entries
from asset_pipeline.retention.janitor import left_behind

THUMBNAIL = "thumbnail"
WORKING_COPY = "working_copy"


@dataclass(frozen=True, slots=True)
class Line:
    """What goes of one kind, of one month. ``month`` None: it belongs to no report."""

    month: str | None
    kind: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Plan:
    """``reports`` expire: jobs, by month. ``held`` jobs are past their deadline and stay, because of ``holds``."""

    at: datetime
    reports: dict[str, int]
    lines: list[Line]
    held: int
    holds: list[Hold]

    @property
    def files(self) -> int:
        """How many files go."""
        return sum(line.files for line in self.lines)

    @property
    def bytes(self) -> int:
        """How many bytes go."""
        return sum(line.bytes for line in self.lines)


def plan(inst: Installation, now: datetime) -> Plan:
    """What is due at ``now``. Raises StorageError when a store is away."""
    found: dict[tuple[str | None, str], list[int]] = {}
    with inst.ledger.read() as conn:
        due = due_jobs(conn, now)
        for row in past_deadline(conn, now):
            found.setdefault((row.month, row.kind.value), []).append(row.bytes)
        months = sorted({row.month for row in due} | set(months_to_tell(conn)))
        shown = {month: _shown(conn, month, now) for month in months}
        held = conn.execute(select(func.count()).where(jobs.c.archive_until <= now, is_held())).scalar_one()
        holds, everything = list_holds(conn), keeps_everything(conn)
    for month, kept in shown.items():
        if sizes := _thumbnails(inst, month, kept):
            found[month, THUMBNAIL] = sizes
    if sizes := [entry.bytes for entry in due_in_quarantine(inst, now)]:
        found[None, "quarantine"] = sizes
    lines = [Line(month, kind, len(sizes), sum(sizes)) for (month, kind), sizes in found.items()]
    copies, size = (0, 0) if everything else left_behind(inst, now)
    if copies:
        lines.append(Line(None, WORKING_COPY, copies, size))
    lines.sort(key=lambda line: (line.month is None, line.month or "", line.kind))
    return Plan(now, dict(Counter(row.month for row in due)), lines, int(held), holds)


def _shown(conn: Connection, month: str, now: datetime) -> set[str]:
    """Display renditions of the month that some report goes on showing."""
    query = select(placements.c.display).join(jobs, jobs.c.job_id == placements.c.job_id)
    return set(conn.execute(query.where(jobs.c.month == month, keeps(now)).distinct()).scalars())


def _thumbnails(inst: Installation, month: str, kept: set[str]) -> list[int]:
    found = entries(inst.archive, f"{gallery_prefix(month)}thumbnails/")
    return [entry.bytes for entry in found if entry.key.rpartition("/")[2].removesuffix(".webp") not in kept]
