"""Whether a month kept what the policy holds the work to (part ``objectives``), answered from the ledger at no step.

What these checks are called and mean stands with the others in ``checks``. A failed one fails no run: it says that
something is slow, fails often, or is kept too long. How the figures come about belongs in ``history``.
"""

from __future__ import annotations

from datetime import datetime

import dagster as dg
from sqlalchemy import Connection

from asset_pipeline.defs.checks import FIRST_ATTEMPT, IN_TIME, NOT_OVERDUE
from asset_pipeline.history.observations import Scope, ended_attempts, percentile, queue_seconds
from asset_pipeline.history.overdue import overdue
from asset_pipeline.policy import Objectives


def of_images(conn: Connection, month: str, held: Objectives) -> list[dg.AssetCheckResult]:
    """The checks of the month's work."""
    return [validated_at_first_attempt(conn, month, held), begun_in_time(conn, month, held)]


def validated_at_first_attempt(conn: Connection, month: str, held: Objectives) -> dg.AssetCheckResult:
    """Whether enough of the month's units delivered a validated result at once."""
    tried = ended_attempts(conn, Scope(month=month))
    share = tried.first_attempt_share
    told = {"units": str(tried.first), "at_first_attempt": str(tried.first_delivered), "least_share": _share(held)}
    return _result(
        FIRST_ATTEMPT,
        share is None or share >= held.first_attempt_share,
        f"{tried.first_delivered} of {tried.first} units of work succeeded at their first attempt.",
        told | {f"retried_{reason}": str(count) for reason, count in sorted(tried.retries.items())},
    )


def begun_in_time(conn: Connection, month: str, held: Objectives) -> dg.AssetCheckResult:
    """Whether the month's jobs did not wait too long for their first attempt."""
    waited = percentile(queue_seconds(conn, Scope(month=month)), 0.95) or 0.0
    return _result(
        IN_TIME,
        waited <= held.queue_seconds,
        f"95 of 100 jobs were begun within {waited:.0f} seconds; {held.queue_seconds:.0f} are allowed.",
        {"seconds": f"{waited:.1f}", "most_seconds": f"{held.queue_seconds:.0f}"},
    )


def nothing_past_deadline(conn: Connection, month: str, held: Objectives, now: datetime) -> dg.AssetCheckResult:
    """Whether nothing of the month is kept longer than it may be."""
    kept = overdue(conn, now, month)
    return _result(
        NOT_OVERDUE,
        kept.bytes <= held.overdue_bytes,
        f"{kept.files} files with {kept.bytes} bytes are past their deadline." if kept.files else "Nothing is.",
        {"files": str(kept.files), "bytes": str(kept.bytes), "hours_past": f"{kept.seconds / 3600:.1f}"},
    )


def _share(held: Objectives) -> str:
    return f"{held.first_attempt_share:g}"


def _result(name: str, passed: bool, description: str, told: dict[str, str]) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=description,
        metadata=told,
    )
