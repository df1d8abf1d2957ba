"""`asset-pipeline …`: the commands, and the door, which listens for Ctrl-C before anything else is loaded.

Each command group is a module here and imports what it needs when it is called, so that help is there
at once. A command asks the rooms and shows the answer; what it shows is made in the rooms. How a failure is told
belongs in ``border``. Nothing else is imported up here: until ``interrupts`` listens, Python itself answers
Ctrl-C, with a traceback.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

from asset_pipeline.cli import interrupts


def main() -> None:
    """Run the command line of this process and exit."""
    if sys.stdout is None:
        from asset_pipeline.cli import console

        # Before any work: whatever is opened first would become standard output.
        console.fail("Standard output cannot be written: it is closed.", "Send it to a file, a pipe or /dev/null.")
        sys.exit(1)
    status: int | str | None = 1
    try:
        interrupts.listen()
        from asset_pipeline.cli import border

        status = border.run()
    except KeyboardInterrupt:
        pass
    except Exception:
        # One that lands while a class is made comes out of it as a RuntimeError.
        if interrupts.arrived() is None:
            raise
    # Told by the kernel, not by the exception: that may have been swallowed, or have become another one.
    if number := interrupts.arrived():
        _leave_interrupted(number)
    gc.freeze()  # looking through all modules for garbage, only to end, takes longer than many a command
    sys.exit(status)


def _leave_interrupted(number: int) -> NoReturn:
    """End at once: what is lost by that was given back before, and another Ctrl-C must not end in a traceback."""
    interrupts.ignore()
    from asset_pipeline.cli import console

    console.say("Interrupted; nothing is lost. Run the same command to go on.")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(128 + number)
