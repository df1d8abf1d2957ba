"""`run` and `demo`: whole months, through Dagster itself, so that its web page shows what was done here.

Both end with the same table, read from the ledger. How a month is worked belongs in ``defs`` and
``work``; the demo only differs in bringing its own documents.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Bar, Format, Sheet
from asset_pipeline.cli.status import attention_sheet, document_rows, month_row, needs_attention
from asset_pipeline.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from asset_pipeline.settings import Settings

Workers = Annotated[int | None, typer.Option(min=1, help="Decoder processes; default one a core.")]
Answer = Annotated[Format, typer.Option("--format", help="How to answer.")]

_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")

COLUMNS = (
    "month",
    "documents",
    "pages",
    "pictures",
    "collapsed",
    "figures",
    "quarantined",
    "refused",
    "unfinished",
    "seconds",
)
QUIET = ("figures", "unfinished")


def run(
    months: Annotated[list[str], typer.Argument(help="Months, as YYYY-MM.", show_default=False)],
    workers: Workers = None,
    format_: Answer = Format.TABLE,
) -> None:
    """Admit, extract and archive whole months. Running a month again does only what is new."""
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    wanted = list(dict.fromkeys(months))
    check_months(settings, wanted)
    _run_months(settings, wanted, workers, format_)


def demo(
    fixtures: Annotated[Path | None, typer.Option(help="Folder of documents, as <collection>/<month>/<name>.")] = None,
    workers: Workers = None,
    format_: Answer = Format.TABLE,
) -> None:
    """Bring sample documents into the inbox and run their months."""
    from asset_pipeline.settings import load_settings

    settings = load_settings(settle_seconds=0)
    months = bring_samples(settings, fixtures or _own_samples())
    check_months(settings, months)
    _run_months(settings, months, workers, format_)


def check_months(settings: Settings, months: list[str]) -> None:
    """Raise UsageError unless every month exists, has begun and is not before the first one."""
    from asset_pipeline.intake.keys import open_months

    known = open_months(settings, datetime.now(UTC))
    for month in months:
        if not _MONTH.fullmatch(month) or month not in known:
            raise UsageError(
                f"{console.plain(month)} is not a month of this installation.",
                f"Name months from {known.first} to {known.last}, as YYYY-MM.",
            )


def bring_samples(settings: Settings, samples: Path) -> list[str]:
    """Put the documents below ``samples`` into the inbox unless their key is taken; the months they are for."""
    from asset_pipeline.intake.keys import is_ignored
    from asset_pipeline.storage.store import open_store

    inbox = open_store(settings.store_address("inbox"), settings, "inbox")
    months = set()
    for document in sorted(samples.glob("*/*/*")):
        key = document.relative_to(samples).as_posix()
        if not document.is_file() or is_ignored(key):
            continue
        months.add(document.parent.name)
        if not inbox.exists(key):
            inbox.put_once(key, document, _sha256(document))
    if not months:
        raise ConfigurationError(
            "There are no sample documents.", "Name their folder with --fixtures, as <collection>/<month>/<name>."
        )
    return sorted(months)


def _own_samples() -> Path:
    import asset_pipeline

    return Path(asset_pipeline.__file__).parents[1] / "fixtures" / "inbox"


def _sha256(document: Path) -> str:
    import hashlib

    with document.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _run_months(settings: Settings, months: list[str], workers: int | None, format_: Format) -> None:
    from asset_pipeline.defs.instance import materialize_months, open_instance

    tried = _attempts(settings, months)
    seconds: dict[str, float] = {}
    with console.progress_bar() as move, open_instance(settings) as instance:
        for month in months:
            ended = materialize_months(
                settings, [month], workers=workers, progress=_of_month(month, move), instance=instance
            )
            seconds |= {result.month: result.seconds for result in ended}
    rows, attention = _results(settings, months, seconds)
    console.show(
        format_,
        [
            Sheet("Months", COLUMNS, rows, QUIET),
            attention_sheet(attention),
            Sheet("Manifests", ("month", "manifests"), rows),
        ],
        {"months": rows, "attention": attention},
    )
    if _attempts(settings, months) == tried:
        console.say("No extraction work was done: everything was there already.")
    if any(row["uploads_waiting"] for row in rows):
        console.say("Some uploads still change; run again when they are complete.")


def _of_month(month: str, move: Bar) -> Bar:
    return lambda stage, done, total: move(f"{month} {stage}", done, total)


def _attempts(settings: Settings, months: list[str]) -> int:
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger import reading

    with open_installation(settings) as inst, inst.ledger.read() as conn:
        return sum(reading.attempts_in(conn, month) for month in months)


def _results(
    settings: Settings, months: list[str], seconds: dict[str, float]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the ledger says about ``months`` now: a row for each, and what needs a person's eye."""
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger import reading

    rows: list[dict[str, Any]] = []
    attention: list[dict[str, Any]] = []
    with open_installation(settings) as inst, inst.ledger.read() as conn:
        for month in months:
            row = month_row(reading.month_summary(conn, month))
            where = f"{settings.store_address('archive')}/manifests/{month}"
            rows.append(row | {"seconds": round(seconds[month], 2), "manifests": where})
            attention += filter(needs_attention, document_rows(conn, month, inst.policy.show_names))
    return rows, attention
