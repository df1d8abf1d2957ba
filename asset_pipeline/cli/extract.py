"""`extract`: one document, no database, no Dagster. What it writes is described in REPORT_FORMAT.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import ahead, console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.cli.documents import check_document
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.model import Extraction
    from asset_pipeline.reasons import Reason

REFUSED = 3
"""Exit status when the document itself was refused; the report says why."""

COLUMNS = ("name", "page", "kind", "status", "reason", "width", "height", "ppi", "picture", "file")
COLUMNS_OF_A_TABLE = ("name", "kind", "status", "reason", "width", "height", "ppi")


def extract(
    file: Annotated[Path, typer.Argument(help="The document to read.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="Folder for the pictures and report.json.", show_default=False)],
    engine: Annotated[str, typer.Option(help="Engine to read with.")] = "pdf",
    policy: Annotated[
        Path | None, typer.Option(envvar="ASSET_PIPELINE_POLICY", help="Policy file; default: built in.")
    ] = None,
    password_file: Annotated[Path | None, typer.Option(help="File whose first line is the password.")] = None,
    no_figures: Annotated[bool, typer.Option("--no-figures", help="Do not render vector figures.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Decoder processes; default one a core.")] = None,
    pixels: Annotated[bool, typer.Option("--pixels", help="Compute the digest of every picture's pixels.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="What to write to standard output.")] = Format.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json: the report itself.")] = False,
) -> None:
    """Take the pictures out of one document. Exit status 3 when the document is refused."""
    check_document(file)
    if policy is not None and not policy.is_file():
        raise UsageError(f"There is no policy file {console.plain(policy)}.", "Name a YAML file, or leave it out.")
    password = _password(password_file) if password_file else None

    from asset_pipeline.extraction.report import extract as extract_document
    from asset_pipeline.policy import load_policy

    report = extract_document(
        file,
        out,
        engine=engine,
        policy=load_policy(policy),
        password=password,
        figures=not no_figures,
        workers=workers,
        pixels=pixels,
        started=ahead.taken(),
    )
    chosen = Format.JSON if as_json else format_
    body = report.model_dump(mode="json", by_alias=True) if chosen is Format.JSON else None
    columns, quiet = (COLUMNS, ()) if chosen is Format.CSV else (COLUMNS_OF_A_TABLE, ("reason",))
    console.show(chosen, [Sheet("Pictures", columns, _placements(report), quiet)], body)
    if report.outcome != "ok":
        _explain_refusal(report, with_password=password is not None)
        raise typer.Exit(REFUSED)
    if chosen is Format.TABLE:
        _summarise(report, out)


def _password(path: Path) -> str:
    try:
        return path.read_text("utf-8").splitlines()[0]
    except (OSError, UnicodeDecodeError, IndexError):
        raise UsageError("The password file cannot be read.", "Its first line must be the password.") from None


def _placements(report: Extraction) -> list[dict[str, Any]]:
    files = {picture.sha256: picture.file for picture in report.pictures}
    return [
        {
            "name": row.name,
            "page": page.page,
            "kind": row.kind.value,
            "status": row.status.value,
            "reason": row.reason.value if row.reason else None,
            "width": row.width,
            "height": row.height,
            "ppi": f"{row.ppi[0]:.0f} x {row.ppi[1]:.0f}",
            "picture": row.picture,
            "file": files.get(row.picture) if row.picture else None,
        }
        for page in report.pages
        for row in page.placements
    ]


def _explain_refusal(report: Extraction, *, with_password: bool) -> None:
    from asset_pipeline.reasons import Reason

    reason = Reason(report.outcome)
    words = _in_words(reason)
    if reason is Reason.ENCRYPTED and with_password:
        words = "The password does not open it. Correct the first line of the password file."
    elif reason is Reason.ENCRYPTED:
        words = "The document needs a password. Name a file that holds it with --password-file."
    console.say(f"Refused: {reason.value}. {words}")


def _summarise(report: Extraction, out: Path) -> None:
    originals = sum("original" in picture.renditions for picture in report.pictures)
    quarantined = sum(page.quarantined + page.derived_quarantined for page in report.pages)
    unread = [page for page in report.pages if page.reason]
    counts = f"{len(report.pages)} pages, {originals} pictures, {quarantined} quarantined"
    if unread:
        counts += f", {len(unread)} pages not read"
    console.say(console.plain(f"{counts}; see {out / 'report.json'}"))
    for reason in dict.fromkeys(page.reason for page in unread if page.reason):
        numbers = ", ".join(str(page.page) for page in unread if page.reason is reason)
        console.say(f"Not read, {reason.value}: page {numbers}. {_in_words(reason)}")


def _in_words(reason: Reason) -> str:
    from asset_pipeline.reasons import EXPLANATIONS

    return f"{EXPLANATIONS[reason].meaning} {EXPLANATIONS[reason].remedy}"
