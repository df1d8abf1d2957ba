"""The pool of decoder processes, as callers see it: a request in, a checked answer out.

Thread-safe: every caller's thread waits for its own decoder, at most ``workers`` live at once. A zygote
that dies is replaced at the next request. How one is started and spoken to: ``line``.
"""

from __future__ import annotations

import itertools
import logging
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import replace
from types import TracebackType

from asset_pipeline.errors import ConfigurationError, StorageError
from asset_pipeline.extraction.engine import ENGINES, Inspection, Request, load_engine, version_of
from asset_pipeline.extraction.sandbox import answers
from asset_pipeline.extraction.sandbox.line import GRACE_SECONDS, START_SECONDS, ZygoteLine, start_zygote
from asset_pipeline.extraction.sandbox.lost import DecoderLost, EngineFailed
from asset_pipeline.extraction.sandbox.orders import request_to_json
from asset_pipeline.extraction.sandbox.protocol import Ending, Exit, Order, Task
from asset_pipeline.extraction.written import NoRoom
from asset_pipeline.model import Extraction, Source
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

_LOG = logging.getLogger(__name__)

# A process that died of an allocation that failed had most of its address space in use.
_NEARLY_ALL = 0.8
_UNCAGED = threading.Lock()


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
        line: ZygoteLine | None = None,
    ) -> None:
        """``engines`` (name to ``module:class``) come before the registry's; ``warm`` are imported at once.

        ``line`` is to a zygote that was started before, with the same engines; the pool ends it.
        ``caged`` False reads in this very process, one document at a time, with no deadline and no limit of
        memory: for a system that cannot fork, and warned of each time.
        """
        self._policy = policy
        self._caged = caged
        self._engines, self._warm = {**ENGINES, **(engines or {})}, warm
        self._slots = threading.BoundedSemaphore(workers)
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._line = line
        self._closed = False

    def __enter__(self) -> DecoderPool:
        if self._caged:
            with self._lock:
                self._line = self._line or start_zygote(self._warm, self._engines)
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
        return line.ready().cage if line is not None else "unknown"

    def version(self, engine: str) -> str:
        """The engine's version, told by the zygote where it has imported that engine: importing it here is slow."""
        with self._lock:
            line = self._line
        told = line.ready().versions if line is not None and self._caged else {}
        return told.get(engine) or version_of(load_engine(engine))

    def inspect(
        self, engine: str, request: Request, *, seconds: float | Callable[[], float] | None = None
    ) -> Inspection:
        """Open the document and count its pages; ``request.out`` is empty afterwards. ``seconds``: see ``extract``.

        Raises DecoderLost, StorageError where there is no room for the answer.
        """
        try:
            self._run("inspect", engine, request, seconds)
            return answers.read_inspection(request)
        except (DecoderLost, StorageError):
            answers.clear(request.out)
            raise
        except EngineFailed as failure:
            _LOG.error("engine %s failed while inspecting: %s", engine, failure)
            answers.clear(request.out)
            return Inspection(source=_unread(request), outcome=failure.reason)

    def extract(
        self, engine: str, request: Request, *, seconds: float | Callable[[], float] | None = None
    ) -> Extraction:
        """Read the pages; ``request.out`` then holds the answer's files.

        Raises DecoderLost, StorageError where there is no room for them; ``request.out`` is empty then.

        ``seconds`` shortens the policy's deadline, for a caller that has spent some of it; a function is asked when
        there is room for the decoder.
        """
        try:
            peak = self._run("extract", engine, request, seconds)
            return answers.read_extraction(request).model_copy(update={"peak_rss_bytes": peak})
        except (DecoderLost, StorageError):
            answers.clear(request.out)
            raise
        except EngineFailed as failure:
            _LOG.error("engine %s failed while extracting: %s", engine, failure)
            answers.clear(request.out)
            return Extraction(source=_unread(request), outcome=failure.reason, extractor_version=engine)

    def _run(self, task: Task, engine: str, request: Request, asked: float | Callable[[], float] | None) -> int:
        """Wait until the decoder has answered; its highest resident memory in bytes. Raises DecoderLost."""
        limits = self._policy.limits
        located = replace(request, document=request.document.absolute(), out=request.out.absolute())
        if not self._caged:
            return _run_uncaged(task, engine, located, self._engines)
        with self._slots:
            seconds = self._seconds(asked)
            order = Order(
                number=next(self._numbers),
                task=task,
                engine=engine,
                seconds=seconds,
                memory_bytes=limits.decoder_bytes,
                file_bytes=max(limits.expanded_bytes, answers.ANSWER_BYTES),
                request=request_to_json(located),
                turns=request.turns is not None,
            )
            line = self._open_line()
            ending = line.ask(order, request.turns.descriptor if request.turns else None)
            try:
                ended = ending.result(seconds + GRACE_SECONDS + START_SECONDS)
                _judge(ended, limits.decoder_bytes)
                return ended.peak_rss_bytes
            except FutureTimeout:
                line.close()
                raise DecoderLost(Reason.DEADLINE_EXCEEDED, "the zygote does not answer") from None

    def _seconds(self, asked: float | Callable[[], float] | None) -> float:
        """What a decoder that begins now has. Raises DecoderLost where that is nothing."""
        allowed = self._policy.limits.document_seconds
        seconds = allowed if asked is None else min(asked() if callable(asked) else asked, allowed)
        if seconds <= 0:
            raise DecoderLost(Reason.DEADLINE_EXCEEDED)
        return seconds

    def _open_line(self) -> ZygoteLine:
        with self._lock:
            if self._closed:
                raise DecoderLost(Reason.DECODER_CRASHED, "the pool is closed")
            if self._line is None or self._line.over:
                if self._line is not None and not self._line.greeted:
                    raise ConfigurationError(
                        "The decoder process does not start.", "Run `asset-pipeline doctor` to see which library fails."
                    )
                self._line = start_zygote(self._warm, self._engines)
            return self._line


