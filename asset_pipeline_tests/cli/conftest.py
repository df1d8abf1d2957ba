"""The command line as a user gives it: a process of its own, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from asset_pipeline_tests.cli.warm import ROOT, WarmProcess

_LOGGED = re.compile(r"[\d-]{10} [\d:,]{12} (WARNING|ERROR) asset_pipeline\.ledger\.(signing|checkpoints): ")


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left: exit status and both outputs."""

    status: int
    out: str
    err: str

    def one_line_error(self) -> str:
        """The failure as a user sees it; fails the test when it is more than one clear line.

        Beside it are lines of the log: that a key was made, or that no checkpoint could be.
        """
        assert self.out == "", self.out
        (line,) = [line for line in self.err.splitlines() if not _LOGGED.match(line)]
        assert line.startswith("Error: "), line
        return line


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The folder in which the command is started."""
    (tmp_path / ".asset_pipeline" / "inbox").mkdir(parents=True)
    return tmp_path


@dataclass(frozen=True, slots=True)
class Command:
    """The command line of one folder."""

    place: Path
    warm: WarmProcess

    def start(self, *arguments: str | Path, **variables: str) -> subprocess.Popen[str]:
        """A fresh interpreter, to be watched and signalled."""
        return subprocess.Popen(
            [sys.executable, "-m", "asset_pipeline.cli", *map(str, arguments)],
            cwd=self.place,
            env=_environment(variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str | Path, **variables: str) -> Ended:
        """Run to the end."""
        return Ended(*self.warm.run([*map(str, arguments)], self.place, _environment(variables), seconds=240))


def _environment(variables: dict[str, str]) -> dict[str, str]:
    ours = ("ASSET_PIPELINE_", "DAGSTER")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PYTHONPATH": str(ROOT), "ASSET_PIPELINE_SETTLE_SECONDS": "0"} | variables


@pytest.fixture(scope="session")
def warm_process() -> Iterator[WarmProcess]:
    process = WarmProcess()
    yield process
    process.close()


@pytest.fixture
def command(place: Path, warm_process: WarmProcess) -> Command:
    return Command(place, warm_process)
