"""What a decoder process may not do: its cage, put on by itself before it opens the document.

Called once, in the forked process, by ``child``. Every limit is the kernel's, so that a decoder library
that ignores ours is stopped all the same: rlimits, a session of its own, death with its parent, no
capabilities, and where the kernel has them ``landlock`` (files) and ``seccomp`` (system calls). Where it
has them is found out once a zygote, by trying (``probe``); a process that then cannot put them on does
not read. What they cannot hold back: changing the processor's caches, using its share of time and memory.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import tempfile
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from asset_pipeline.extraction.sandbox.kernel import (
    PR_SET_NO_NEW_PRIVS,
    PR_SET_PDEATHSIG,
    check,
    drop_capabilities,
    prctl,
)
from asset_pipeline.extraction.sandbox.landlock import landlock_version, restrict_files
from asset_pipeline.extraction.sandbox.protocol import LANDLOCK, SECCOMP
from asset_pipeline.extraction.sandbox.seccomp import is_known_here, prepare, restrict_calls

OPEN_FILES = 64
# The kernel's clock counts CPU time of a busy process and of its exit; the deadline itself is wall time.
CPU_GRACE_SECONDS = 5


def die_with_parent(expected_parent: int) -> None:
    """Have the kernel end this process with its parent; ends at once where that one is gone already."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != expected_parent:
        os._exit(1)


def probe(wanted: Collection[str]) -> frozenset[str]:
    """Which of the ``wanted`` filters this kernel puts on, tried in a process that then ends; made ready for others."""
    trials: dict[str, tuple[bool, Callable[[], None]]] = {
        LANDLOCK: (landlock_version() > 0, lambda: restrict_files(None, None)),
        SECCOMP: (is_known_here(), restrict_calls),
    }
    works = frozenset(name for name, (known, put_on) in trials.items() if name in wanted and known and _works(put_on))
    if SECCOMP in works:
        prepare()
    return works


def describe_cage(filters: Collection[str]) -> str:
    """The cage in a few words for a record, such as ``landlock-7+seccomp+rlimits``."""
    named = [f"{LANDLOCK}-{landlock_version()}"] if LANDLOCK in filters else []
    return "+".join([*named, *([SECCOMP] if SECCOMP in filters else []), "rlimits"])


def confine(
    document: Path,
    out: Path,
    turns: int | None = None,
    *,
    parent: int,
    seconds: float,
    memory_bytes: int,
    file_bytes: int,
    filters: Collection[str],
) -> None:
    """Give this process a session, no descriptors but that of its ``turns``, its folder, its limits and ``filters``.

    Raises OSError where a filter that this kernel has cannot be put on.
    """
    os.setsid()
    die_with_parent(parent)
    check(prctl(PR_SET_NO_NEW_PRIVS, 1))
    _close_inherited(turns)
    os.umask(0o077)
    os.chdir(out)
    tempfile.tempdir = str(out)
    _set_limits(seconds, memory_bytes, file_bytes)
    drop_capabilities()
    if LANDLOCK in filters:
        restrict_files(document, out)
    if SECCOMP in filters:
        restrict_calls()


def _set_limits(seconds: float, memory_bytes: int, file_bytes: int) -> None:
    cpu = math.ceil(seconds) + CPU_GRACE_SECONDS
    for limit, value in (
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, 0),  # does not bind root, whom seccomp and the zygote hold
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        ceiling = resource.getrlimit(limit)[1]
        value = value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)
        resource.setrlimit(limit, (value, value))


def _works(put_on: Callable[[], None]) -> bool:
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            check(prctl(PR_SET_NO_NEW_PRIVS, 1))
            put_on()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def _close_inherited(kept: int | None) -> None:
    """Close all but the standard descriptors and ``kept``: above all the control line to the parent of the zygote."""
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only, no paths needed
        if int(name) > 2 and int(name) != kept:
            with suppress(OSError):
                os.close(int(name))
