"""A decoder process from fork to exit: confine, read the document, leave one answer file.

The only border where any exception is caught: an engine that fails in a way it should not must say so
without its words, since an exception's text may quote the document. What went wrong is told by type
and place in our own code.
"""

from __future__ import annotations

import os
import resource
import signal
import traceback
from pathlib import Path
from typing import NoReturn

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.extraction.sandbox.answers import write_answer
from asset_pipeline.extraction.sandbox.confine import confine
from asset_pipeline.extraction.sandbox.protocol import Exit, Order, request_from_json


def become_decoder(order: Order, parent: int) -> NoReturn:
    """Carry out ``order`` in this freshly forked process and end it."""
    status = Exit.NO_ANSWER
    try:
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        request = request_from_json(order.request)
        confine(
            request.out,
            parent=parent,
            seconds=order.seconds,
            memory_bytes=order.memory_bytes,
            file_bytes=order.file_bytes,
        )
        _carry_out(order, request)
        status = Exit.ANSWERED
    except MemoryError:
        status = Exit.OUT_OF_MEMORY
    finally:
        # Never back into the zygote's loop, and no exit handlers of libraries that the zygote still uses.
        os._exit(status)


def _carry_out(order: Order, request: Request) -> None:
    try:
        engine = load_engine(order.engine)
        if order.task == "inspect":
            write_answer(request.out, inspection=engine.inspect(request))
            return
        extraction = engine.extract(request)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        write_answer(request.out, extraction=extraction.model_copy(update={"peak_rss_bytes": peak}))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the border of the process, see above
        write_answer(request.out, failure=describe(error))


def describe(error: BaseException) -> str:
    """``error`` by type and place: no message, because that may quote the document."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-3:]))
    return f"{type(error).__name__} at {where or 'nowhere'}"
