"""The zygote: a warm single-threaded process that forks one decoder process for each order.

Started by exec (``zygote_start``), never by fork: its parent has threads, locks and database sockets
that a fork would carry into every decoder. It imports the engines once, then only forks, watches and
reaps. It keeps the deadline, because it alone knows whether a process id is still that decoder's.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from asset_pipeline.extraction.engine import ENGINES
from asset_pipeline.extraction.sandbox.child import become_decoder
from asset_pipeline.extraction.sandbox.confine import describe_cage, die_with_parent, probe
from asset_pipeline.extraction.sandbox.kernel import PR_SET_CHILD_SUBREAPER, prctl
from asset_pipeline.extraction.sandbox.orders import request_from_json
from asset_pipeline.extraction.sandbox.protocol import Ending, Hello, Order, Ready, to_line
from asset_pipeline.extraction.sandbox.warm import warm_up
from asset_pipeline.extraction.turns import Turns

SAMPLE_SECONDS = 0.05
# The kernel never gives those of two orders at once.
_MOST_DESCRIPTORS = 1


@dataclass(slots=True)
class _Decoder:
    """What is kept of an order: not its request, which a decoder forked meanwhile could read."""

    number: int
    deadline: float
    late: bool = False
    peak_address_space: int = 0


class Zygote:
    """The loop: orders in, endings out."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._unread = b""
        self._turns: deque[int] = deque()
        self._decoders: dict[int, _Decoder] = {}
        self._filters: frozenset[str] = frozenset()
        self._warm: set[str] = set()
        self._versions: dict[str, str] = {}
        # What a decoder leaves behind comes here, not to init, and is ended.
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self._wake, wake = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Until the other end of the control line closes; then no decoder is left alive."""
        watched: list[socket.socket | int] = [self._control, self._wake]
        try:
            self._start_ordered()  # what came together with the hello
            while True:
                ready, _, _ = select.select(watched, [], [], self._pause())
                if self._wake in ready:
                    with suppress(BlockingIOError):
                        os.read(self._wake, 4096)
                self._reap()
                self._watch()
                if self._control in ready and not self._take_orders():
                    return
        finally:
            for pid in self._decoders:
                _kill(pid)
            for pid in self._decoders:
                os.waitpid(pid, 0)

    def greet(self) -> None:
        """Read the hello and import what it names."""
        while b"\n" not in self._unread:
            if not self._listen():
                return
        line, _, self._unread = self._unread.partition(b"\n")
        hello = Hello(**json.loads(line))
        ENGINES.update(hello.engines)
        for name in hello.warm:
            self._warm_up(name)
        # What is there stays there: no decoder looks through it, which would copy the pages it is on.
        gc.freeze()
        gc.enable()
        self._filters = probe(hello.filters)
        ready = Ready(cage=describe_cage(self._filters), versions=self._versions)
        self._control.sendall(to_line(ready))

    def _pause(self) -> float | None:
        if not self._decoders:
            return None
        nearest = min(decoder.deadline for decoder in self._decoders.values())
        return max(0.0, min(SAMPLE_SECONDS, nearest - time.monotonic()))

    def _take_orders(self) -> bool:
        try:
            heard = self._listen()
        except ConnectionError:
            return False
        self._start_ordered()
        return heard

    def _listen(self) -> bool:
        """Hear on what was said, with the descriptors that came along; False at its end."""
        piece, descriptors, _, _ = socket.recv_fds(self._control, 65536, _MOST_DESCRIPTORS)
        self._unread += piece
        self._turns.extend(descriptors)
        return bool(piece)

    def _start_ordered(self) -> None:
        while b"\n" in self._unread:
            line, _, self._unread = self._unread.partition(b"\n")
            self._start(Order(**json.loads(line)))

    def _start(self, order: Order) -> None:
        self._warm_up(order.engine)
        if _threads() != 1:
            # A fork would carry over one thread and the locks of all: better no decoder at all.
            raise SystemExit("The zygote has more than one thread.")
        request, parent = request_from_json(order.request), os.getpid()
        if order.turns:
            request = replace(request, turns=Turns(self._turns.popleft()))
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            become_decoder(order, request, parent, self._filters)
        if request.turns is not None:
            os.close(request.turns.descriptor)
        self._decoders[pid] = _Decoder(order.number, deadline=time.monotonic() + order.seconds)

    def _warm_up(self, name: str) -> None:
        if name not in self._warm:
            self._warm.add(name)
            if version := warm_up(name):
                self._versions[name] = version

    def _reap(self) -> None:
        for gone in iter(_next_gone, None):
            # Not reaped yet, so the number still names its group and nothing else: end what it left behind.
            _kill(gone)
            _, code, used = os.wait4(gone, 0)
            decoder = self._decoders.pop(gone, None)
            self._end_strays()
            if decoder is None:
                continue
            ending = Ending(
                number=decoder.number,
                status=os.waitstatus_to_exitcode(code),
                late=decoder.late,
                peak_address_space=decoder.peak_address_space,
                peak_rss_bytes=used.ru_maxrss * 1024,
            )
            self._control.sendall(to_line(ending))

    def _end_strays(self) -> None:
        """End what fled from a decoder's group: our children by now, and no decoders of ours."""
        children = Path(f"/proc/self/task/{os.getpid()}/children")
        with suppress(OSError):  # a kernel without such lists
            for pid in map(int, children.read_text("ascii").split()):
                if pid not in self._decoders:
                    _kill(pid)

    def _watch(self) -> None:
        now = time.monotonic()
        for pid, decoder in self._decoders.items():
            decoder.peak_address_space = max(decoder.peak_address_space, _address_space(pid))
            if now >= decoder.deadline and not decoder.late:
                decoder.late = True
                _kill(pid)


def _next_gone() -> int | None:
    """Process id of a child that has ended and is not reaped; None where there is none."""
    try:
        gone = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    return None if gone is None else gone.si_pid


def _threads() -> int:
    return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names only, no paths needed


def _address_space(pid: int) -> int:
    """Peak bytes of address space of ``pid``; 0 once it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text("ascii", "replace")
    except OSError:
        return 0
    for line in status.splitlines():
        if line.startswith("VmPeak:"):
            return int(line.split()[1]) * 1024
    return 0


def _kill(pid: int) -> None:
    """End the process and its group. The group does not exist yet right after the fork, hence both."""
    for end in (os.killpg, os.kill):
        with suppress(ProcessLookupError, PermissionError):
            end(pid, signal.SIGKILL)


def main() -> None:
    """Entry: the descriptor of the control line and the parent's process id are the arguments."""
    control = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent(int(sys.argv[2]))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    zygote = Zygote(control)
    zygote.greet()
    with suppress(BrokenPipeError, ConnectionError):
        zygote.serve()
    os._exit(0)  # no decoder is left, and nothing of the libraries is worth putting away
