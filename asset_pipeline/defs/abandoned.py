"""Runs of the command line whose process is gone: they are told as failed, or their month would wait for ever.

Dagster sees to its own run processes, but not to runs within a process of ours: after a kill they stay STARTED and
hold their month in the queue. A run is tagged with the process that does it, and any later process on the
same machine can tell that it is gone.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import dagster as dg

PROCESS_TAG = "asset_pipeline/process"


def this_process() -> str:
    """Names this process so that no later one with the same number is taken for it."""
    return _process(os.getpid())


def fail_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Report each run as failed whose process was on this machine and is gone; how many there were."""
    under_way = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED]
    failed = 0
    for record in instance.get_run_records(dg.RunsFilter(statuses=under_way)):
        run = record.dagster_run
        name = run.tags.get(PROCESS_TAG)
        if name and name.split(":")[0] == socket.gethostname() and not _is_alive(name):
            instance.report_run_failed(run, "The process of the run is gone. Run the month again: it goes on.")
            failed += 1
    return failed


def _is_alive(name: str) -> bool:
    return _process(int(name.split(":")[1])) == name


def _process(number: int) -> str:
    try:
        # After the name in brackets; the 22nd field of the line is when the process began.
        began = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        began = ""
    return f"{socket.gethostname()}:{number}:{began}"
