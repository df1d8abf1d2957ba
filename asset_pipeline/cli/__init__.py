"""`asset-pipeline …`: the commands, and the border at which a failure becomes one line.

Each command group is a module here and imports what it needs when it is called, so that help is there
at once. A command asks the rooms and shows the answer; what it shows is made in the rooms. Failures
that a person can act on are PipelineErrors with their own exit status; anything else is a defect.
"""

from __future__ import annotations

import gc
import os
import sys
from contextlib import suppress
from typing import NoReturn

from asset_pipeline.cli import ahead, console, interrupts, output
from asset_pipeline.errors import PipelineError


def main() -> None:
    """Run the command line of this process and exit."""
    if sys.stdout is None:
        # Before any work: whatever is opened first would become standard output.
        console.fail("Standard output cannot be written: it is closed.", "Send it to a file, a pipe or /dev/null.")
        sys.exit(1)
    output.watch()
    try:
        interrupts.listen()
        ahead.start(sys.argv[1:])
        status = _run()
    except KeyboardInterrupt:
        status = 1
    # Told by the kernel, not by the exception: that may have been swallowed, or have become another one.
    if number := interrupts.arrived():
        _leave_interrupted(number)
    gc.freeze()  # looking through all modules for garbage, only to end, takes longer than many a command
    sys.exit(status)


def _run() -> int | str | None:
    """Run the command; the exit status."""
    try:
        from asset_pipeline.cli.app import app

        try:
            app(prog_name="asset-pipeline")
        except SystemExit as ended:
            # What is still held back is written now, while somebody can be told that it was not.
            sys.stdout.flush()
            return ended.code
    except PipelineError as error:
        if interrupts.arrived() is None:
            console.fail(error.what, error.remedy)
        return error.exit_status
    except BrokenPipeError:
        output.give_up()
        return 1
    except Exception as error:  # noqa: BLE001 - the outermost border: a defect must not spill a traceback on a user
        if why := output.failure():
            output.give_up()
            console.fail(f"Standard output cannot be written: {why}.", "Send it where there is room for it.")
        elif interrupts.arrived() is None:
            console.fail(f"Unexpected {type(error).__name__}.", "Run again with --debug to see where, and report it.")
        return 1
    return 0


def _leave_interrupted(number: int) -> NoReturn:
    """End at once: what is lost by that was given back before, and another Ctrl-C must not end in a traceback."""
    interrupts.ignore()
    console.say("Interrupted; nothing is lost. Run the same command to go on.")
    with suppress(BrokenPipeError):
        sys.stdout.flush()
    os._exit(128 + number)
