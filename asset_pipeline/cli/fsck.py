"""`fsck`: is every byte of the archive what the ledger says, and can what is lost be made again?

Shows what ``archive.fsck`` finds; ``--repair`` is ``work.repair``, ``--sweep`` is ``archive.sweep``.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet, number_of

if TYPE_CHECKING:
    from asset_pipeline.archive.fsck import Finding, Proof

FINDINGS = 1
"""Exit status when something is wrong and was not repaired."""

COLUMNS = ("month", "report_id", "fault", "subject", "repaired", "what", "remedy", "job_id")
COLUMNS_OF_A_TABLE = ("month", "report_id", "what", "subject", "repaired", "remedy")
MOST_UNNAMED = 20
"""Files that nothing names that a table shows; JSON has them all."""


def fsck(
    months: Annotated[
        list[str] | None, typer.Argument(help="Months, as YYYY-MM; default all.", show_default=False)
    ] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Read documents again for lost pictures; rebuild manifests.")
    ] = False,
    sweep: Annotated[
        bool, typer.Option("--sweep", help="Delete files that nothing names and that are a day old.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Files read at a time; default 8.")] = None,
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Prove the archive: read and hash everything again. Exit status 0 when it is sound, 1 when something is wrong."""
    from asset_pipeline.archive.fsck import prove
    from asset_pipeline.archive.sweep import SweptObjects, sweep_objects
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings
    from asset_pipeline.work.month import worker_count
    from asset_pipeline.work.repair import repair as put_right

    settings = load_settings()
    check_months(settings, months or [])
    swept = SweptObjects()
    with open_installation(settings) as inst, console.progress_bar() as move:
        if sweep:
            swept = sweep_objects(inst, datetime.now(UTC))
        proof = prove(inst, months or None, workers=workers or 8, progress=move)
        if repair and proof.findings:
            proof = put_right(inst, proof, workers=worker_count(inst, workers), progress=move)
    rows = [_row(found) for found in proof.findings]
    unnamed = [asdict(row) | {"modified": row.modified.isoformat()} for row in proof.unnamed]
    columns = COLUMNS if format_ is Format.CSV else COLUMNS_OF_A_TABLE
    sheets = [
        Sheet("Findings", columns, rows, ("repaired", "remedy")),
        Sheet("Files that nothing names", ("sha256", "bytes", "modified"), unnamed[:MOST_UNNAMED]),
    ]
    body = {"sound": proof.sound, "checked": _checked(proof), "findings": rows, "unnamed": unnamed}
    console.show(format_, sheets, body | {"swept": asdict(swept)})
    _summarise(proof, swept.files)
    if swept.held:
        console.say("Nothing was swept: a legal hold keeps everything that nothing names.")
    if not proof.sound:
        raise typer.Exit(FINDINGS)


def _row(found: Finding) -> dict[str, Any]:
    facts = asdict(found) | {"fault": found.fault.value, "what": found.what, "remedy": found.remedy}
    return {name: facts[name] for name in COLUMNS}


def _checked(proof: Proof) -> dict[str, Any]:
    return {
        "months": sorted(proof.months),
        **{name: getattr(proof, name) for name in ("jobs", "pages", "pictures", "sources", "manifests", "bytes")},
    }


def _summarise(proof: Proof, swept: int) -> None:
    checked = (
        f"{number_of(len(proof.months), 'month')}, {number_of(proof.pages, 'page')}, "
        f"{number_of(proof.pictures, 'picture')}, {number_of(proof.sources, 'source')} and "
        f"{number_of(proof.manifests, 'manifest')}; {proof.bytes / 1e6:.1f} MB hashed again"
    )
    wrong = sum(not found.repaired for found in proof.findings)
    repaired = len(proof.findings) - wrong
    verdict = "Sound" if not wrong else number_of(wrong, "finding")
    console.say(f"{verdict}{f', {repaired} repaired' if repaired else ''}: {checked}.")
    if swept:
        console.say(f"Deleted: {number_of(swept, 'file')} that nothing names.")
    if proof.unnamed:
        size = sum(row.bytes for row in proof.unnamed)
        console.say(
            f"Named by nothing: {number_of(len(proof.unnamed), 'file')} ({size / 1e6:.1f} MB). It is no fault: "
            "a stopped run leaves such. `fsck --sweep` deletes those that are a day old."
        )
