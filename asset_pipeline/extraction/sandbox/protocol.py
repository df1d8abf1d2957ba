"""Words between the pool, the zygote and a decoder process: JSON lines, never pickles.

``Hello`` and ``Order`` go to the zygote, ``Ready`` and ``Ending`` come back. They travel over a socket
pair that only these two processes hold, so a password in a request is in no argument list and no
file. A decoder process itself has no line to anybody: it leaves an answer file (see ``answers``). Standard
library only, because a zygote is started before its parent has imported anything that is slow to load.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, Literal

Task = Literal["inspect", "extract"]

LANDLOCK, SECCOMP = "landlock", "seccomp"
"""The kernel's filters, as a hello asks for them."""


class Exit(IntEnum):
    """Exit statuses of a decoder process that ends by itself."""

    ANSWERED = 0
    OUT_OF_MEMORY = 3
    NO_ANSWER = 4
    NOT_CONFINED = 5
    NO_ROOM = 6


@dataclass(frozen=True, slots=True)
class Hello:
    """First line to a zygote: engines beside the registry's, which to import at once, which filters to use."""

    engines: dict[str, str]
    warm: list[str]
    filters: list[str]


@dataclass(frozen=True, slots=True)
class Order:
    """One decoder process to start, and what it may use. With ``turns``, a descriptor of them comes with the line."""

    number: int
    task: Task
    engine: str
    seconds: float
    memory_bytes: int
    file_bytes: int
    request: dict[str, Any]
    turns: bool = False


@dataclass(frozen=True, slots=True)
class Ready:
    """The zygote has imported what it was told to.

    ``cage`` is what this kernel holds its decoders with, ``versions`` those of the engines by name.
    """

    cage: str
    versions: dict[str, str]


@dataclass(frozen=True, slots=True)
class Ending:
    """A decoder process is gone, with its whole group. ``status`` is negative for a signal."""

    number: int
    status: int
    late: bool
    peak_address_space: int
    peak_rss_bytes: int


def to_line(word: Hello | Order | Ready | Ending) -> bytes:
    """``word`` as one line."""
    return json.dumps(asdict(word)).encode() + b"\n"
