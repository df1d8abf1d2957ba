"""The kernel's own interface, for what Python has no word for: raw system calls, prctl, capabilities.

Only that: what is asked of the kernel belongs in ``landlock``, ``seccomp`` and ``confine``.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

_LIBC = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG = 1
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_CAPABILITY_VERSION = 0x20080522
# Reading a document that its owner keeps to himself; where to look is limited by Landlock.
_CAP_DAC_READ_SEARCH = 1 << 2


def syscall(number: int, *arguments: Any) -> int:
    """The raw result; -1 for an error, which ``check`` raises."""
    return int(_LIBC.syscall(ctypes.c_long(number), *(_wide(argument) for argument in arguments)))


def prctl(option: int, *arguments: Any) -> int:
    """The raw result of prctl, with unused arguments zero."""
    filled = (*arguments, *(0,) * (4 - len(arguments)))
    return int(_LIBC.prctl(ctypes.c_int(option), *(_wide(argument) for argument in filled)))


def check(result: int) -> int:
    """``result`` of a call. Raises OSError where it failed."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Capabilities(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities() -> None:
    """Give up whatever makes root more than its user number, but for reading a file that is given."""
    header = _Header(version=_CAPABILITY_VERSION, pid=0)
    for kept in (_CAP_DAC_READ_SEARCH, 0):  # keeping it fails for whoever does not have it
        sets = (_Capabilities * 2)(_Capabilities(kept, kept, 0))
        if _LIBC.capset(ctypes.byref(header), ctypes.byref(sets)) == 0:
            return


def _wide(argument: Any) -> Any:
    """Numbers as the kernel reads them: ctypes would pass the lower half only."""
    return ctypes.c_long(argument) if isinstance(argument, int) else argument
