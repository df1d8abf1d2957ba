"""What is worth an alert: failed runs and checks, documents given up, work that waits too long, a sensor that fails.

Each finding has a key that names its occasion, so that the ledger tells it once: a run by its id, a check by its month
and what it found, a document by its job, a standing condition by its day, a sensor by its last good tick. Texts
hold ids, counts, reasons and months only. How they are told belongs in ``alerts`` and ``delivery``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import dagster as dg
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.scheduler.instigation import InstigatorState, InstigatorTick, TickStatus
from dagster._core.storage.tags import WILL_RETRY_TAG

from asset_pipeline.defs.jobs import PARTITION_TAG
from asset_pipeline.history.measures import working_folder
from asset_pipeline.history.observations import Scope, dead_letters, waiting_work
from asset_pipeline.history.overdue import overdue
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.alerts import Alert

LOOK_BACK = timedelta(days=7)
"""How old a document that was given up may be when it is first told; longer than anybody leaves Dagster off."""

FIRST_LOOK = timedelta(days=1)
"""How far back the very first look at runs goes."""

RUNS = 100
"""Runs that are looked at in one tick."""

_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]


@dataclass(slots=True)
class OfRuns:
    """What runs that ended told: ``passed`` are prefixes of keys whose occasion is over; ``until`` where to go on."""

    until: float
    alerts: list[Alert] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


def of_runs(instance: dg.DagsterInstance, after: float) -> OfRuns:
    """Runs that ended after the moment ``after`` (seconds since 1970), the oldest first."""
    wanted = dg.RunsFilter(statuses=_ENDED, updated_after=datetime.fromtimestamp(after).astimezone())
    found = OfRuns(after)
    for record in instance.get_run_records(wanted, limit=RUNS, order_by="update_timestamp", ascending=True):
        run = record.dagster_run
        found.until = max(found.until, record.update_timestamp.timestamp())
        month = run.tags.get(PARTITION_TAG)
        if run.status is dg.DagsterRunStatus.FAILURE and run.tags.get(WILL_RETRY_TAG) != "true":
            text = f"A run{_of(month)} failed: run {run.run_id}. Its page in Dagster says why."
            found.alerts.append(Alert(f"run:{run.run_id}", "failed_run", text, month))
        _add_checks(instance, run.run_id, found)
    return found


def _add_checks(instance: dg.DagsterInstance, run_id: str, found: OfRuns) -> None:
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    for record in records:
        check = record.event_log_entry.asset_check_evaluation
        if check is None:
            continue
        occasion = f"check:{check.asset_key.to_user_string()}:{check.check_name}:{check.partition or ''}:"
        if check.passed:
            found.passed.append(occasion)
            found.alerts = [alert for alert in found.alerts if not alert.key.startswith(occasion)]
            continue
        told = check.description or ""
        key = occasion + hashlib.sha256(told.encode()).hexdigest()[:16]
        text = f"The check {check.check_name}{_of(check.partition)} failed: {told}"
        found.alerts.append(Alert(key, "failed_check", text, check.partition))


def of_work(inst: Installation, now: datetime) -> Iterator[Alert]:
    """Documents that were given up, and standing conditions: told once a day while they last."""
    held, today = inst.policy.objectives, f"{now:%Y-%m-%d}"
    with inst.ledger.read() as conn:
        given_up = dead_letters(conn, Scope(since=now - LOOK_BACK))
        waiting, kept = waiting_work(conn, now), overdue(conn, now)
    for (month, reason), job_ids in given_up.items():
        for job_id, ended in job_ids:
            text = f"A document of {month} was given up: {reason}, job {job_id}."
            yield Alert(f"dead_letter:{job_id}:{ended:%Y%m%dT%H%M%S}", "dead_letter", text, month)
    if waiting.oldest > held.queue_seconds:
        hours = f"{waiting.oldest / 3600:.1f}"
        text = f"{len(waiting.ages)} documents are queued, the oldest for {hours} hours."
        yield Alert(f"backlog:{today}", "backlog", text)
    if kept.bytes > held.overdue_bytes:
        text = f"{kept.files} files with {kept.bytes} bytes are past their deadline."
        yield Alert(f"overdue:{today}", "overdue", text)
    volume, _ = working_folder(inst.settings.work_folder, now)
    if volume > held.temporary_bytes:
        yield Alert(f"temporary:{today}", "temporary_volume", f"The working folder holds {volume} bytes.")


_FAILURES_IN_A_ROW = {InstigatorType.SENSOR: 2, InstigatorType.SCHEDULE: 1}
"""A sensor that misses one tick has the next one in a minute."""


def of_ticks(instance: dg.DagsterInstance) -> Iterator[Alert]:
    """Sensors and schedules whose latest ticks failed."""
    for kind, in_a_row in _FAILURES_IN_A_ROW.items():
        for state in instance.all_instigator_state(instigator_type=kind):
            if state.is_running and _has_failed(instance, state, in_a_row):
                good = _ticks(instance, state, [TickStatus.SUCCESS, TickStatus.SKIPPED], 1)
                name = state.instigator_name
                text = f"The {kind.value.lower()} {name} fails. Its page in Dagster says why."
                yield Alert(f"tick:{name}:{good[0].tick_id if good else 0}", "failing_sensor", text)


def _has_failed(instance: dg.DagsterInstance, state: InstigatorState, in_a_row: int) -> bool:
    ticks = _ticks(instance, state, [TickStatus.SUCCESS, TickStatus.SKIPPED, TickStatus.FAILURE], in_a_row)
    return len(ticks) == in_a_row and all(tick.status is TickStatus.FAILURE for tick in ticks)


def _ticks(
    instance: dg.DagsterInstance, state: InstigatorState, statuses: list[TickStatus], limit: int
) -> Sequence[InstigatorTick]:
    return instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=limit, statuses=statuses)


def _of(month: str | None) -> str:
    return f" of {month}" if month else ""
