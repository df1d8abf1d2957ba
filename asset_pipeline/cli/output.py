"""Standard output that remembers why it could not be written.

A full disk under the answer raises the same OSError as one under the archive, and by the time it reaches the border of
the command line nobody could tell them apart. What is written is made in ``console``.
"""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_failures: list[str] = []


class _Watched(io.FileIO):
    def write(self, body: ReadableBuffer, /) -> int:
        try:
            return super().write(body)
        except BrokenPipeError:
            raise  # the reader has had enough: no failure to tell
        except OSError as error:
            _failures.append(error.strerror or type(error).__name__)
            raise


def watch() -> None:
    """Write the standard output of this process through here from now on; one that somebody put in its place stays."""
    was: TextIO = sys.stdout
    ours: object = sys.__stdout__
    if was is not ours:
        return
    watched = io.BufferedWriter(_Watched(was.fileno(), "w", closefd=False))
    sys.stdout = io.TextIOWrapper(watched, encoding=was.encoding, errors=was.errors, line_buffering=was.isatty())


def failure() -> str | None:
    """Why something could not be written, or None."""
    return _failures[0] if _failures else None


def give_up() -> None:
    """Drop what is still held back: at the end of the process it would fail once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
