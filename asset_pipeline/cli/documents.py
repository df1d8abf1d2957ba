"""Documents named on the command line: whether there is something to read, told before anything is loaded."""

from __future__ import annotations

from pathlib import Path

from asset_pipeline.cli import console
from asset_pipeline.errors import UsageError


def check_document(file: Path) -> None:
    """Raises UsageError where ``file`` is none that could be read."""
    name = console.plain(file)
    try:
        if file.is_dir():
            raise UsageError(f"{name} is a folder.", "Name one document in it; `run` reads whole months.")
        if not file.exists():
            raise UsageError(f"There is no file {name}.", "Name a document to read.")
        if not file.is_file():
            raise UsageError(f"{name} is a pipe or a device.", "Write what it gives to a file, and name that.")
    except OSError as error:
        raise UsageError(f"There is no way to the document ({error.strerror}).", "Correct its name.") from None
