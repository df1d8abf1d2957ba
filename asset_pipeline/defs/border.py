"""How a step fails, told once: which of Dagster's three ways to retry a failure may take, and in which words.

- A store or database that is away goes on as an exception: the op's retry policy tries the step again
  (10, 30, 70, 150 seconds, spread). Where a person waits for the answer, it is told at once instead.
- Anything else that ends a step would fail again: ``Failure(allow_retries=False)``. Documents and pictures
  that are refused are data and never come here.
- A run that is cancelled (Dagster would hand the interrupt to the retry policy, and go on working) ends at
  once; what was asked for in the web page becomes CANCELED. ``run_retries`` in dagster.yaml takes only runs whose
  process was lost, since it excludes failed steps; the nightly schedule takes what is left failed.

Messages are ours. An unexpected exception is told by its type and place, because its text may hold names or paths.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dagster as dg

from asset_pipeline.defs.abandoned import name_worker
from asset_pipeline.defs.coordinator import actor_of_run
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import PipelineError, StorageError
from asset_pipeline.evidence.actor import act_as

logger = logging.getLogger(__name__)

RETRIES = dg.RetryPolicy(max_retries=4, delay=10, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)


@contextmanager
def told_to_dagster(pipeline: Pipeline, context: dg.AssetExecutionContext | None = None) -> Iterator[None]:
    """Turn what ends the work of a step into what Dagster should do about it.

    With the ``context`` of a step: its events name who asked for the run, and the run names its process.
    """
    if context is not None:
        name_worker(context)
        if actor := actor_of_run(context.run.tags):
            act_as(actor)  # of the whole process, which is this run's: its threads record events as well
    try:
        yield
    except dg.Failure:
        raise
    except (KeyboardInterrupt, SystemExit, dg.DagsterExecutionInterruptedError) as interrupt:
        pipeline.ended_by = interrupt
        raise dg.Failure("The run was stopped. Running the month again goes on.", allow_retries=False) from None
    except StorageError as error:
        pipeline.ended_by = error
        if pipeline.attended:
            raise _failure(error) from None
        raise StorageError(error.what, error.remedy, error.reason) from None
    except PipelineError as error:
        pipeline.ended_by = error
        raise _failure(error) from None
    except Exception as error:  # the border to Dagster, which stores and shows what it is given
        pipeline.ended_by = error
        logger.debug("a step failed", exc_info=error)
        raise dg.Failure(f"Unexpected {type(error).__name__} at {_place(error)}.", allow_retries=False) from None


def _failure(error: PipelineError) -> dg.Failure:
    return dg.Failure(str(error), metadata={"what_to_do": error.remedy or "Look at the log."}, allow_retries=False)


def _place(error: BaseException) -> str:
    """File and line of ours that came last; no folder."""
    package = Path(__file__).parents[1]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(package)]
    if not ours:
        return "an unknown place"
    return f"{Path(ours[-1].filename).relative_to(package).as_posix()}:{ours[-1].lineno}"
