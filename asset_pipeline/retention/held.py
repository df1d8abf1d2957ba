"""Working directories and the lock that says that somebody works in one.

A directory's name is random and says nothing, so its lease is a lock on a file in it: whoever works there holds it
(``flock``), and the kernel lets go of it when that process ends, however it ends. Any process on any machine that
sees the folder can tell a directory in use from one that was left behind, without asking who made it. The one
consequence to know: a process that is stopped but alive still holds its directory.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HELD = "held"
"""Name of the locked file in each working directory."""

NAME = re.compile(r"[0-9a-f]{32}")
"""What names of working directories look like; anything else in the folder is not ours."""

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def holding(place: Path) -> Iterator[None]:
    """Hold the new directory ``place``. Raises OSError when its file cannot be made."""
    descriptor = os.open(place / HELD, _OPEN | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def taking(place: Path) -> Iterator[bool]:
    """Take over ``place`` until the block ends: True when nobody holds it. One that is gone is nobody's."""
    try:
        descriptor = os.open(place / HELD, _OPEN)
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)
