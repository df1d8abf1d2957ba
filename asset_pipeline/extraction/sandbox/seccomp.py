"""Which system calls a decoder process may make, held by the kernel's seccomp: an allow-list.

An allow-list, because the kernel grows calls faster than a deny-list is kept, and because reading
memory and files needs few of them: no socket, no program, no process, no session, no mount, no
metadata of files, no raising of its own limits. What is not on the list fails as if the kernel did not
have it (ENOSYS), so that libraries take their older way instead of dying. Calls of another
architecture's numbering end the process.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from asset_pipeline.extraction.sandbox.kernel import PR_SET_SECCOMP, check, prctl

# By machine: the kernel's name of the architecture, and which number of the table below is its own.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32 = 0x40000000

# fmt: off
ALLOWED: dict[str, tuple[int | None, int | None]] = {
    "read": (0, 63), "write": (1, 64), "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67),
    "pwrite64": (18, 68), "open": (2, None), "openat": (257, 56), "creat": (85, None), "close": (3, 57),
    "close_range": (436, 436), "lseek": (8, 62), "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24),
    "pipe": (22, None), "pipe2": (293, 59), "flock": (73, 32), "fsync": (74, 82),
    "fdatasync": (75, 83), "ftruncate": (77, 46), "truncate": (76, 45), "fallocate": (285, 47),
    "fadvise64": (221, 223), "sendfile": (40, 71), "copy_file_range": (326, 285), "select": (23, None),
    "pselect6": (270, 72), "poll": (7, None), "ppoll": (271, 73), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "statfs": (137, 43), "fstatfs": (138, 44),
    "access": (21, None), "faccessat": (269, 48), "faccessat2": (439, 439), "readlink": (89, None),
    "readlinkat": (267, 78), "getcwd": (79, 17), "chdir": (80, 49), "getdents": (78, None), "getdents64": (217, 61),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "unlink": (87, None), "unlinkat": (263, 35),
    "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276), "umask": (95, 166), "brk": (12, 214),
    "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226), "madvise": (28, 233),
    "msync": (26, 227), "mincore": (27, 232), "membarrier": (324, 283), "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "sigaltstack": (131, 132),
    "restart_syscall": (219, 128), "futex": (202, 98), "set_robust_list": (273, 99), "rseq": (334, 293),
    "sched_yield": (24, 124), "sched_getaffinity": (204, 123), "exit": (60, 93), "exit_group": (231, 94),
    "arch_prctl": (158, None), "nanosleep": (35, 101), "clock_nanosleep": (230, 115), "clock_gettime": (228, 113),
    "clock_getres": (229, 114), "gettimeofday": (96, 169), "time": (201, None), "times": (100, 153),
    "alarm": (37, None), "getitimer": (36, 102), "setitimer": (38, 103), "getpid": (39, 172), "getppid": (110, 173),
    "gettid": (186, 178), "getpgrp": (111, None), "getpgid": (121, 155), "getsid": (124, 156), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getrlimit": (97, 163),
    "getrusage": (98, 165), "sysinfo": (99, 179), "uname": (63, 160), "getrandom": (318, 278),
}
# fmt: on
"""System calls that need no look at their arguments: number on x86_64 and on aarch64 (None: not there)."""


@dataclass(frozen=True, slots=True)
class _Argument:
    """What one argument of a call must be: one of ``values``, or, with ``has``, holding all those bits."""

    index: int
    values: tuple[int, ...]
    has: bool = False


@dataclass(frozen=True, slots=True)
class _Call:
    """A call, by its number on both machines, allowed only with one argument as given; else ``error``."""

    numbers: tuple[int | None, int | None]
    argument: _Argument
    error: int


_CLONE_THREAD = 0x10000
_TCGETS, _FIOCLEX, _FIONCLEX = 0x5401, 0x5451, 0x5450

# What a descriptor is and locks of files, by the same numbers on both machines. Not who is told of what comes over it
# (F_SETOWN, F_SETSIG): that is a way to have the kernel end another process.
_FCNTL = (
    *(fcntl.F_DUPFD, fcntl.F_DUPFD_CLOEXEC, fcntl.F_GETFD, fcntl.F_SETFD, fcntl.F_GETFL, fcntl.F_SETFL),
    *(fcntl.F_GETLK, fcntl.F_SETLK, fcntl.F_SETLKW),
)

_CONDITIONAL = (
    # A thread of its own, never a process. clone3 hides its flags from a filter: glibc then takes clone.
    _Call((56, 220), _Argument(0, (_CLONE_THREAD,), has=True), errno.EPERM),
    _Call((302, 261), _Argument(2, (0,)), errno.EPERM),  # prlimit64: reading limits, not setting them
    _Call((16, 29), _Argument(1, (_TCGETS, _FIOCLEX, _FIONCLEX)), errno.ENOTTY),  # ioctl
    _Call((72, 25), _Argument(1, _FCNTL), errno.EINVAL),  # fcntl
)

# Filter code: see linux/filter.h and linux/seccomp.h.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_MODE_FILTER = 2

_Line = tuple[int, int, int, int]
_LINE = struct.Struct("=HBBI")
_REFUSE: _Line = (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)


def is_known_here() -> bool:
    """Whether the numbers of this machine's system calls are in the table."""
    return os.uname().machine in _ARCHITECTURES


