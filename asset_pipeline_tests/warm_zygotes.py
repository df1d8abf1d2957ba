"""Decoder zygotes forked from a warm process, for tests whose question is not how a zygote starts.

A zygote that is started imports the engines anew, which takes longer than most tests. Run as a script this is the
process they are forked from: it imports what zygotes import, stays single-threaded and forks at every connection; the
fork serves as a started one does, in its cage. The tests of the cage, and commands that run in a fresh interpreter,
start theirs.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from asset_pipeline.extraction.sandbox import line

ROOT = Path(__file__).parents[1]
start_process = line._start_process
"""Starts a zygote as everywhere else."""


class WarmZygotes:
    """The warm process, started when it is first asked for; it ends with this one."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / f"zygotes-{os.getpid()}")
        self._held: socket.socket | None = None

    def address(self) -> str:
        """Where the warm process listens."""
        if self._held is None:
            # It ends when this end is closed: a connection could not tell.
            self._held, theirs = socket.socketpair()
            with socket.socket(socket.AF_UNIX) as listener, theirs:
                listener.bind(self._address)
                listener.listen(64)
                descriptors = [listener.fileno(), theirs.fileno()]
                command = [sys.executable, "-P", "-m", __name__, *map(str, descriptors)]
                environment = line._environment() | {"PYTHONPATH": str(ROOT)}
                self._process = subprocess.Popen(command, cwd="/", pass_fds=descriptors, env=environment)
        return self._address

    def fork(self, theirs: socket.socket) -> Forked:
        """In the place of ``start_process``."""
        return Forked(self.address(), theirs)

    def close(self) -> None:
        if self._held is not None:
            self._held.close()
            self._process.wait()


class Forked:
    """A forked zygote, waited for and killed as a started one."""

    def __init__(self, address: str, theirs: socket.socket) -> None:
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(address)
            socket.send_fds(asking, [json.dumps(line._environment()).encode()], [theirs.fileno()])
            asking.shutdown(socket.SHUT_WR)
            self._pid = os.pidfd_open(int.from_bytes(asking.recv(4), "big"))

    def wait(self, timeout: float | None = None) -> None:
        if not select.select([self._pid], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("zygote", timeout or 0.0)
        os.close(self._pid)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pid, signal.SIGKILL)


def fork_from(address: str) -> None:
    """Have this process, and what is forked from it, fork its zygotes from the warm process at ``address``."""
    line._start_process = lambda theirs: Forked(address, theirs)  # type: ignore[assignment, return-value]


def serve(listener: socket.socket, held: socket.socket) -> None:
    """Fork for every connection. Returns only in a fork, which then is a zygote."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    parent = os.getpid()
    while True:
        ready, _, _ = select.select([listener, held], [], [])
        if held in ready:
            os._exit(0)
        asked, _ = listener.accept()
        told, (control, *_), _, _ = socket.recv_fds(asked, 1 << 16, 1)
        if pid := os.fork():
            os.close(control)
            with asked, suppress(BrokenPipeError):
                asked.sendall(pid.to_bytes(4, "big"))
            continue
        for other in (listener, held, asked):
            other.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(silent, descriptor)
        os.close(silent)
        os.environ.clear()
        os.environ.update(json.loads(told))
        sys.path[1:1] = os.environ["PYTHONPATH"].split(os.pathsep)
        sys.argv[1:] = [str(control), str(parent)]
        return


if __name__ == "__main__":
    gc.disable()
    from asset_pipeline.extraction.engine import ENGINES
    from asset_pipeline.extraction.sandbox import zygote
    from asset_pipeline.extraction.sandbox.warm import warm_up

    for name in ENGINES:
        warm_up(name)
    gc.freeze()
    serve(*(socket.socket(fileno=int(number)) for number in sys.argv[1:3]))
    zygote.main()
