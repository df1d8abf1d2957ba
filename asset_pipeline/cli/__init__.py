"""`asset-pipeline …`: the commands, and the border at which a failure becomes one line.

Each command group is a module here and imports what it needs when it is called, so that help is there
at once. A command asks the rooms and shows the answer; what it shows is made in the rooms. Failures
that a person can act on are PipelineErrors with their own exit status; anything else is a defect.
"""

from __future__ import annotations

import signal
import sys

from asset_pipeline.cli import console
from asset_pipeline.errors import PipelineError


def main() -> None:
    """Run the command line of this process and exit."""
    from asset_pipeline.cli.app import app

    signal.signal(
        signal.SIGTERM, lambda number, _: sys.exit(128 + number)
    )  # by the way of Ctrl-C, so units are given back
    try:
        app(prog_name="asset-pipeline")
    except PipelineError as error:
        console.fail(error.what, error.remedy)
        sys.exit(error.exit_status)
    except SystemExit as ended:
        if ended.code in _INTERRUPTED:
            console.say("Interrupted; nothing is lost. Run the same command to go on.")
        raise
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:  # noqa: BLE001 - the outermost border: a defect must not spill a traceback on a user
        console.fail(f"Unexpected {type(error).__name__}.", "Run again with --debug to see where, and report it.")
        sys.exit(1)


_INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)
