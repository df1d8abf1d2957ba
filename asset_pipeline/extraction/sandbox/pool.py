"""The pool of decoder processes, as callers see it: a request in, a checked answer out.

Thread-safe: every caller's thread waits for its own decoder, at most ``workers`` live at once. One
thread owns the zygote from start to end, because the kernel's parent-death signal follows the thread
that started a process, not the process. A zygote that dies is replaced at the next request.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import asset_pipeline
from asset_pipeline.errors import ConfigurationError
from asset_pipeline.extraction.engine import ENGINES, Inspection, Request
from asset_pipeline.extraction.sandbox import answers
from asset_pipeline.extraction.sandbox.answers import DecoderLost, EngineFailed
from asset_pipeline.extraction.sandbox.confine import LANDLOCK, SECCOMP
from asset_pipeline.extraction.sandbox.protocol import Ending, Exit, Hello, Order, Task, request_to_json, to_line
from asset_pipeline.model import Extraction, Source
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

_LOG = logging.getLogger(__name__)

# A zygote that says nothing for this long after a decoder's deadline is stuck, and is replaced.
_ZYGOTE_GRACE_SECONDS = 10.0
_START_SECONDS = 60.0
# A process that died of an allocation that failed had most of its address space in use.
_NEARLY_ALL = 0.8
_UNCAGED = threading.Lock()
_ZYGOTE = "asset_pipeline.extraction.sandbox.zygote"


class DecoderPool:
    """Reads documents in processes that may be lost. Use as a context manager."""

    def __init__(
        self,
        workers: int,
        policy: Policy,
        *,
        engines: Mapping[str, str] | None = None,
        warm: Sequence[str] = ("pdf",),
        caged: bool = True,
    ) -> None:
        """``engines`` (name to ``module:class``) come before the registry's; ``warm`` are imported at once.

        ``caged`` False reads in this very process, one document at a time, with no deadline and no limit of
        memory: for a system that cannot fork, and warned of each time.
        """
        self._policy = policy
        self._caged = caged
        self._hello = Hello(engines={**ENGINES, **(engines or {})}, warm=list(warm), filters=[LANDLOCK, SECCOMP])
        self._slots = threading.BoundedSemaphore(workers)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._line: _ZygoteLine | None = None
        self._closed = False

    def __enter__(self) -> DecoderPool:
        if self._caged:
            with self._lock:
                self._line = _ZygoteLine(self._hello)
        else:
            _LOG.warning("documents are read without a cage, because ASSET_PIPELINE_SANDBOX is off")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the zygote and every decoder; a caller still waiting gets DecoderLost."""
        with self._lock:
            self._closed = True
            line, self._line = self._line, None
        if line is not None:
            line.close()

    @property
    def cage(self) -> str:
        """What holds its decoders, for a record: ``landlock-7+seccomp+rlimits``; ``none`` where it is off."""
        with self._lock:
            line = self._line
        if not self._caged:
            return "none"
        return line.cage() if line is not None else "unknown"

    def inspect(self, engine: str, request: Request) -> Inspection:
        """Open the document and count its pages. Raises DecoderLost; ``request.out`` is empty afterwards."""
        try:
            self._run("inspect", engine, request, self._policy.limits.document_seconds)
            return answers.read_inspection(request)
        except DecoderLost:
            answers.clear(request.out)
            raise
        except EngineFailed as failure:
            _LOG.error("engine %s failed while inspecting: %s", engine, failure)
            answers.clear(request.out)
            return Inspection(source=_unread(request), outcome=failure.reason)

    def extract(self, engine: str, request: Request, *, seconds: float | None = None) -> Extraction:
        """Read the pages. Raises DecoderLost; ``request.out`` then is empty, else holds the answer's files.

        ``seconds`` shortens the policy's deadline, for a caller that has spent some of it.
        """
        allowed = self._policy.limits.document_seconds
        try:
            peak = self._run("extract", engine, request, allowed if seconds is None else min(seconds, allowed))
            return answers.read_extraction(request).model_copy(update={"peak_rss_bytes": peak})
        except DecoderLost:
            answers.clear(request.out)
            raise
        except EngineFailed as failure:
            _LOG.error("engine %s failed while extracting: %s", engine, failure)
            answers.clear(request.out)
            return Extraction(source=_unread(request), outcome=failure.reason, extractor_version=engine)

    def _run(self, task: Task, engine: str, request: Request, seconds: float) -> int:
        """Wait until the decoder has answered; its highest resident memory in bytes. Raises DecoderLost."""
        limits = self._policy.limits
        located = replace(request, document=request.document.absolute(), out=request.out.absolute())
        if not self._caged:
            return _run_uncaged(task, engine, located)
        with self._slots:
            order = Order(
                number=next(self._numbers),
                task=task,
                engine=engine,
                seconds=seconds,
                memory_bytes=limits.decoder_bytes,
                file_bytes=max(limits.expanded_bytes, answers.ANSWER_BYTES),
                request=request_to_json(located),
            )
            line = self._open_line()
            ending = line.ask(order)
            try:
                ended = ending.result(seconds + _ZYGOTE_GRACE_SECONDS + _START_SECONDS)
                _judge(ended, limits.decoder_bytes)
                return ended.peak_rss_bytes
            except FutureTimeout:
                line.close()
                raise DecoderLost(Reason.DEADLINE_EXCEEDED, "the zygote does not answer") from None

    def _open_line(self) -> _ZygoteLine:
        with self._lock:
            if self._closed:
                raise DecoderLost(Reason.DECODER_CRASHED, "the pool is closed")
            if self._line is None or self._line.over:
                if self._line is not None and not self._line.greeted:
                    raise ConfigurationError(
                        "The decoder process does not start.", "Run `asset-pipeline doctor` to see which library fails."
                    )
                self._line = _ZygoteLine(self._hello)
            return self._line


