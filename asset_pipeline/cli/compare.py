"""`compare`: two engines on the same documents, before the default is changed."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.cli.documents import check_document
from asset_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from asset_pipeline.extraction.comparison import Comparison, Figures, Finding

DIFFERENT, FAILED = 1, 2
"""Exit statuses: as of ``cmp`` and ``diff``, so that a failure is not taken for a difference."""

COLUMNS = ("document", "what", "engine", "page", "name", "kind", "bbox", "picture", "said")


def compare(
    engine_a: Annotated[str, typer.Argument(help="An engine: pdf, pypdf or ooxml.", show_default=False)],
    engine_b: Annotated[str, typer.Argument(help="Another engine.", show_default=False)],
    files: Annotated[list[Path], typer.Argument(help="The documents to read with both.", show_default=False)],
    policy: Annotated[
        Path | None, typer.Option(envvar="ASSET_PIPELINE_POLICY", help="Policy file; default: built in.")
    ] = None,
    format_: Annotated[
        Format, typer.Option("--format", help="What to write to standard output; csv lists the differences.")
    ] = Format.TABLE,
    as_json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
) -> None:
    """Read documents with two engines. Exit status 0 when they agree, 1 when they differ, 2 on failure."""
    try:
        compared = _compare(engine_a, engine_b, files, policy)
    except PipelineError as error:
        console.fail(error.what, error.remedy)
        raise typer.Exit(FAILED) from None
    chosen = Format.JSON if as_json else format_
    rows = [_finding(finding) for finding in compared.findings]
    differences = Sheet("Differences", COLUMNS, rows, ("page", "name", "kind", "bbox", "picture", "said"))
    if chosen is Format.CSV:
        console.show_csv(differences)
    else:
        engines = [_figures(compared.first), _figures(compared.second)]
        body = {"equal": compared.equal, "engines": engines, "differences": [asdict(row) for row in compared.findings]}
        console.show(chosen, [Sheet("Engines", tuple(engines[0]), engines), differences], body)
    if chosen is Format.TABLE:
        console.say("The engines agree." if compared.equal else f"{len(rows)} differences.")
    if not compared.equal:
        raise typer.Exit(DIFFERENT)


def _compare(engine_a: str, engine_b: str, files: list[Path], policy: Path | None) -> Comparison:
    for file in files:
        check_document(file)

    from asset_pipeline.extraction.comparison import compare as compare_engines
    from asset_pipeline.policy import load_policy

    with console.progress_bar() as bar:
        return compare_engines(
            engine_a,
            engine_b,
            files,
            load_policy(policy, required=policy is not None),
            lambda done, of: bar("comparing", done, of),
        )


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "engine": figures.engine,
        "documents": figures.documents,
        "refused": figures.refused,
        "rejection_rate": round(figures.rejection_rate, 4),
        "pages": figures.pages,
        "pages_unread": figures.pages_unread,
        "receipts": figures.receipts,
        "quarantined": figures.quarantined,
        "quarantine_rate": round(figures.quarantine_rate, 4),
        "only_here": figures.only_here,
        "decode_p50_ms": figures.decode_ms(50),
        "decode_p95_ms": figures.decode_ms(95),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    box = None if finding.bbox is None else " ".join(f"{bound:g}" for bound in finding.bbox)
    return asdict(finding) | {"what": finding.what.value, "bbox": box}
