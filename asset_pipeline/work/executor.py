"""Where work runs: one interface, and the form that runs on this machine.

An executor is asked to call tasks (``plan_job``, ``work_unit``), each with an id, and yields what they answer, in the
order in which calls end. It asks for the next calls when it has room for them and not before, so that whose turn it
is can be decided at the last moment. It knows nothing of ledgers or documents: claims, retries and fences belong to
``unit``, the loop to ``month``. The local form is threads, because each call only waits for a decoder process of its
own; the heavy work is never in this process. It waits in short turns and looks whether it should stop: an exception
from a signal in the middle of ``concurrent.futures`` could leave its locks held, and every thread waiting. Many
machines: ``distributed``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, Self, TypeVar

from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.work.clock import Clock, utc_now

Answer = TypeVar("Answer")
Answered = TypeVar("Answered", covariant=True)

TURN_SECONDS = 0.2
"""How long a stop may go unnoticed."""


class Task(Protocol[Answered]):
    """What is done once an id: a function of a module, so that another machine can be told its name."""

    def __call__(
        self,
        inst: Installation,
        pool: DecoderPool,
        ident: str,
        /,
        *,
        stopping: threading.Event | None = None,
        clock: Clock = utc_now,
    ) -> Answered:
        """Do it for ``ident``, with decoders of ``pool``, unless ``stopping`` is set before it began."""
        ...


Call = tuple[Task[Answer], str]
"""A task and the id to call it with."""

NextCalls = Callable[[int], Sequence[Call[Answer]]]
"""Asked for that many calls at most; an empty answer means that there is none now."""


class UnitExecutor(Protocol):
    """Does what it is told next and yields the answers as they come. An exception of a call is raised here."""

    def run(self, next_calls: NextCalls[Answer], stopping: threading.Event) -> Iterator[Answer]:
        """Answers, in the order in which calls end, until none is under way and ``next_calls`` knows no other.

        Calls that were lost with a machine have no answer. An abandoned, stopped or failed iteration starts no
        further call.
        """
        ...


class LocalExecutor:
    """Threads of this process and a pool of decoders. Leaving it ends the decoders and drops calls not begun."""

    def __init__(self, inst: Installation, workers: int, clock: Clock = utc_now) -> None:
        self._inst = inst
        self._clock = clock
        self._pool = DecoderPool(workers, inst.policy, caged=inst.settings.sandbox)
        self._room = workers + (workers + 1) // 2  # a thread finds its next call, and no call waits for long
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="unit")

    def run(self, next_calls: NextCalls[Answer], stopping: threading.Event) -> Iterator[Answer]:
        """See ``UnitExecutor``."""
        ended: SimpleQueue[Future[Answer]] = SimpleQueue()
        under_way: set[Future[Answer]] = set()
        try:
            while not stopping.is_set():
                for task, ident in next_calls(self._room - len(under_way)) if len(under_way) < self._room else ():
                    future = self._threads.submit(
                        task, self._inst, self._pool, ident, stopping=stopping, clock=self._clock
                    )
                    under_way.add(future)
                    future.add_done_callback(ended.put)
                if not under_way:
                    return
                try:
                    future = ended.get(timeout=TURN_SECONDS)
                except Empty:
                    continue
                under_way.discard(future)
                yield future.result()
        finally:
            for future in under_way:
                future.cancel()

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The pool first: that ends the decoders, for which the threads are waiting.
        self._pool.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
