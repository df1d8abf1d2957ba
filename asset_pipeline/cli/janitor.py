"""`janitor`: what the schedule does every quarter of an hour, now and with an answer."""

from __future__ import annotations

from typing import Annotated

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet


def janitor(
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Remove what ended processes left behind: working directories and half-written files. Safe at any time."""
    from asset_pipeline.installation import open_installation
    from asset_pipeline.retention.janitor import sweep
    from asset_pipeline.settings import load_settings
    from asset_pipeline.work.clock import utc_now

    with open_installation(load_settings()) as inst:
        done = sweep(inst, utc_now())
    rows = [
        {"what": "working directories", "removed": done.directories, "bytes": done.directory_bytes},
        {"what": "half-written files", "removed": done.files, "bytes": done.file_bytes},
        {"what": "copies of a gate that was killed", "removed": done.rehearsals, "bytes": None},
    ]
    console.show(
        format_,
        [Sheet("Left behind", ("what", "removed", "bytes"), rows)],
        {"removed": rows, "in_use": done.in_use, "stuck": done.stuck},
    )
    if done.in_use:
        console.say(f"{done.in_use} old working directories are in use and stay.")
    if done.stuck:
        console.say(f"{done.stuck} working directories cannot be removed. Check the permissions of the work folder.")
