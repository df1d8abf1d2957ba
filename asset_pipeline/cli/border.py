"""The border at which a failure of a command becomes one line and an exit status.

Failures that a person can act on are PipelineErrors with their own exit status; anything else is a defect. What
becomes of an interrupt belongs in the package's ``main``, which was listening before this was loaded.
"""

from __future__ import annotations

import sys

from asset_pipeline.cli import ahead, console, interrupts, output
from asset_pipeline.errors import PipelineError


def run() -> int | str | None:
    """Run the command that the arguments of this process name; the exit status."""
    try:
        output.watch()
        ahead.start(sys.argv[1:])
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
            why = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
            console.fail(
                f"Unexpected {type(error).__name__}{why}.", "Run again with --debug to see where, and report it."
            )
        return 1
    return 0
