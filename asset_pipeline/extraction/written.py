"""Files of an answer, as every engine writes them: whole, or it is told that there was no room.

What is in them belongs to the engines. A full disk is nobody's document's fault, so it is no ``Exception``: the borders
around a page or a picture, which turn every one into a reason, would blame the document for it.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class NoRoom(BaseException):
    """The disk on which the answer is written is full."""


def write_file(path: Path, data: bytes, *, anew: bool = False) -> None:
    """Write ``data`` to ``path``, which with ``anew`` must not be there, not as a link either.

    Raises NoRoom where the disk is full, OSError otherwise.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL | os.O_NOFOLLOW if anew else os.O_TRUNC)
    try:
        with os.fdopen(os.open(path, flags, 0o600 if anew else 0o666), "wb") as file:
            file.write(data)
    except OSError as error:
        if error.errno in _FULL:
            raise NoRoom from None
        raise