def restrict_calls() -> None:
    """Leave this process the calls of the list. Cannot be undone; no-new-privileges must be set. Raises OSError."""
    machine = os.uname().machine
    own = [line for call in _own_calls(os.getpid()) for line in _conditional(call, machine)]
    code = _shared_code(machine) + _packed([*own, _REFUSE])
    memory = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a length and, after padding, an address.
    head = ctypes.create_string_buffer(struct.pack("@HP", len(code) // _LINE.size, ctypes.addressof(memory)))
    check(prctl(PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(head)))


def prepare() -> None:
    """Write down what is the same in every process: once, before it is forked."""
    _shared_code(os.uname().machine)


def _own_calls(pid: int) -> list[_Call]:
    """Allowed only where their first argument is this process."""
    me = _Argument(0, (pid,))
    return [_Call((62, 129), me, errno.EPERM), _Call((234, 131), me, errno.EPERM)]  # kill, tgkill


@cache
def _shared_code(machine: str) -> bytes:
    """The filter of all processes, without its end: what it does not answer goes on to the lines of one process."""
    architecture, column = _ARCHITECTURES[machine]
    lines: list[_Line] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _KILL_PROCESS)]
    for call in _CONDITIONAL:
        lines += _conditional(call, machine)
    for numbers in ALLOWED.values():
        number = numbers[column]
        if number is not None:
            lines += _if_call(number, [(_RETURN, 0, 0, _ALLOW)])
    return _packed(lines)


def _conditional(call: _Call, machine: str) -> Iterable[_Line]:
    number = call.numbers[_ARCHITECTURES[machine][1]]
    return [] if number is None else _if_call(number, _check_argument(call.argument, call.error))


def _packed(lines: Iterable[_Line]) -> bytes:
    return b"".join(_LINE.pack(*line) for line in lines)


def _if_call(number: int, then: list[_Line]) -> Iterable[_Line]:
    return [(_EQUAL, 0, len(then), number), *then]


def _check_argument(argument: _Argument, error: int) -> list[_Line]:
    low = _ARGUMENTS + 8 * argument.index
    test = _ANY_BIT if argument.has else _EQUAL
    values: list[_Line] = []
    for value in argument.values:
        values += [(test, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    refuse = (_RETURN, 0, 0, _ERRNO | error)
    # The upper half must be zero: both kernels of the table keep the lower half first.
    return [(_LOAD, 0, 0, low + 4), (_EQUAL, 1, 0, 0), refuse, (_LOAD, 0, 0, low), *values, refuse]
