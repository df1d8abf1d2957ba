"""Dagster's own records on this machine, and running months in this process so that they end up in them.

Home is ``DAGSTER_HOME`` where that is set, else ``<home>/dagster`` with the dagster.yaml of the project. The command
line comes in here; runs asked for in the web page do not.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import dagster as dg
import yaml
from dagster._core.instance import InstanceRef

from asset_pipeline.defs.abandoned import PROCESS_TAG, fail_abandoned_runs, this_process
from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.jobs import MONTHLY_ARCHIVE
from asset_pipeline.defs.resources import Pipeline, Progress
from asset_pipeline.errors import ConfigurationError, PipelineError
from asset_pipeline.settings import Settings

_HEADER = "# Written by asset-pipeline from its own dagster.yaml. Set DAGSTER_HOME to a folder of yours for another.\n"


@dataclass(frozen=True, slots=True)
class MonthResult:
    """How the run of one month ended."""

    month: str
    success: bool
    run_id: str
    seconds: float


def prepare_home(settings: Settings) -> Path:
    """The folder that is Dagster's home, made when it is not there. Raises ConfigurationError when it cannot be."""
    if chosen := os.environ.get("DAGSTER_HOME"):
        return Path(chosen).expanduser().absolute()
    home = (settings.home / "dagster").absolute()
    try:
        home.mkdir(parents=True, exist_ok=True)
        _write_when_other(home / "dagster.yaml", _HEADER + yaml.safe_dump(_configuration(), sort_keys=False))
    except OSError as error:
        raise ConfigurationError(
            f"Dagster's home cannot be written ({error.strerror}).", "Correct ASSET_PIPELINE_HOME or set DAGSTER_HOME."
        ) from None
    return home


@contextmanager
def open_instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """Dagster's records, for runs in this process: output of steps goes to the terminal, not into files."""
    home = prepare_home(settings)
    silent = {
        "compute_logs": {
            "module": "dagster._core.storage.noop_compute_log_manager",
            "class": "NoOpComputeLogManager",
        }
    }
    with _alone(home):
        # The first one makes the tables, and two at once would fail.
        instance = dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(home), overrides=silent))
    with instance:
        yield instance


def materialize_months(
    settings: Settings,
    months: Sequence[str],
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    instance: dg.DagsterInstance | None = None,
) -> list[MonthResult]:
    """Run ``months`` one after the other in this process, recorded in ``instance`` (default: ``open_instance``).

    Raises the PipelineError that ended a run, KeyboardInterrupt when it was interrupted.
    """
    pipeline = Pipeline(settings, workers=workers, progress=progress, attended=True)
    job = build_defs(pipeline=pipeline).resolve_job_def(MONTHLY_ARCHIVE)
    with nullcontext(instance) if instance else open_instance(settings) as records:
        fail_abandoned_runs(records)
        return [_run(job, month, pipeline, records) for month in months]


def _run(job: dg.JobDefinition, month: str, pipeline: Pipeline, instance: dg.DagsterInstance) -> MonthResult:
    began = time.monotonic()
    level = "INFO" if logging.getLogger().isEnabledFor(logging.INFO) else "CRITICAL"
    pipeline.ended_by = None
    result = job.execute_in_process(
        partition_key=month,
        instance=instance,
        run_config={"loggers": {"console": {"config": {"log_level": level}}}},
        tags={PROCESS_TAG: this_process(), "dagster/max_retries": "0"},
        raise_on_error=False,
    )
    if not result.success:
        raise _reason(pipeline.ended_by, month, result.run_id)
    return MonthResult(month, result.success, result.run_id, time.monotonic() - began)


def _reason(ended_by: BaseException | None, month: str, run_id: str) -> BaseException:
    if isinstance(ended_by, (PipelineError, KeyboardInterrupt, SystemExit)):
        return ended_by
    if isinstance(ended_by, dg.DagsterExecutionInterruptedError):
        return KeyboardInterrupt()
    if ended_by is not None:
        return ended_by
    return PipelineError(f"The run of {month} failed.", f"Look at run {run_id} with `asset-pipeline ui`.")


def _configuration() -> dict[str, object]:
    """The project's dagster.yaml without its folders: then they are below Dagster's home, at the same places."""
    configuration: dict[str, object] = yaml.safe_load(
        (files("asset_pipeline.defs") / "dagster.yaml").read_text("utf-8")
    )
    for name in ("storage", "local_artifact_storage", "compute_logs"):
        configuration.pop(name)
    return configuration


def _write_when_other(path: Path, text: str) -> None:
    try:
        if path.read_text("utf-8") == text:
            return
    except FileNotFoundError:
        pass
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text, "utf-8")
    fresh.replace(path)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """One process at a time; the system lets go of the lock when a process dies."""
    with (home / ".opening").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
