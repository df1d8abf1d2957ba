"""`catalogue …`: questions to the catalogues of all months, in SQL."""

from __future__ import annotations

from typing import Annotated

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet

app = typer.Typer(no_args_is_help=True, help="Ask the catalogue of pictures and pages.")


@app.callback()
def _group() -> None:
    """Ask the catalogue of pictures and pages."""


@app.command()
def query(
    sql: Annotated[str, typer.Argument(help="One SELECT over the tables pictures and pages.", show_default=False)],
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Answer SQL over all archived months, and what is in the inbox; docs/catalogue.md lists the columns."""
    from asset_pipeline.archive.catalogue_query import ask
    from asset_pipeline.cli.inbox import look_into_inbox
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        answer = ask(inst, sql, look_into_inbox(inst))
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    console.show(format_, [Sheet("Answer", answer.columns, rows)], rows)
    if format_ is Format.TABLE and not rows:
        console.say("No row fits.")