class _ZygoteLine:
    """One zygote process, the thread that owns it and the requests it has not answered."""

    def __init__(self, hello: Hello) -> None:
        self.over = False
        self.greeted = False
        self._cage = ""
        self._told = threading.Event()
        self._lock = threading.Lock()
        self._waiting: dict[int, Future[Ending]] = {}
        self._ours, theirs = socket.socketpair()
        self._ours.sendall(to_line(hello))
        self._thread = threading.Thread(target=self._own, args=(theirs,), name="decoder-zygote", daemon=True)
        self._thread.start()

    def ask(self, order: Order) -> Future[Ending]:
        """Start a decoder; its ending comes later. A line that is over answers with DecoderLost."""
        ending: Future[Ending] = Future()
        with self._lock:
            if self.over:
                ending.set_exception(DecoderLost(Reason.DECODER_CRASHED, "the zygote is gone"))
                return ending
            self._waiting[order.number] = ending
            # A broken pipe is noticed by the owning thread too, which then answers everybody.
            with suppress(OSError):
                self._ours.sendall(to_line(order))
        return ending

    def cage(self) -> str:
        """The zygote's word on what holds its decoders, waited for; ``unknown`` where it never came up."""
        self._told.wait(_START_SECONDS)
        return self._cage or "unknown"

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
                process = subprocess.Popen(
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
            with self._ours.makefile("rb") as lines:
                for line in lines:
                    self._hear(json.loads(line))
        except (OSError, ValueError):
            _LOG.warning("the line to the decoder zygote broke")
        finally:
            self._end(process)

    def _hear(self, word: dict[str, Any]) -> None:
        if "cage" in word:
            self.greeted, self._cage = True, word["cage"]
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
                process.wait(_ZYGOTE_GRACE_SECONDS / 2)
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


def _judge(ending: Ending, memory_bytes: int) -> None:
    """Return where the decoder answered; else raise DecoderLost with what most likely ended it."""
    if ending.late or ending.status == -signal.SIGXCPU:
        raise DecoderLost(Reason.DEADLINE_EXCEEDED)
    if ending.status == Exit.ANSWERED:
        return
    if ending.status == Exit.OUT_OF_MEMORY:
        raise DecoderLost(Reason.MEMORY_EXCEEDED)
    if ending.status == Exit.NOT_CONFINED:
        raise DecoderLost(Reason.DECODER_CRASHED, "it could not be confined")
    # Native code ends by a signal when an allocation fails, which looks like any crash from outside.
    if ending.status < 0 and max(ending.peak_address_space, ending.peak_rss_bytes) >= _NEARLY_ALL * memory_bytes:
        raise DecoderLost(Reason.MEMORY_EXCEEDED, f"signal {-ending.status}")
    how = f"signal {-ending.status}" if ending.status < 0 else f"exit status {ending.status}"
    raise DecoderLost(Reason.DECODER_CRASHED, how)


def _run_uncaged(task: Task, engine: str, request: Request) -> int:
    """Read in this process. PDFium and the settings of Pillow are the process's, so one at a time."""
    from asset_pipeline.extraction.sandbox.child import carry_out

    with _UNCAGED:
        try:
            carry_out(task, engine, request)
        except MemoryError:
            raise DecoderLost(Reason.MEMORY_EXCEEDED) from None
    return 0


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
    }


def _unread(request: Request) -> Source:
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=None,
        encrypted=None,
    )
