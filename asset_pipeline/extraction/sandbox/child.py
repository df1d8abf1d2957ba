"""A decoder process from fork to exit: confine, read the document, leave one answer file.

The only border where any exception is caught: an engine that fails in a way it should not must say so
without its words, since an exception's text may quote the document. What went wrong is told by type
and place in our own code.
"""

from __future__ import annotations

import errno
import os
import signal
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NoReturn

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.extraction.sandbox.answers import write_answer
from asset_pipeline.extraction.sandbox.confine import confine
from asset_pipeline.extraction.sandbox.protocol import Exit, Order, Task
from asset_pipeline.extraction.written import NoRoom


def become_decoder(order: Order, request: Request, parent: int, filters: Collection[str]) -> NoReturn:
    """Carry out ``order`` for ``request`` in this freshly forked process, caged by ``filters``, and end it."""
    status = Exit.NOT_CONFINED
    try:
        for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        confine(
            request.document,
            request.out,
            request.turns.descriptor if request.turns else None,
            parent=parent,
            seconds=order.seconds,
            memory_bytes=order.memory_bytes,
            file_bytes=order.file_bytes,
            filters=filters,
        )
        status = Exit.NO_ANSWER
        carry_out(order.task, order.engine, request)
        status = Exit.ANSWERED
    except MemoryError:
        status = Exit.OUT_OF_MEMORY
    except NoRoom:
        status = Exit.NO_ROOM
    finally:
        # Never back into the zygote's loop, and no exit handlers of libraries that the zygote still uses.
        os._exit(status)


def carry_out(task: Task, name: str, request: Request, engines: Mapping[str, str] | None = None) -> None:
    """Have the engine ``name`` (of ``engines``, else of the registry) do ``task`` and leave its answer file.

    Raises MemoryError and NoRoom alone.
    """
    try:
        engine = load_engine(name, engines)
        if task == "inspect":
            write_answer(request.out, inspection=engine.inspect(request))
        else:
            write_answer(request.out, extraction=engine.extract(request))
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 - the border of the process, see above
        too_large = isinstance(error, OSError) and error.errno == errno.EFBIG
        write_answer(request.out, failure=describe(error), file_too_large=too_large)


def describe(error: BaseException) -> str:
    """``error`` by type and place: no message, because that may quote the document."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-3:]))
    return f"{type(error).__name__} at {where or 'nowhere'}"
