"""The command line as one tree: which commands there are and which options all of them share."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from asset_pipeline import __version__
from asset_pipeline.cli import console, doctor, extract, ledger, months, status, ui

app = typer.Typer(
    name="asset-pipeline",
    help="Takes every picture out of documents, and can prove what it did.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(months.demo)
app.command("run")(months.run)
app.command("extract")(extract.extract)
app.command("status")(status.status)
app.command("ui")(ui.ui)
app.command("doctor")(doctor.doctor)
app.add_typer(ledger.app, name="ledger")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"asset-pipeline {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks and the log.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    console.options.debug = debug
    logging.basicConfig(
        level=logging.INFO if debug else logging.ERROR, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
