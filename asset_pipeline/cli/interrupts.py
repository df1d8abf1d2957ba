"""Ctrl-C and SIGTERM on the command line: whatever swallows one on the way, it is not forgotten.

Libraries catch the exception of a signal and go on, or put handlers of their own in place of ours; some drop what
came meanwhile. The kernel's notice (``signal.set_wakeup_fd``) is not theirs to catch: each number is written into
a pipe before any handler runs. ``check`` at each step that a person sees, and the exit status at the end, go by
that. Signals during the work itself are held by ``work.interrupts``.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import NoReturn

WATCHED = (signal.SIGINT, signal.SIGTERM)

_pipe: list[int] = []
_came: list[int] = []


def listen() -> None:
    """Watch the signals of this process from now on; both raise in the main thread."""
    if _pipe:
        return
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    _pipe.extend((reading, writing))
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    sys.unraisablehook = _say_unraisable
    for number in WATCHED:
        # A shell that starts a command in the background has it ignore Ctrl-C.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _raise)


def arrived() -> int | None:
    """Number of the first watched signal that came, whatever became of it."""
    if _pipe:
        with suppress(BlockingIOError):
            _came.extend(number for number in os.read(_pipe[0], 4096) if number in WATCHED)
    return _came[0] if _came else None


def check() -> None:
    """Raise KeyboardInterrupt when a signal came and yet the work goes on."""
    if arrived() is not None:
        raise KeyboardInterrupt


def ignore() -> None:
    """Be deaf from here on: this process is about to end."""
    for number in WATCHED:
        signal.signal(number, signal.SIG_IGN)


def _raise(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _say_unraisable(raised: sys.UnraisableHookArgs) -> None:
    """Print what a destructor raised, as Python does, but for an interrupt that landed in one: ``check`` tells it."""
    if raised.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(raised)
