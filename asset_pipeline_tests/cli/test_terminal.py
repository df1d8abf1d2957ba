"""What a person at a terminal reads beside the answer."""

from __future__ import annotations

import logging
import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from asset_pipeline.logs import FOR_PEOPLE, ForPeople
from asset_pipeline_tests.commands import ROOT
from asset_pipeline_tests.servers import free_ports


def on_a_terminal(place: Path, *arguments: str) -> list[str]:
    """Lines of standard error of a command whose standard error is a terminal."""
    terminal, inside = pty.openpty()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSET_PIPELINE_", "DAGSTER"))}
    running = subprocess.Popen(
        [sys.executable, "-m", "asset_pipeline.cli", *arguments],
        cwd=place,
        env=kept | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=inside,
    )
    os.close(inside)
    told = b""
    try:
        while part := os.read(terminal, 65536):
            told += part
    except OSError:
        pass  # how Linux says that nobody writes there any more
    os.close(terminal)
    assert running.wait(60) == 0
    return told.decode().splitlines()


def test_what_a_person_should_know_is_one_line_in_plain_words(place: Path) -> None:
    (note,) = on_a_terminal(place, "status", "--format", "json")
    assert note.startswith("Note: A key that signs")
    assert "asset_pipeline." not in note


def test_an_error_of_a_library_is_told_as_an_error_and_whose_it_is() -> None:
    told = ForPeople(FOR_PEOPLE)
    failed = logging.LogRecord("urllib3.connectionpool", logging.ERROR, "", 1, "no answer\x07", None, None)
    assert told.format(failed) == "Error of urllib3: no answer\N{REPLACEMENT CHARACTER}"


def test_the_web_page_can_be_ended_where_a_script_started_it_in_the_background(place: Path) -> None:
    """Dagster does with SIGTERM what it does with Ctrl-C, which a shell has such a process ignore."""
    (port,) = free_ports(1)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSET_PIPELINE_", "DAGSTER"))}
    running = subprocess.Popen(
        ["sh", "-c", f"trap '' INT; exec '{sys.executable}' -m asset_pipeline.cli ui --port {port}"],
        cwd=place,
        env=kept | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    process = Path(f"/proc/{running.pid}")
    try:
        until = time.monotonic() + 60
        while b"dagster\0dev" not in process.joinpath("cmdline").read_bytes():
            assert time.monotonic() < until, "Dagster was not started"
            time.sleep(0.05)
        (ignored,) = re.findall(r"SigIgn:\s*([0-9a-f]+)", process.joinpath("status").read_text("ascii"))
        assert not int(ignored, 16) >> (signal.SIGINT - 1) & 1
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(30)
