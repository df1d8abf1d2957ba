"""The time that a document has, shared by all decoder processes that read it.

It passes while at least one of them is at work, and not while all wait until a pool that others use has room: how busy
a machine is says nothing about a document. Each is told what is left when it begins, not when it was asked for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Allowance:
    """Seconds that pass while decoders are at work. Thread-safe."""

    def __init__(self, seconds: float) -> None:
        self._left = seconds
        self._at_work = 0
        self._since = 0.0
        self._lock = threading.Lock()

    @contextmanager
    def decoder(self) -> Iterator[Callable[[], float]]:
        """A function to be called when the decoder begins, which tells what is left; it ends with the context."""
        begun = False

        def begin() -> float:
            nonlocal begun
            with self._lock:
                begun = True
                self._pass()
                self._at_work += 1
                return self._left

        try:
            yield begin
        finally:
            with self._lock:
                self._pass()
                self._at_work -= begun

    def forfeit(self) -> None:
        """Leave nothing to those that have not begun."""
        with self._lock:
            self._left = 0.0

    def _pass(self) -> None:
        now = time.monotonic()
        if self._at_work:
            self._left -= now - self._since
        self._since = now
