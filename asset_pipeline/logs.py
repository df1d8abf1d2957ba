"""How this program logs: one set-up, for the command line and for whoever embeds the domain.

A line holds ids, counts, durations and reasons (REQUIREMENTS R8.3). What we do not write ourselves is held to
that here: control characters never reach the log, and of an exception that a library logs its type and place
remain, because its text may quote a document, a name or a path. Dagster's own event log is ``defs``'.
"""

from __future__ import annotations

import logging
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import TextIO

FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
FOR_PEOPLE = "%(message)s"
"""On a terminal, where somebody reads along; ``ForPeople`` says before it who speaks."""
OURS = "asset_pipeline"

_Raised = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class OneLine(logging.Formatter):
    """A record as one printable line; an exception by type and place."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's wording, with the exception's own text
        whole = super().format(record)
        return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in whole)

    def formatException(self, raised: _Raised) -> str:  # noqa: N802 - the name that logging calls
        if raised[0] is None:
            return ""
        frames = traceback.extract_tb(raised[2])[-3:]
        where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
        return f"{raised[0].__name__} at {where or 'nowhere'}"


class ForPeople(OneLine):
    """A record for somebody who reads along: what is ours to tell is a note, an error of a library is named as one."""

    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.partition(".")[0] == OURS
        who = "" if ours else f" of {record.name.partition('.')[0]}"
        return f"{'Note' if ours and record.levelno < logging.ERROR else 'Error'}{who}: {super().format(record)}"


class _StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what is standard error at that moment: a progress bar takes its place, so that lines go above it."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> TextIO:
        return sys.stderr


def set_up_logging(*, debug: bool) -> None:
    """Log to standard error: with ``debug`` what is done, else our warnings and the errors of libraries."""
    handler = _StandardError()
    handler.setFormatter(ForPeople(FOR_PEOPLE) if sys.stderr.isatty() and not debug else OneLine(FORMAT))
    logging.basicConfig(level=logging.INFO if debug else logging.ERROR, handlers=[handler])
    logging.getLogger(OURS).setLevel(logging.INFO if debug else logging.WARNING)
    # Who is told to end while a connection is being closed gets an exception there, which is no news of its own.
    logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)
