"""The folder in which commands are given, and the command line there."""

from __future__ import annotations

from pathlib import Path

import pytest

from asset_pipeline_tests.commands import Command, WarmProcess


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder in which the command is started."""
    (tmp_path / ".asset_pipeline" / "inbox").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def command(place: Path, warm_process: WarmProcess) -> Command:
    return Command(place, warm_process)
