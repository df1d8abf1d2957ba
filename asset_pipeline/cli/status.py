"""`status`: what the ledger says, in words: months, documents, uploads that wait or were rejected, and what to do.

Looks into the inbox first, so that a file dropped a moment ago is there. Names are shown only where the
policy shows names.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from asset_pipeline.installation import Installation
    from asset_pipeline.intake.deferral import Deferral
    from asset_pipeline.ledger.reading import DocumentRow, MonthSummary
    from asset_pipeline.ledger.uploads import Upload

MONTH_COLUMNS = (
    "month",
    "documents",
    "unfinished",
    "refused",
    "pages",
    "pages_not_read",
    "drawn",
    "pictures",
    "collapsed",
    "decorative",
    "consumed",
    "not_shown",
    "quarantined",
    "figures",
    "uploads_waiting",
    "uploads_deferred",
    "uploads_rejected",
    "uploads_duplicate",
)
QUIET = (
    "unfinished",
    "pages_not_read",
    "decorative",
    "consumed",
    "not_shown",
    "figures",
    "uploads_waiting",
    "uploads_deferred",
    "uploads_rejected",
    "uploads_duplicate",
)
ROW_COLUMNS = (
    "month",
    "what",
    "collection",
    "name",
    "state",
    "reason",
    "meaning",
    "remedy",
    "pages",
    "pages_not_read",
    "drawn",
    "pictures",
    "collapsed",
    "decorative",
    "consumed",
    "not_shown",
    "quarantined",
    "figures",
    "job_id",
)
_FINE = ("succeeded", "admitted")


def status(
    month: Annotated[str | None, typer.Argument(help="One month, as YYYY-MM; default all.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Show documents and uploads of one month or of all, with reasons in words."""
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    if month is not None:
        check_months(settings, [month])
    with open_installation(settings) as inst:
        months, rows = _read(inst, month)
    if format_ is Format.CSV:
        console.show_csv(Sheet("Status", ROW_COLUMNS, rows))
        return
    attention = list(filter(needs_attention, rows))
    sheets = [Sheet("Months", MONTH_COLUMNS, months, QUIET), attention_sheet(attention)]
    console.show(format_, sheets, {"months": months, "attention": attention, "rows": rows})
    if format_ is Format.TABLE and not months and not rows:
        console.say("There is nothing yet. Put documents into the inbox, or try `asset-pipeline demo`.")


def needs_attention(row: Mapping[str, Any]) -> bool:
    """Whether a person should look at this document or upload."""
    return row["state"] not in _FINE or bool(row["quarantined"]) or bool(row["pages_not_read"])


def attention_sheet(rows: Sequence[Mapping[str, Any]]) -> Sheet:
    """The rows that need attention, narrow enough for a terminal: why in words, and the code to look up behind them."""
    shown = [
        {
            "month": row["month"],
            "document": "/".join(part for part in (row["collection"], row["name"]) if part),
            "why": f"{row['meaning'] or ''} ({row['reason'] or row['state']})".lstrip(),
            "what_to_do": row["remedy"],
        }
        for row in rows
    ]
    return Sheet("To look at", ("month", "document", "why", "what_to_do"), shown, sentences=("why", "what_to_do"))


