"""Runs whose process is gone: they are told as failed, or their month would wait for half a day.

A code server tells Dagster when a run process of its own ended. Nobody does when the two ended together (a machine
went down, a container was killed), nor for runs within a process of the command line: such a run stays STARTED, and
holds its month and its place in the queue until it is past the longest time that a run may take. So a run is tagged
with the process that does it, and any later process on the same machine can tell that it is gone. Where each run has
a machine of its own (Kubernetes), its launcher looks after it.
"""

from __future__ import annotations

import os
import socket
from functools import lru_cache
from pathlib import Path

import dagster as dg

PROCESS_TAG = "asset_pipeline/process"
"""Set by the command line on runs within its process."""

WORKER_TAG = "asset_pipeline/worker"
"""Set by a run process on its run, with the id of the run: a run that is tried again has the tags of the first."""


def this_process() -> str:
    """Names this process so that no later one with the same number is taken for it."""
    return _process(os.getpid())


def name_worker(context: dg.AssetExecutionContext) -> None:
    """Tag the run of ``context`` with this process, unless the command line did."""
    if context.run.tags.get(PROCESS_TAG) != this_process():
        _name_worker(context.instance, context.run.run_id)


@lru_cache(maxsize=1)
def _name_worker(instance: dg.DagsterInstance, run_id: str) -> None:
    instance.add_run_tags(run_id, {WORKER_TAG: f"{this_process()}:{run_id}"})


def fail_abandoned_runs(instance: dg.DagsterInstance) -> int:
    """Report each run as failed whose process was on this machine and is gone; how many there were."""
    under_way = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.NOT_STARTED]
    failed = 0
    for record in instance.get_run_records(dg.RunsFilter(statuses=under_way)):
        run = record.dagster_run
        name = _process_of(run)
        if name and name.split(":")[0] == socket.gethostname() and not _is_alive(name):
            instance.report_run_failed(run, "The process of the run is gone. Run the month again: it goes on.")
            failed += 1
    return failed


def _process_of(run: dg.DagsterRun) -> str:
    """The process that does ``run``, where it is told; what it inherited from a run before tells nothing."""
    worker, _, run_id = run.tags.get(WORKER_TAG, "").rpartition(":")
    if run_id == run.run_id:
        return worker
    return "" if run.parent_run_id else run.tags.get(PROCESS_TAG, "")


def _is_alive(name: str) -> bool:
    return _process(int(name.split(":")[1])) == name


def _process(number: int) -> str:
    try:
        # After the name in brackets; the 22nd field of the line is when the process began.
        began = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        began = ""
    return f"{socket.gethostname()}:{number}:{began}"
