"""`retention plan|apply|hold|lift|status`: what goes when, what has gone, and what must stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet, number_of
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.installation import Installation
    from asset_pipeline.ledger.holds import Hold, Scope
    from asset_pipeline.retention.plan import Line

app = typer.Typer(help="Delete what is past its deadline, prove it, and keep what is under a legal hold.")

LINES = ("month", "kind", "files", "bytes")
HOLDS = ("hold_id", "scope", "subject", "why", "set_by", "set_at", "lifted_by", "lifted_at", "lifted_why")
TIMES = ("first_until", "last_until", "last_deleted_at", "set_at", "lifted_at")
QUIET = ("subject", "lifted_by", "lifted_at", "lifted_why")

Answer = Annotated[Format, typer.Option("--format", help="How to answer.")]
Why = Annotated[str, typer.Option("--why", help="Why, as a short code: litigation.", show_default=False)]


@app.callback()
def _group() -> None:
    """Delete what is past its deadline, prove it, and keep what is under a legal hold."""


@app.command()
def plan(format_: Answer = Format.TABLE) -> None:
    """Show what the next pass would delete, by month and kind, under the policy in force. Changes nothing."""
    from asset_pipeline.retention.plan import plan as look
    from asset_pipeline.work.clock import utc_now

    with _installation() as inst:
        told = look(inst, utc_now())
        rules = inst.policy.retention.model_dump(mode="json") | {"policy_digest": inst.policy.digest}
    lines = _lines(told.lines)
    reports = [
        {"month": month, "kind": "report", "files": count, "bytes": None} for month, count in told.reports.items()
    ]
    body = {"at": told.at.isoformat(), "policy": rules, "reports": told.reports, "files": told.files}
    body |= {"bytes": told.bytes, "due": lines, "held": told.held, "holds": _holds(told.holds)}
    sheets = [Sheet("Due", LINES, [*reports, *lines]), Sheet("Holds", HOLDS, _timed(_holds(told.holds)), QUIET)]
    console.show(format_, sheets, body)
    if format_ is Format.TABLE:
        due = (
            f"{number_of(sum(told.reports.values()), 'report expires', 'reports expire')}; "
            f"{number_of(told.files, 'file')} ({told.bytes / 1e6:.1f} MB) go."
        )
        held = f" {number_of(told.held, 'report is', 'reports are')} past the deadline and held." if told.held else ""
        console.say((due if told.reports or told.files else "Nothing is due.") + held)
        console.say(
            f"New reports are kept for {rules['archive_days']} days, working material for {rules['working_days']}."
        )


@app.command()
def apply(format_: Answer = Format.TABLE) -> None:
    """Delete what is due, and record it. Safe at any time, and again."""
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.retention.apply import apply as delete
    from asset_pipeline.work.clock import utc_now
    from asset_pipeline.work.previews import open_previews

    act_as_claimed()
    with _installation() as inst:
        done = delete(inst, utc_now(), lambda: open_previews(inst))
    lines = _lines(done.lines)
    copies, unnamed = done.leftovers, done.swept
    body = {
        "reports": done.reports,
        "deleted": lines,
        "months": done.months,
        "gallery_and_catalogue_files": done.shown,
        "manifests": done.manifests,
        "working_copies": copies.directories,
        "unnamed_files": unnamed.files,
        "unnamed_files_held": unnamed.held,
    }
    console.show(format_, [Sheet("Deleted", LINES, lines)], body)
    if format_ is Format.TABLE:
        size = sum(row.bytes for row in done.deleted)
        console.say(
            f"{number_of(done.reports, 'report')} expired, {number_of(len(done.deleted), 'file')} "
            f"({size / 1e6:.1f} MB) deleted; {number_of(done.manifests, 'manifest says', 'manifests say')} so."
        )


@app.command()
def hold(
    scope: Annotated[str, typer.Argument(help="report, collection, month or all.", show_default=False)],
    subject: Annotated[
        str | None, typer.Argument(help="Report id, collection or YYYY-MM; nothing for all.", show_default=False)
    ] = None,
    why: Why = "",
) -> None:
    """Place a legal hold: nothing that it covers is deleted, by any path, until it is lifted. Prints its id."""
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.ledger.holds import set_hold
    from asset_pipeline.work.clock import utc_now

    act_as_claimed()
    with _installation() as inst:
        covered = _scope(inst, scope, subject)
        with inst.ledger.begin() as tx:
            hold_id = set_hold(tx, covered, subject, why, utc_now())
    typer.echo(hold_id)


@app.command()
def lift(hold_id: Annotated[str, typer.Argument(help="Id of the hold.", show_default=False)], why: Why = "") -> None:
    """Lift a legal hold. What is past its deadline goes with the next pass."""
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.ledger.holds import lift_hold
    from asset_pipeline.work.clock import utc_now

    act_as_claimed()
    with _installation() as inst, inst.ledger.begin() as tx:
        lifted = lift_hold(tx, hold_id, why, utc_now())
    if not lifted:
        raise UsageError("No hold of that id is in force.", "`asset-pipeline retention status` lists them.")
    console.say("Lifted.")


@app.command()
def status(
    lifted: Annotated[bool, typer.Option("--lifted", help="Also holds of the past.")] = False,
    format_: Answer = Format.TABLE,
) -> None:
    """Show holds, the next deadlines, what was deleted when, and bytes past their deadline (0 is the target)."""
    from asset_pipeline.ledger.expiry import intended, next_deadlines
    from asset_pipeline.ledger.holds import list_holds
    from asset_pipeline.ledger.tombstones import deleted_by_month
    from asset_pipeline.retention.clocks import bytes_past_deadline
    from asset_pipeline.work.clock import utc_now

    with _installation() as inst:
        overdue = bytes_past_deadline(inst, utc_now())
        with inst.ledger.read() as conn:
            holds = _holds(list_holds(conn, lifted=lifted))
            kept = [
                {"month": month, "reports": count, "first_until": first.isoformat(), "last_until": last.isoformat()}
                for month, first, last, count in next_deadlines(conn)
            ]
            gone = [
                {"month": row.month, "kind": row.kind, "files": row.files, "bytes": row.bytes}
                | {"last_deleted_at": row.last_deleted_at.isoformat()}
                for row in deleted_by_month(conn)
            ]
            begun = len(intended(conn))
    for_people = format_ is Format.TABLE
    sheets = [
        Sheet("Kept", ("month", "reports", "first_until", "last_until"), _timed(kept) if for_people else kept),
        Sheet("Deleted", (*LINES, "last_deleted_at"), _timed(gone)),
        Sheet("Holds", HOLDS, _timed(holds), QUIET),
    ]
    body = {"bytes_past_deadline": overdue, "deletions_under_way": begun}
    console.show(format_, sheets, body | {"kept": kept, "deleted": gone, "holds": holds})
    if for_people:
        under_way = f" {number_of(begun, 'deletion was', 'deletions were')} begun." if begun else ""
        console.say(f"{number_of(overdue, 'byte is', 'bytes are')} past the deadline.{under_way}")


@contextmanager
def _installation() -> Iterator[Installation]:
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        yield inst


def _scope(inst: Installation, scope: str, subject: str | None) -> Scope:
    """The scope, when ``subject`` fits it. A collection or month may still be to come; a report must be there."""
    from sqlalchemy import select

    from asset_pipeline.ledger.holds import Scope
    from asset_pipeline.ledger.schema import jobs

    try:
        covered = Scope(scope)
    except ValueError:
        raise UsageError("There is no such scope.", "It is report, collection, month or all.") from None
    if (covered is Scope.ALL) != (subject is None):
        raise UsageError("A hold names what it covers.", "Name the report, collection or month; nothing for all.")
    if covered is Scope.MONTH:
        from asset_pipeline.cli.months import check_months

        check_months(inst.settings, [str(subject)])
    if covered is Scope.REPORT:
        with inst.ledger.read() as conn:
            if conn.execute(select(jobs.c.job_id).where(jobs.c.report_id == subject).limit(1)).first() is None:
                raise UsageError("There is no report of that id.", "`asset-pipeline status --format csv` lists them.")
    return covered


def _timed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """``rows`` with moments instead of their text, which a table shows to the second."""
    return [row | {name: datetime.fromisoformat(row[name]) for name in TIMES if row.get(name)} for row in rows]


def _lines(lines: list[Line]) -> list[dict[str, Any]]:
    return [{name: getattr(line, name) for name in LINES} for line in lines]


def _holds(holds: list[Hold]) -> list[dict[str, Any]]:
    return [
        {name: getattr(row, name) for name in HOLDS}
        | {"scope": row.scope.value, "set_at": row.set_at.isoformat()}
        | {"lifted_at": row.lifted_at.isoformat() if row.lifted_at else None}
        for row in holds
    ]
