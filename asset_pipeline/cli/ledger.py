"""`ledger …`: care of the database."""

from __future__ import annotations

import typer

from asset_pipeline.cli import console

app = typer.Typer(no_args_is_help=True, help="Care of the database.")


@app.callback()
def _group() -> None:
    """Care of the database."""


@app.command()
def upgrade() -> None:
    """Bring the database to the schema of this version. Does nothing when it is there already."""
    from asset_pipeline.installation import installed_ledger
    from asset_pipeline.settings import load_settings

    ledger = installed_ledger(load_settings(), check=False)
    try:
        if ledger.at_head():
            console.say("The database is up to date.")
            return
        ledger.upgrade()
        console.say("The database was upgraded.")
    finally:
        ledger.close()
