"""`jobs list` and `jobs requeue`: the jobs of a month with their ends, and the way back for one that was given up."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.installation import Installation

app = typer.Typer(help="List jobs, and put those that were given up back into the queue.", no_args_is_help=True)

COLUMNS = (
    "job_id",
    "month",
    "collection",
    "name",
    "revision",
    "state",
    "reason",
    "what_to_do",
    "tries",
    "pages",
    "source_hash",
    "queued_at",
    "finished_at",
)
NARROW = ("job_id", "month", "name", "state", "reason", "tries", "what_to_do")
QUIET = ("reason", "tries", "what_to_do")


class State(StrEnum):
    """States of a job."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED_PERMANENTLY = "failed_permanently"
    DEAD_LETTERED = "dead_lettered"


@app.command("list")
def list_jobs(
    month: Annotated[str | None, typer.Argument(help="One month, as YYYY-MM; default all.")] = None,
    state: Annotated[list[State] | None, typer.Option(help="Only jobs in this state; may be repeated.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Show jobs with their states, those of replaced revisions and extractors included."""
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    if month is not None:
        check_months(settings, [month])
    with open_installation(settings) as inst:
        rows = _rows(inst, month, [one.value for one in state or State])
    columns = NARROW if format_ is Format.TABLE else COLUMNS
    console.show(format_, [Sheet("Jobs", columns, rows, QUIET)], {"jobs": rows})
    if format_ is Format.TABLE and not rows:
        console.say("There is no such job.")


@app.command()
def requeue(
    jobs: Annotated[list[str] | None, typer.Argument(help="Jobs, by id.", show_default=False)] = None,
    month: Annotated[str | None, typer.Option("--all", help="All dead letters of this month, as YYYY-MM.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Put jobs back into the queue with a fresh budget. What they delivered stays, and so do their deadlines."""
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    act_as_claimed()
    if bool(jobs) == (month is not None):
        raise UsageError("Nothing, or too much, was named.", "Name jobs, or a month with --all.")
    settings = load_settings()
    if month is not None:
        check_months(settings, [month])
    with open_installation(settings) as inst:
        rows = _requeue_month(inst, month) if month is not None else _requeue_named(inst, jobs or [])
    console.show(format_, [Sheet("Requeued", ("job_id", "month", "was", "reason"), rows)], {"requeued": rows})
    months = " ".join(sorted({row["month"] for row in rows}))
    console.say(f"Run `asset-pipeline run {months}` to work them." if rows else "There is nothing to requeue.")


def _rows(inst: Installation, month: str | None, states: list[str]) -> list[dict[str, Any]]:
    from sqlalchemy import func, select

    from asset_pipeline.ledger.schema import jobs, uploads
    from asset_pipeline.reasons import EXPLANATIONS, Reason

    name = select(func.min(uploads.c.name)).where(uploads.c.report_id == jobs.c.report_id).scalar_subquery()
    query = select(jobs, name.label("name")).where(jobs.c.state.in_(states))
    if month is not None:
        query = query.where(jobs.c.month == month)
    with inst.ledger.read() as conn:
        found = conn.execute(query.order_by(jobs.c.month, jobs.c.queued_at, jobs.c.job_id)).mappings().all()
    return [
        {column: row[column] for column in COLUMNS if column in row}
        | {
            "name": row["name"] if inst.policy.show_names else row["report_id"],
            "what_to_do": EXPLANATIONS[Reason(row["reason"])].remedy if row["reason"] else None,
        }
        for row in found
    ]


def _requeue_named(inst: Installation, names: list[str]) -> list[dict[str, Any]]:
    from asset_pipeline.ledger.requeue import WITHOUT_RESULT

    jobs = list(dict.fromkeys(names))
    known = {row["job_id"]: row for row in _rows(inst, None, [state.value for state in State])}
    for job_id in jobs:
        if job_id not in known:
            raise UsageError(f"There is no job {console.plain(job_id)}.", "`asset-pipeline jobs list` names them.")
        if known[job_id]["state"] not in WITHOUT_RESULT:
            what = f"The job {job_id} is {known[job_id]['state']}; only one that ended without a result is requeued."
            raise UsageError(what, "`asset-pipeline jobs list --state dead_lettered` names those.")
    return _requeue(inst, jobs, known, WITHOUT_RESULT)


def _requeue_month(inst: Installation, month: str) -> list[dict[str, Any]]:
    from asset_pipeline.ledger.requeue import DEAD, dead_letters

    with inst.ledger.read() as conn:
        found = dead_letters(conn, month)
    return _requeue(inst, found, {row["job_id"]: row for row in _rows(inst, month, list(DEAD))}, DEAD)


def _requeue(
    inst: Installation, jobs: list[str], known: dict[str, dict[str, Any]], states: tuple[str, ...]
) -> list[dict[str, Any]]:
    from asset_pipeline.ledger.requeue import requeue_job
    from asset_pipeline.work.clock import utc_now

    done = []
    for job_id in jobs:
        with inst.ledger.begin() as tx:
            if requeue_job(tx, job_id, utc_now(), states):
                row = known[job_id]
                done.append({"job_id": job_id, "month": row["month"], "was": row["state"], "reason": row["reason"]})
    return done
