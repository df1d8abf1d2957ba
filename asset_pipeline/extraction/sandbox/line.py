"""The line to one zygote process: started, asked, listened to, ended.

One thread owns the zygote from start to end, because the kernel's parent-death signal follows the thread
that started a process, not the process. Standard library only: a command that is going to read starts its
zygote (``start_zygote``) before it imports what checks the answers, and both load at the same time. Whose
turn it is, and what an ending means, belongs in ``pool``.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import asset_pipeline
from asset_pipeline.extraction.sandbox.lost import DecoderLost
from asset_pipeline.extraction.sandbox.protocol import LANDLOCK, SECCOMP, Ending, Hello, Order, Ready, to_line
from asset_pipeline.reasons import Reason

_LOG = logging.getLogger(__name__)

START_SECONDS = 60.0
# A zygote that says nothing for this long after a decoder's deadline is stuck, and is replaced.
GRACE_SECONDS = 10.0
_ZYGOTE = "asset_pipeline.extraction.sandbox.zygote_start"


def start_zygote(warm: Sequence[str], engines: Mapping[str, str] | None = None) -> ZygoteLine:
    """Start a zygote that imports the engines ``warm``. ``engines`` (name to ``module:class``) join the registry's."""
    return ZygoteLine(Hello(engines=dict(engines or {}), warm=list(warm), filters=[LANDLOCK, SECCOMP]))


def start_at_once(warm: Sequence[str], engines: Mapping[str, str] | None = None) -> ZygoteLine | None:
    """Start a zygote before settings are read; None where there is a setting about decoder processes to be read."""
    return None if "ASSET_PIPELINE_SANDBOX" in os.environ else start_zygote(warm, engines)


class ZygoteLine:
    """One zygote process, the thread that owns it and the requests it has not answered."""

    def __init__(self, hello: Hello) -> None:
        self.hello = hello
        self.over = False
        self.greeted = False
        self._ready = Ready(cage="unknown", versions={})
        self._told = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Ending]] = {}
        self._ours, theirs = socket.socketpair()
        self._ours.sendall(to_line(hello))
        self._thread = threading.Thread(target=self._own, args=(theirs,), name="decoder-zygote", daemon=True)
        self._thread.start()

    def ask(self, order: Order, turns: int | None = None) -> Future[Ending]:
        """Start a decoder, with the descriptor of the turns it takes; its ending comes later.

        A line that is over answers with DecoderLost.
        """
        line = to_line(order)
        ending: Future[Ending] = Future()
        with self._lock:
            if self.over:
                ending.set_exception(DecoderLost(Reason.DECODER_CRASHED, "the zygote is gone"))
                return ending
            self._waiting[order.number] = ending
            # A broken pipe is noticed by the owning thread too, which then answers everybody.
            with suppress(OSError):
                sent = 0 if turns is None else socket.send_fds(self._ours, [line], [turns])
                self._ours.sendall(line[sent:])
        return ending

    def ready(self) -> Ready:
        """The zygote's word on its cage and engines, waited for; ``unknown`` where it never came up."""
        self._told.wait(START_SECONDS)
        return self._ready

    def close(self) -> None:
        """Hang up: the zygote ends its decoders and itself."""
        with suppress(OSError):
            self._ours.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def _own(self, theirs: socket.socket) -> None:
        process: subprocess.Popen[bytes] | None = None
        try:
            with theirs:
                process = _start_process(theirs)
            with self._ours.makefile("rb") as lines:
                for line in lines:
                    self._hear(json.loads(line))
        except (OSError, ValueError):
            _LOG.warning("the line to the decoder zygote broke")
        finally:
            self._end(process)

    def _hear(self, word: dict[str, Any]) -> None:
        if "cage" in word:
            self.greeted, self._ready = True, Ready(**word)
            self._told.set()
            return
        ending = Ending(**word)
        with self._lock:
            waiting = self._waiting.pop(ending.number, None)
        if waiting is not None:
            waiting.set_result(ending)

    def _end(self, process: subprocess.Popen[bytes] | None) -> None:
        if process is not None:
            try:
                process.wait(GRACE_SECONDS / 2)
            except subprocess.TimeoutExpired:
                process.kill()  # its decoders die with it: they asked the kernel for that
                process.wait()
        with self._lock:
            self.over = True
            self._told.set()
            waiting, self._waiting = self._waiting, {}
            self._ours.close()
        for ending in waiting.values():
            ending.set_exception(DecoderLost(Reason.DECODER_CRASHED, "the zygote is gone"))


def _start_process(theirs: socket.socket) -> subprocess.Popen[bytes]:
    """A process of its own for the zygote, which speaks on ``theirs``."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", _ZYGOTE, str(theirs.fileno()), str(os.getpid())],
        pass_fds=[theirs.fileno()],
        env=_environment(),
        cwd="/",
        stdin=subprocess.DEVNULL,
        # A decoder's chatter may hold words of the document.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """What a decoder may know of its surroundings: where to find programs and modules, no credentials."""
    package_root = Path(asset_pipeline.__file__).resolve().parents[1]
    # Installed packages are found anyway; named here they would come before the standard library.
    roots = [] if package_root.name in ("site-packages", "dist-packages") else [str(package_root)]
    installed = (sys.prefix, sys.base_prefix)
    added = [str(Path(entry or ".").resolve()) for entry in sys.path if not entry.startswith(installed)]
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "C.UTF-8",
        "HOME": "/nonexistent",
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(roots + added)),
        "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        # Large buffers come from the heap: a map for each is zeroed anew each time, which was half of the time of
        # what inflates piece by piece.
        "MALLOC_MMAP_THRESHOLD_": str(32 * 1024 * 1024),
        "MALLOC_TRIM_THRESHOLD_": str(64 * 1024 * 1024),
        # The heap grows by pages of 2 MB where the kernel gives them on request: a decoder begins with none of its own.
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
        "PYDANTIC_DISABLE_PLUGINS": "1",  # looking for some reads the metadata of every installed library
    }
