"""A real Dask scheduler and real worker processes, each with surroundings and a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_SECONDS = 60


class Cluster:
    """A scheduler and the workers started so far. ``environment`` is what every worker gets to know."""

    def __init__(self, folder: Path, environment: dict[str, str], *options: str) -> None:
        self.folder = folder
        self._environment = environment
        self._options = options
        self._started: list[subprocess.Popen[bytes]] = []
        described = folder / "scheduler.json"
        self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(described), *options, own=folder
        )
        deadline = time.monotonic() + START_SECONDS
        while not (described.exists() and described.stat().st_size):
            assert time.monotonic() < deadline, "the scheduler did not start"
            time.sleep(0.05)
        self.address: str = json.loads(described.read_text())["address"]

    def add_worker(self, *options: str, **settings: str) -> subprocess.Popen[bytes]:
        """Start a worker in a folder of its own."""
        own = self.folder / f"worker-{len(self._started)}"
        own.mkdir()
        changed = {f"ASSET_PIPELINE_{name.upper()}": value for name, value in settings.items()}
        return self._start(
            *("worker", self.address, "--nthreads", "1", "--local-directory", str(own), "--death-timeout", "60"),
            *(options or ("--no-nanny",)),
            *self._options,
            own=own,
            **(self._environment | {"ASSET_PIPELINE_HOME": str(own / "home")} | changed),
        )

    def end_scheduler(self) -> None:
        self._started[0].kill()
        self._started[0].wait(20)

    def _start(self, *arguments: str, own: Path, **environment: str) -> subprocess.Popen[bytes]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSET_PIPELINE", "AWS_"))}
        with (own / f"{arguments[0]}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
                cwd=own,
                env=kept | {"PYTHONPATH": str(ROOT)} | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    def close(self) -> None:
        for process in reversed(self._started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)


@contextmanager
def cluster(folder: Path, environment: dict[str, str], *options: str) -> Iterator[Cluster]:
    folder.mkdir(parents=True)
    made = Cluster(folder, environment, *options)
    try:
        yield made
    finally:
        made.close()
