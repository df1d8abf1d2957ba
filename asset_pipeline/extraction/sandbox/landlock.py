"""Which files a decoder process may touch, held by the kernel's Landlock: its document and its own folder.

A ruleset names what is handled, and whatever is handled and not allowed by a rule is denied: all else
on disk, TCP, abstract sockets and signals to others, as far as the kernel knows them. Landlock does not
handle the metadata of files (stat, chmod, chown, times): changing these is kept away by ``seccomp``;
that a path exists, and its size, can be seen. Everything lazy must be loaded before (``warm``).
"""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from pathlib import Path

from asset_pipeline.extraction.sandbox.kernel import check, syscall

# The same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REGULAR, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
# By version: how many kinds of access to files the kernel can handle.
_FILE_BITS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_SINCE, _NET = 4, 0b11  # bind and connect of TCP
_SCOPE_SINCE, _SCOPE = 6, 0b11  # abstract unix sockets, signals

_OWN_FOLDER = _WRITE_FILE | _READ_FILE | _READ_DIR | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REGULAR | _TRUNCATE


# qpdf takes its random numbers from here when it opens an encrypted document, and not from the system call.
_RANDOM = Path("/dev/urandom")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scope", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def landlock_version() -> int:
    """The kernel's Landlock version; 0 where there is none or it is switched off."""
    return max(0, syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))


def restrict_files(document: Path | None, out: Path | None) -> None:
    """Leave this process ``document`` and random numbers to read, ``out`` to work in, no other file. Raises OSError.

    Cannot be undone. Needs no-new-privileges to be set. None stands for nothing at all.
    """
    version = landlock_version()
    files = (1 << _FILE_BITS[min(version, max(_FILE_BITS))]) - 1
    rules = _Ruleset(
        files=files, net=_NET if version >= _NET_SINCE else 0, scope=_SCOPE if version >= _SCOPE_SINCE else 0
    )
    # A kernel takes a longer structure only when it knows it or the rest is zero, which it then is.
    ruleset = check(syscall(_CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0))
    try:
        if out is not None:
            _allow(ruleset, out, _OWN_FOLDER & files)
        for readable in (document, _RANDOM):
            if readable is not None:
                with suppress(FileNotFoundError):  # the engine meets it again, and answers
                    _allow(ruleset, readable, _READ_FILE)
        check(syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, access: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Beneath(allowed=access, parent=descriptor)
        check(syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
    finally:
        os.close(descriptor)
