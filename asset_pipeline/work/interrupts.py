"""Holds signals off while threads and locks are at work: a signal sets a flag, and is handed on at the end.

Python raises the exception of a signal wherever the main thread happens to be, also between taking a lock
and remembering it. Within ``signals_held`` that cannot happen: whoever works looks at the flag, puts his work
down, and then the handler that was there before gets the signal, as if it had come at that moment.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

HELD = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def signals_held(stopping: threading.Event) -> Iterator[list[int]]:
    """Set ``stopping`` when SIGINT or SIGTERM comes; hand the first of them on when the block has ended.

    Yields the numbers of those that come. Does nothing outside the main thread, which alone gets signals. A signal
    that is ignored stays ignored.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return

    def hold(number: int, _frame: FrameType | None) -> None:
        came.append(number)
        stopping.set()

    before = {number: handler for number in HELD if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)}
    for number in before:
        signal.signal(number, hold)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