def _judge(ending: Ending, memory_bytes: int) -> None:
    """Return where the decoder answered; else raise DecoderLost with what most likely ended it, or StorageError."""
    if ending.late or ending.status == -signal.SIGXCPU:
        raise DecoderLost(Reason.DEADLINE_EXCEEDED)
    if ending.status == Exit.ANSWERED:
        return
    if ending.status == Exit.OUT_OF_MEMORY:
        raise DecoderLost(Reason.MEMORY_EXCEEDED)
    if ending.status == Exit.NO_ROOM:
        raise _no_room()
    if ending.status == Exit.NOT_CONFINED:
        raise DecoderLost(Reason.DECODER_CRASHED, "it could not be confined")
    # Native code ends by a signal when an allocation fails, which looks like any crash from outside.
    if ending.status < 0 and max(ending.peak_address_space, ending.peak_rss_bytes) >= _NEARLY_ALL * memory_bytes:
        raise DecoderLost(Reason.MEMORY_EXCEEDED, f"signal {-ending.status}")
    how = f"signal {-ending.status}" if ending.status < 0 else f"exit status {ending.status}"
    raise DecoderLost(Reason.DECODER_CRASHED, how)


def _run_uncaged(task: Task, engine: str, request: Request, engines: Mapping[str, str]) -> int:
    """Read in this process. PDFium and the settings of Pillow are the process's, so one at a time."""
    from asset_pipeline.extraction.sandbox.child import carry_out

    with _UNCAGED:
        try:
            carry_out(task, engine, request, engines)
        except MemoryError:
            raise DecoderLost(Reason.MEMORY_EXCEEDED) from None
        except NoRoom:
            raise _no_room() from None
    return 0


def _no_room() -> StorageError:
    full = "What was read cannot be written: the disk is full."
    return StorageError(full, "Make room where the work folder or --out is.")


def _unread(request: Request) -> Source:
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=None,
        encrypted=None,
    )
