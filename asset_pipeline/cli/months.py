"""`run` and `demo`: whole months, through Dagster itself, so that its web page shows what was done here.

Both end with the same table, read from the ledger. How a month is worked belongs in ``defs`` and
``work``; the demo only differs in bringing its own documents.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console, interrupts
from asset_pipeline.cli.console import Bar, Format, Sheet
from asset_pipeline.cli.gallery import gallery_address
from asset_pipeline.cli.status import attention_sheet, document_rows, month_row, needs_attention, upload_row
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
    "pages_not_read",
    "pictures",
    "collapsed",
    "figures",
    "quarantined",
    "refused",
    "unfinished",
    "seconds",
)
MOST_UPLOADS = 20
"""Rejected uploads that are named at the end of a run."""

BROKEN = 1
"""Exit status when a run ended well but an archive and its ledger contradict each other."""

QUIET = ("pages_not_read", "figures", "unfinished")

_BROUGHT = ("documents", "uploads_waiting", "uploads_rejected", "uploads_duplicate")


def run(
    months: Annotated[list[str], typer.Argument(help="Months, as YYYY-MM.", show_default=False)],
    workers: Workers = None,
    format_: Answer = Format.TABLE,
) -> None:
    """Admit, extract and archive whole months. Running a month again does only what is new.

    Exit status 0 also when documents or pictures were refused; 1 when a month could not be run, or when its archive
    is not what the ledger says.
    """
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
                f"Name months from {known.first} to {known.last}, as YYYY-MM; "
                "ASSET_PIPELINE_FIRST_MONTH in the environment says which is the first.",
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
    from asset_pipeline.defs.checks import failed_checks
    from asset_pipeline.defs.instance import materialize_months, open_instance

    before = _state(settings, months)
    seconds: dict[str, float] = {}
    failed: list[dict[str, Any]] = []
    with console.progress_bar() as move, open_instance(settings) as instance:
        for month in months:
            interrupts.check()
            ended = materialize_months(
                settings, [month], workers=workers, progress=_of_month(settings, month, move), instance=instance
            )
            for result in ended:
                seconds[result.month] = result.seconds
                failed += [{"month": month} | asdict(check) for check in failed_checks(instance, result.run_id)]
    rows, attention = _results(settings, months, seconds)
    rejected = _rejected(settings, months)
    console.show(
        format_,
        [
            Sheet("Months", COLUMNS, rows, QUIET),
            attention_sheet(attention),
            Sheet("Manifests", ("month", "manifests"), [row for row in rows if row["manifests"]]),
            Sheet("To open in a browser", ("month", "gallery"), rows),
        ],
        {"months": rows, "attention": attention, "failed_checks": failed, "rejected_uploads": rejected},
    )
    _say_what_failed(failed, rejected)
    for row in rows:
        if not any(row[name] for name in _BROUGHT):
            console.say(f"There is nothing in the inbox for {row['month']}.")
    worked = any(row["documents"] for row in rows)
    left_out = any(row["uploads_waiting"] or row["uploads_rejected"] for row in rows)
    if worked and not left_out and _state(settings, months) == before:
        console.say("No extraction work was done: everything was there already.")
    if any(row["uploads_waiting"] for row in rows):
        console.say("Some uploads wait; `asset-pipeline status` says for what. Run again then.")
    if any(check["broken"] for check in failed):
        raise typer.Exit(BROKEN)


def _say_what_failed(failed: list[dict[str, Any]], rejected: list[dict[str, Any]]) -> None:
    for check in failed:
        console.say(f"Check failed in {check['month']}: {check['name']}. {check['what']} {check['remedy']}".rstrip())
    for upload in rejected[:MOST_UPLOADS]:
        parts = (upload["collection"], upload["month"], upload["name"])
        place = "/".join(console.plain(part) for part in parts if part)
        console.say(f"Not taken in: {place} ({upload['reason']}). {upload['meaning']} {upload['remedy']}".rstrip())
    if (more := len(rejected) - MOST_UPLOADS) > 0:
        console.say(f"Not taken in: {more} more; `asset-pipeline status` lists them.")


def _rejected(settings: Settings, months: list[str]) -> list[dict[str, Any]]:
    """Uploads of ``months`` that cannot be taken in, and those whose place says no month."""
    from asset_pipeline.installation import open_installation
    from asset_pipeline.intake.inventory import take_inventory
    from asset_pipeline.ledger.uploads import UploadState, list_uploads

    with open_installation(settings) as inst:
        take_inventory(inst, datetime.now(UTC))
        with inst.ledger.read() as conn:
            found = list_uploads(conn, states=[UploadState.REJECTED])
        return [upload_row(row, inst.policy.show_names) for row in found if row.month in (None, *months)]


def _of_month(settings: Settings, month: str, move: Bar) -> Bar:
    waits = False

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal waits
        interrupts.check()
        if stage == "settle" and not waits:
            waits = True
            console.say(f"Waiting until the uploads of {month} have settled ({settings.settle_seconds:g} s)…")
        move(f"{month} {stage}", done, total)

    return tell


def _state(settings: Settings, months: list[str]) -> tuple[int, set[str]]:
    """Attempts made in ``months`` and their jobs: the same again when nothing was brought and nothing worked."""
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger import reading

    with open_installation(settings) as inst, inst.ledger.read() as conn:
        known = {row.job_id for month in months for row in reading.documents_of_month(conn, month)}
        return sum(reading.attempts_in(conn, month) for month in months), known


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
            rows.append(
                row
                | {
                    "seconds": round(seconds[month], 2),
                    "manifests": f"{settings.store_address('archive')}/manifests/{month}" if row["documents"] else None,
                    "gallery": gallery_address(settings, month),
                }
            )
            attention += filter(needs_attention, document_rows(conn, month, inst.policy.show_names))
    return rows, attention
