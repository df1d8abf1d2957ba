"""The command line as one tree: which commands there are and which options all of them share."""

from __future__ import annotations

from typing import Annotated

import typer

from asset_pipeline import __version__, logs
from asset_pipeline.cli import (
    catalogue,
    compare,
    console,
    doctor,
    evidence,
    extract,
    fsck,
    gallery,
    gate,
    history,
    janitor,
    jobs,
    ledger,
    manifest,
    metrics,
    months,
    policy,
    quarantine,
    retention,
    status,
    ui,
)
from asset_pipeline.evidence.actor import act_as, user_of_process

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
app.command("compare")(compare.compare)
app.command("status")(status.status)
app.command("page")(gallery.page)
app.command("gallery")(gallery.gallery)
app.command("export")(gallery.export)
app.command("history")(history.history)
app.command("metrics")(metrics.metrics)
app.command("gate")(gate.gate)
app.command("janitor")(janitor.janitor)
app.command("fsck")(fsck.fsck)
app.command("ui")(ui.ui)
app.command("doctor")(doctor.doctor)
app.add_typer(catalogue.app, name="catalogue")
app.add_typer(jobs.app, name="jobs")
app.add_typer(evidence.app, name="evidence")
app.add_typer(manifest.app, name="manifest")
app.add_typer(policy.app, name="policy")
app.add_typer(ledger.app, name="ledger")
app.add_typer(quarantine.app, name="quarantine")
app.add_typer(retention.app, name="retention")


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
    act_as(user_of_process())
    logs.set_up_logging(debug=debug)
