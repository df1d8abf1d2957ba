"""What a decoder process may not do: limits set by itself before it opens the document.

Called once, in the forked process, by ``child``. Limits are the kernel's (rlimits, a session of its
own, death with its parent), so that a decoder library that ignores ours is stopped all the same.
Filters on files and system calls belong here too, as further steps of ``confine``.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_LIBC = ctypes.CDLL(None, use_errno=True)

OPEN_FILES = 64
# The kernel's clock counts CPU time of a busy process and of its exit; the deadline itself is wall time.
CPU_GRACE_SECONDS = 5


def die_with_parent(expected_parent: int) -> None:
    """Have the kernel end this process with its parent; ends at once where that one is gone already."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != expected_parent:
        os._exit(1)


def confine(out: Path, *, parent: int, seconds: float, memory_bytes: int, file_bytes: int) -> None:
    """Give this process a session, an empty set of descriptors, its folder and its limits."""
    os.setsid()
    die_with_parent(parent)
    _LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _close_inherited()
    os.umask(0o077)
    os.chdir(out)
    tempfile.tempdir = str(out)
    cpu = math.ceil(seconds) + CPU_GRACE_SECONDS
    for limit, value in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        ceiling = resource.getrlimit(limit)[1]
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(limit, (value, value))


def _close_inherited() -> None:
    """Close all but the standard descriptors, the control line to the parent of the zygote above all."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only, no paths needed
        if int(name) > 2:
            with suppress(OSError):
                os.close(int(name))