def _read(inst: Installation, month: str | None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    from asset_pipeline.cli.inbox import look_into_inbox
    from asset_pipeline.ledger import reading
    from asset_pipeline.ledger.uploads import UploadState, list_uploads

    held = look_into_inbox(inst)
    shown = (UploadState.WAITING, UploadState.REJECTED, UploadState.DUPLICATE)
    names = inst.policy.show_names
    with inst.ledger.read() as conn:
        wanted = reading.months(conn) if month is None else [month]
        summaries = [month_row(reading.month_summary(conn, known)) for known in wanted]
        rows = [row for known in wanted for row in document_rows(conn, known, names)]
        # One in a wrong place is of no month, so it is shown with each.
        uploads = [row for row in list_uploads(conn, states=shown) if month is None or row.month in (month, None)]
    for summary in summaries:
        summary["uploads_deferred"] = sum(row.upload_id in held and row.month == summary["month"] for row in uploads)
    return summaries, rows + [upload_row(row, names, held.get(row.upload_id)) for row in uploads]


def document_rows(conn: Connection, month: str, show_names: bool) -> list[dict[str, Any]]:
    """The documents of ``month`` as rows of ``ROW_COLUMNS``."""
    from asset_pipeline.ledger import reading

    held = reading.quarantined_by_job(conn, month)
    not_read: dict[str, Counter[str]] = defaultdict(Counter)
    for page in reading.unread_pages(conn, month):
        not_read[page.job_id][page.reason] += 1
    return [
        _document_row(row, show_names, merged(held.get(row.job_id, {}), not_read[row.job_id]))
        for row in reading.documents_of_month(conn, month)
    ]


def month_row(summary: MonthSummary) -> dict[str, Any]:
    """The sums of a month as a row of ``MONTH_COLUMNS``."""
    refused = merged(summary.refused_by_reason, summary.dead_lettered_by_reason)
    return {
        "month": summary.month,
        "documents": summary.documents,
        "unfinished": summary.unfinished,
        "refused": sum(refused.values()),
        "refused_for": refused,
        "pages": summary.pages,
        "pages_not_read": summary.unread_pages,
        "pages_not_read_for": summary.unread_by_reason,
        "drawn": summary.drawn,
        "pictures": summary.archived,
        "collapsed": summary.collapsed,
        "decorative": summary.decorative,
        "consumed": summary.consumed,
        "not_shown": summary.not_shown,
        "figures": summary.derived,
        "quarantined": summary.quarantined,
        "quarantined_for": summary.quarantined_by_reason,
        "uploads_waiting": summary.waiting_uploads,
        "uploads_rejected": summary.rejected_uploads,
        "uploads_duplicate": summary.duplicate_uploads,
    }


def counted(reasons: Mapping[str, int]) -> str:
    """Reasons with how often each occurs: ``encrypted 2, malformed_document 1``."""
    return ", ".join(f"{reason} {count}" for reason, count in sorted(reasons.items()))


def merged(*parts: Mapping[str, int]) -> dict[str, int]:
    """The sum of several counts by reason."""
    names = sorted({name for part in parts for name in part})
    return {name: sum(part.get(name, 0) for part in parts) for name in names}


def _document_row(row: DocumentRow, show_names: bool, held: Mapping[str, int]) -> dict[str, Any]:
    reasons = [row.reason] if row.reason else sorted(held)
    return {
        "month": row.month,
        "what": "document",
        "collection": row.collection,
        "name": row.name if show_names else row.report_id,
        "state": row.state,
        "reason": row.reason or counted(held) or None,
        **_in_words(reasons, of_pictures=not row.reason),
        "pages": row.pages,
        "pages_not_read": row.unread_pages,
        "drawn": row.drawn,
        "pictures": row.archived,
        "collapsed": row.collapsed,
        "decorative": row.decorative,
        "consumed": row.consumed,
        "not_shown": row.not_shown,
        "quarantined": row.quarantined + row.derived_quarantined,
        "figures": row.derived_archived,
        "job_id": row.job_id,
    }


def upload_row(row: Upload, show_names: bool, deferral: Deferral | None = None) -> dict[str, Any]:
    """An upload that became no job as a row of ``ROW_COLUMNS``; with ``deferral``, when it will."""
    words = _in_words([row.reason.value]) if row.reason else _UPLOADS_IN_WORDS[row.state.value]
    if deferral is not None:
        words = {"meaning": deferral.meaning, "remedy": deferral.remedy}
    return dict.fromkeys(ROW_COLUMNS) | {
        "month": row.month,
        "what": "upload",
        "collection": row.collection,
        "name": (row.name or row.key) if show_names else row.upload_id,
        "state": "deferred" if deferral else row.state.value,
        "reason": row.reason.value if row.reason else None,
        **words,
        "job_id": row.job_id,
    }


_UPLOADS_IN_WORDS = {
    "waiting": {"meaning": "It waits to be taken in.", "remedy": "Run its month, or let the sensor do it."},
    "duplicate": {"meaning": "Its bytes are in the ledger already.", "remedy": "Nothing: see the job it repeats."},
    "rejected": {"meaning": "It cannot be taken in.", "remedy": ""},
}


def _in_words(reasons: list[str], *, of_pictures: bool = False) -> dict[str, str]:
    from asset_pipeline.reasons import Reason, explain

    told = [explain(Reason(reason), of_picture=of_pictures) for reason in reasons]
    return {
        "meaning": " ".join(dict.fromkeys(explanation.meaning for explanation in told)),
        "remedy": " ".join(dict.fromkeys(explanation.remedy for explanation in told)),
    }
