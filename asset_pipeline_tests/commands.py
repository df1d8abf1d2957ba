"""The command line as a user gives it: each command a process of its own, forked from a warm one.

Run as a script this is the warm process. It imports what commands import, stays single-threaded and forks for every
order; the fork becomes the command and ends as a started one does, through the interpreter's own end. What depends
on a fresh interpreter (start time, what is imported when, signals) starts one: ``Command.start``.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from asset_pipeline_tests.warm_zygotes import fork_from

ROOT = Path(__file__).parents[1]
WARM = ("asset_pipeline.cli.app", "asset_pipeline.defs.build", "asset_pipeline.defs.instance", "dagster_postgres")


_LOGGED = re.compile(r"[\d-]{10} [\d:,]{12} (WARNING|ERROR) asset_pipeline\.ledger\.(signing|checkpoints): ")


class WarmProcess:
    """The other end of the line to a warm process, which ends with this one; ``zygotes``: where its decoders fork."""

    def __init__(self, zygotes: str) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "asset_pipeline_tests.commands", str(theirs.fileno()), zygotes]
            self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()])

    def run(self, arguments: list[str], cwd: Path, environment: dict[str, str], seconds: float) -> tuple[int, str, str]:
        """Exit status as ``subprocess`` tells it, and both outputs."""
        order = json.dumps({"arguments": arguments, "cwd": str(cwd), "environment": environment}).encode()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            told, tell = os.pipe()
            try:
                socket.send_fds(self._line, [order], [out.fileno(), err.fileno(), tell])
            finally:
                os.close(tell)
            with os.fdopen(told, "rb") as ending:
                group = int.from_bytes(ending.read(4), "big")
                if not select.select([ending], [], [], seconds)[0]:
                    os.killpg(group, signal.SIGKILL)
                    raise subprocess.TimeoutExpired(arguments, seconds)
                status = int.from_bytes(ending.read(4), "big", signed=True)
            texts = [Path(f"/proc/self/fd/{file.fileno()}").read_bytes().decode() for file in (out, err)]
        return status, texts[0], texts[1]

    def close(self) -> None:
        self._line.close()
        self._process.wait()


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


def serve(line: socket.socket) -> None:
    """Fork a keeper for every order; the command is the keeper's child. Returns only in that child."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        order, descriptors, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not order:
            os._exit(0)
        if not os.fork():
            line.close()
            return _keep(json.loads(order), *descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _keep(order: dict, out: int, err: int, tell: int) -> None:
    """Start the command in a session of its own and tell its group and its end. Returns in the command."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.write(tell, os.getpid().to_bytes(4, "big"))
    if pid := os.fork():
        _, status = os.waitpid(pid, 0)
        os.write(tell, os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))
        os._exit(0)
    for descriptor, place in ((out, 1), (err, 2)):
        os.dup2(descriptor, place)
        os.close(descriptor)
    os.close(tell)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = ["asset-pipeline", *order["arguments"]]


if __name__ == "__main__":
    for name in WARM:
        importlib.import_module(name)
    fork_from(sys.argv[2])
    serve(socket.socket(fileno=int(sys.argv[1])))
    from asset_pipeline.cli import main

    main()
