"""Names of the moments at which a worker may die, so that tests can have it die there.

Each transition of the protocol says that it is reached; nobody listens unless a test sets ``listener`` in its own
process. No setting, file or message can: a running pipeline cannot be told to fail.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class Failpoint(StrEnum):
    """Moments in the life of a unit and of a manifest, in order."""

    CLAIMED = "claimed"
    WORKPLACE_MADE = "workplace_made"
    ONCE_WRITTEN = "once_written"
    OBJECT_LINKED = "object_linked"
    UNIT_BEFORE_COMMIT = "unit_before_commit"
    UNIT_COMMITTED = "unit_committed"
    DONE_BEFORE_COMMIT = "done_before_commit"
    DONE_COMMITTED = "done_committed"
    CURRENT_WRITTEN = "current_written"
    MANIFEST_LINKED = "manifest_linked"


listener: Callable[[Failpoint], None] | None = None


def reached(point: Failpoint) -> None:
    """Tell the listener, if there is one."""
    if listener is not None:
        listener(point)
