"""The decoder processes of `extract`, started before its command line is read.

Reading the command line and loading what checks the answers take as long as loading the engine, and both can be done
at once. What to load is a guess from the words as they stand: a wrong one costs no more than the processor's time,
because what was started for nothing ends with this process. Nothing slow is imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asset_pipeline.extraction.sandbox.line import ZygoteLine

_OFFICE_NAMES = (".docx", ".pptx", ".xlsx")
"""Endings of what is read by ``ooxml``, whatever engine is asked for. A hint for what to load: the bytes decide."""

_started: list[ZygoteLine] = []


def start(words: Sequence[str]) -> None:
    """Start them where ``words``, the arguments of the program, ask for `extract` of a document that we could read."""
    command = next((word for word in words if not word.startswith("-")), None)
    if command != "extract" or {"-h", "--help"}.intersection(words):
        return

    from asset_pipeline.extraction.sandbox.line import start_at_once

    line = start_at_once(_wanted(words))
    if line is not None:
        _started.append(line)


def taken() -> ZygoteLine | None:
    """What was started, for the one caller that ends it; None where nothing was."""
    return _started.pop() if _started else None


def _wanted(words: Sequence[str]) -> list[str]:
    """Names of the engines to load; the others load when a document asks for them."""
    if any(word.lower().endswith(_OFFICE_NAMES) for word in words):
        return ["ooxml"]
    named = [value for word, value in pairwise(words) if word == "--engine"]
    named += [word.partition("=")[2] for word in words if word.startswith("--engine=")]
    return [*named, "pdf"][:1] if any(word.lower().endswith(".pdf") for word in words) else []
