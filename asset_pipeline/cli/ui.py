"""`ui`: Dagster's own web page over this installation, with the daemon that ticks sensors and schedules.

Replaces this process, so that signals reach Dagster itself. Nothing here imports it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import Annotated

import typer

from asset_pipeline.cli import console
from asset_pipeline.errors import UsageError


def ui(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 3000,
) -> None:
    """Serve the web page: months, runs, checks, sensors. It has no login, so keep it local. Ctrl-C ends it."""
    _check_free(host, port)

    from asset_pipeline.cli.gallery import gallery_address
    from asset_pipeline.defs.instance import prepare_home
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    with open_installation(settings):
        pass  # what is wrong with ledger, policy or settings is told here, once, and not by every tick
    os.environ["DAGSTER_HOME"] = str(prepare_home(settings).absolute())
    command = [sys.executable, "-m", "dagster", "dev", "-m", "asset_pipeline.definitions"]
    command += ["--host", host, "--port", str(port)]
    if not console.options.debug:
        # Its own warnings (a command that has a successor, cursors that begin) are no matter of this installation.
        os.environ.setdefault("PYTHONWARNINGS", "ignore")
        command += ["--log-level", "error"]
    console.say(f"Serving http://{host}:{port} in a few seconds. Ctrl-C ends it.")
    console.say(f"What you drop into {settings.store_address('inbox')} is taken within a minute or two.")
    console.say(f"Pictures to look at, once a month was run: {gallery_address(settings, '<month>')}")
    sys.stdout.flush()
    # A script that starts us in the background has us ignore Ctrl-C, and Dagster does with SIGTERM what it does with
    # that: nothing but SIGKILL would end it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execv(command[0], command)  # noqa: S606 - our own interpreter, no shell


def _check_free(host: str, port: int) -> None:
    """Dagster's own message about a taken port is a traceback."""
    try:
        with socket.create_server((host, port)):
            pass
    except OSError as error:
        raise UsageError(
            f"Port {port} of {host} cannot be used ({os.strerror(error.errno or 0)}).",
            "Choose another: make ui PORT=3001, or --port and --host.",
        ) from None
