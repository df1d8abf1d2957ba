"""Every measure of the installation in one place, against what the policy holds the work to (REQUIREMENTS R10).

A measure is a number with a unit, labels and, where there is one, a limit. A breach is told as ``capacity`` or
``input_shape`` where that is known. The three signals are ``first_attempt_share``, ``queue_age`` (95th percentile) and
``overdue_bytes``. What happened is taken from the last ``WINDOW`` (or one month); what is queued or kept is as of now.

The scaling signal is pressure / brake: pressure is the age of the oldest job over the budget of the queue, brake is
how far the 95th percentile of publishing exceeds its budget (1 when it does not). Above 1, more decoders help; below
0.5, fewer would do; a slow store holds it down, because more decoders would only wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from sqlalchemy import Connection

from asset_pipeline.history import observations as seen
from asset_pipeline.history.observations import Attempts, Scope, Waiting, percentile
from asset_pipeline.history.overdue import overdue
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.breaches import CAPACITY, INPUT_SHAPE
from asset_pipeline.policy import Objectives
from asset_pipeline.retention.janitor import WORKING_AGE

WINDOW = timedelta(days=30)

BREACH = "breach"
"""What is past its limit, where a class says nothing."""


@dataclass(frozen=True, slots=True)
class Measure:
    """``unit`` is seconds, bytes, ratio or count. ``value`` None: nothing was there to measure.

    ``breach`` is empty while ``limit`` is kept (``least`` says that it is a lower one).
    """

    name: str
    value: float | None
    unit: str
    meaning: str
    labels: dict[str, str] = field(default_factory=dict)
    limit: float | None = None
    least: bool = False
    kind: str = BREACH

    @property
    def breach(self) -> str:
        """The class of the breach, or nothing."""
        if self.value is None or self.limit is None:
            return ""
        past = self.value < self.limit if self.least else self.value > self.limit
        return self.kind if past else ""


def all_measures(inst: Installation, now: datetime, month: str | None = None) -> list[Measure]:
    """Every measure, in a stable order. With ``month`` what happened and what is queued are of that month."""
    scope = Scope(month=month, since=None if month else now - WINDOW)
    with inst.ledger.read() as conn:
        return list(_measured(conn, inst, scope, now))


def _measured(conn: Connection, inst: Installation, scope: Scope, now: datetime) -> Iterator[Measure]:
    held = inst.policy.objectives
    tried, waiting = seen.ended_attempts(conn, scope), seen.waiting_work(conn, now, scope.month)
    kept = overdue(conn, now, scope.month)
    volume, oldest_folder = working_folder(inst.settings.work_folder, now)
    lag = max(kept.seconds, oldest_folder - WORKING_AGE.total_seconds(), 0.0)
    admission, completion = seen.admission_seconds(conn, scope), seen.completion_seconds(conn, scope)
    yield first_attempt_share(tried, held)
    yield Measure(
        "queue_age",
        percentile(waiting.ages, 0.95),
        "seconds",
        "95th percentile of how long queued work has waited",
        limit=held.queue_seconds,
        kind=CAPACITY,
    )
    yield Measure("overdue_bytes", kept.bytes, "bytes", "bytes kept past their deadline", limit=held.overdue_bytes)
    yield from _objective("admission", admission, held.admission_seconds, held)
    yield from _objective("completion", completion, held.completion_seconds, held)
    yield from _stages(conn, scope, tried, admission, completion, held)
    yield Measure("oldest_job", waiting.oldest, "seconds", "age of the oldest job that has not ended")
    yield from _workload(conn, inst, scope, waiting)
    for reason, count in sorted(tried.retries.items()):
        yield Measure("retries", count, "count", "attempts that were tried again, by reason", {"reason": reason})
    for (of_month, reason), job_ids in seen.dead_letters(conn, scope).items():
        labels = {"month": of_month, "reason": reason}
        yield Measure("dead_letters", len(job_ids), "count", "documents that were given up", labels)
    yield Measure("attempts", tried.count, "count", "attempts that ended")
    for name, share in _RANKS:
        written = percentile(tried.bytes_written, share)
        yield Measure("bytes_written", written, "bytes", "new bytes in the archive an attempt", {"quantile": name})
    yield Measure("peak_memory", tried.peak_rss_bytes or None, "bytes", "largest memory of a decoder process")
    yield Measure(
        "temporary_bytes", volume, "bytes", "bytes in the working folder of this machine", limit=held.temporary_bytes
    )
    yield Measure("cleanup_lag", lag, "seconds", "how long the longest overdue thing has been past its deadline")
    yield Measure("scaling_signal", scaling_signal(waiting, tried, held), "ratio", "above 1 more decoders help")


_RANKS = (("0.5", 0.5), ("0.95", 0.95))


def first_attempt_share(tried: Attempts, held: Objectives) -> Measure:
    """The first of the three signals."""
    return Measure(
        "first_attempt_share",
        tried.first_attempt_share,
        "ratio",
        "units whose first attempt delivered a validated result",
        limit=held.first_attempt_share,
        least=True,
    )


def scaling_signal(waiting: Waiting, tried: Attempts, held: Objectives) -> float:
    """Pressure over brake: see the top of this module."""
    publishing = percentile(tried.seconds["publish"], 0.95) or 0.0
    return (waiting.oldest / held.queue_seconds) / max(1.0, publishing / held.publish_seconds)


def working_folder(folder: Path, now: datetime) -> tuple[int, float]:
    """Bytes below the working folder of this machine, and the age in seconds of its oldest working directory."""
    size, oldest = 0, 0.0
    if not folder.is_dir():
        return 0, 0.0
    for place in os.scandir(folder):
        try:
            oldest = max(oldest, now.timestamp() - place.stat(follow_symlinks=False).st_mtime)
        except FileNotFoundError:
            continue
        for parent, _, names in os.walk(place.path):
            for name in names:
                try:
                    size += Path(parent, name).lstat().st_size
                except FileNotFoundError:
                    continue  # its attempt ended meanwhile
    return size, oldest


def _objective(name: str, seconds: list[float], limit: float, held: Objectives) -> Iterator[Measure]:
    kept = sum(spent <= limit for spent in seconds) / len(seconds) if seconds else None
    meaning = {"admission": "uploads that became a job in time", "completion": "jobs that ended in time"}[name]
    yield Measure("objective", kept, "ratio", meaning, {"objective": name}, limit=held.kept_share, least=True)


def _stages(
    conn: Connection,
    scope: Scope,
    tried: Attempts,
    admission: list[float],
    completion: list[float],
    held: Objectives,
) -> Iterator[Measure]:
    stages = {
        "admission": (admission, held.admission_seconds),
        "queue": (seen.queue_seconds(conn, scope), held.queue_seconds),
        "fetch": (tried.seconds["fetch"], held.fetch_seconds),
        "decode": (tried.seconds["decode"], held.decode_seconds),
        "publish": (tried.seconds["publish"], held.publish_seconds),
        "completion": (completion, held.completion_seconds),
        "end_to_end": (seen.end_to_end_seconds(conn, scope), held.admission_seconds + held.completion_seconds),
    }
    for stage, (seconds, budget) in stages.items():
        for name, share in _RANKS:
            labels = {"stage": stage, "quantile": name}
            value = percentile(seconds, share)
            yield Measure("stage", value, "seconds", "time of a stage", labels, limit=budget, kind=_class(tried, stage))
        yield Measure("stage_observations", len(seconds), "count", "times that were measured", {"stage": stage})
    for stage, kinds in sorted(tried.breached.items()):
        for kind in (CAPACITY, INPUT_SHAPE):
            labels = {"stage": stage, "class": kind}
            yield Measure("breaches", kinds[kind], "count", "attempts that broke the budget of a stage", labels)


def _class(tried: Attempts, stage: str) -> str:
    """What most breaches of the stage were; a stage that only waits is a matter of capacity."""
    kinds = tried.breached.get(stage)
    return kinds.most_common(1)[0][0] if kinds else CAPACITY


def _workload(conn: Connection, inst: Installation, scope: Scope, waiting: Waiting) -> Iterator[Measure]:
    done = seen.done_work(conn, scope)
    queued = {"documents": len(waiting.ages), "bytes": waiting.bytes, "pages": waiting.pages}
    ended = {"documents": done.documents, "bytes": done.bytes, "pages": done.pages, "pictures": done.pictures}
    for state, parts in (("queued", queued), ("done", ended)):
        for part, count in {"bundles": 0, **parts}.items():
            unit = "bytes" if part == "bytes" else "count"
            yield Measure("workload", count, unit, "work, by what is counted", {"state": state, "of": part})
    shown = inst.policy.show_names
    depths = waiting.by_collection if shown else {"all": len(waiting.ages)}
    for collection, count in depths.items():
        yield Measure("queue_depth", count, "count", "jobs that have not ended", {"collection": collection})
