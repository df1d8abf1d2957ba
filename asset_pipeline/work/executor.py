"""Where work runs: one interface, and the form that runs on this machine.

An executor calls a function once an id and yields what it returns, in the order in which calls end. It
knows nothing of ledgers or documents: claims, retries and fences belong to ``unit``, the loop to
``month``. The local form is threads, because each call only waits for a decoder process of its own;
the heavy work is never in this process. It waits in short turns and looks whether it should stop: an exception
from a signal in the middle of ``concurrent.futures`` could leave its locks held, and every thread waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Protocol, Self, TypeVar

Answer = TypeVar("Answer")

TURN_SECONDS = 0.2
"""How long a stop may go unnoticed."""


class UnitExecutor(Protocol):
    """Runs ``worker`` once an id and yields the answers as they come. An exception of a call is raised here."""

    def run(
        self, unit_ids: Sequence[str], worker: Callable[[str], Answer], stopping: threading.Event
    ) -> Iterator[Answer]:
        """Answers of ``worker`` for all ``unit_ids``, in the order in which they end; fewer once ``stopping`` is set.

        An abandoned, stopped or failed iteration starts no further call.
        """
        ...


class LocalExecutor:
    """Threads of this process. Leaving the context waits for the calls that have begun and drops the others."""

    def __init__(self, workers: int) -> None:
        self._threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="unit")

    def run(
        self, unit_ids: Sequence[str], worker: Callable[[str], Answer], stopping: threading.Event
    ) -> Iterator[Answer]:
        """See ``UnitExecutor``."""
        ended: SimpleQueue[Future[Answer]] = SimpleQueue()
        futures = [self._threads.submit(worker, unit_id) for unit_id in unit_ids]
        for future in futures:
            future.add_done_callback(ended.put)
        try:
            left = len(futures)
            while left and not stopping.is_set():
                try:
                    future = ended.get(timeout=TURN_SECONDS)
                except Empty:
                    continue
                left -= 1
                yield future.result()
        finally:
            for future in futures:
                future.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
