"""Who gives a command: the user name of this process, which is a claim and is recorded as one."""

from __future__ import annotations

import getpass


def act_as_claimed() -> None:
    """Let every event of this command name the person who gives it."""
    from asset_pipeline.evidence.actor import Actor, act_as

    try:
        name = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number without a name
        name = "unknown"
    act_as(Actor(name, "claimed"))
