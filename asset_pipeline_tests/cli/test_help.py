"""Help is there at once, because it imports nothing heavy, and names every command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import asset_pipeline

HEAVY = {
    "alembic",
    "boto3",
    "dagster",
    "jsonschema",
    "numpy",
    "pandas",
    "pikepdf",
    "PIL",
    "pypdfium2",
    "sqlalchemy",
}

SCRIPT = """
import contextlib, io, json, sys
from asset_pipeline.cli.app import app
text = io.StringIO()
with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
    app(sys.argv[1:])
print(json.dumps({"modules": sorted(sys.modules), "text": text.getvalue()}))
"""


def help_of(*arguments: str) -> dict:
    root = Path(asset_pipeline.__file__).parents[1]
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments, "--help"], cwd=root, capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)


def test_help_imports_nothing_heavy() -> None:
    answer = help_of()
    assert HEAVY.isdisjoint(answer["modules"])
    for name in ("demo", "run", "extract", "status", "ui", "doctor", "ledger"):
        assert name in answer["text"]


def test_help_of_a_command_imports_nothing_heavy_and_explains_its_options() -> None:
    answer = help_of("extract")
    assert HEAVY.isdisjoint(answer["modules"])
    for option in ("--engine", "--policy", "--password-file", "--no-figures", "--workers", "--json", "--pixels"):
        assert option in answer["text"]
