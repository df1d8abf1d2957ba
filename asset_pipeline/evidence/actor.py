"""Who acts: a name and how sure it is. Said once by whoever starts work, and written into every event of it.

``claimed``: somebody says so (the user name of a terminal, a tag of a run). ``authenticated``: a proxy that
logs people in says so. ``system``: nobody asked; a schedule or a sensor did.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Source = Literal["claimed", "authenticated", "system"]

_UNSAFE = re.compile(r"[^A-Za-z0-9@._+-]")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Actor:
    """Who, in at most 64 characters that events may hold; others are written as ``_``."""

    name: str
    source: Source

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _UNSAFE.sub("_", self.name)[:_LONGEST] or "_")


SYSTEM = Actor("asset-pipeline", "system")

_of_process = [SYSTEM]
_of_context: ContextVar[Actor | None] = ContextVar("actor", default=None)


def act_as(actor: Actor) -> None:
    """Let ``actor`` be who acts in this whole process, threads included: for a command that one person started."""
    _of_process[0] = actor


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Let ``actor`` be who acts within the block, in this thread or task."""
    token = _of_context.set(actor)
    try:
        yield
    finally:
        _of_context.reset(token)


def current_actor() -> Actor:
    """Who acts here and now."""
    return _of_context.get() or _of_process[0]


def user_of_process() -> Actor:
    """Whoever runs this process, as the system names them: claimed, since anybody may use a terminal."""
    try:
        return Actor(getpass.getuser(), "claimed")
    except (KeyError, OSError):  # no name belongs to the user id
        return Actor(f"uid-{os.getuid()}", "claimed")
