"""What happens after an attempt: the only place that decides between done, again and never again.

Pure functions over an attempt's facts. The reasons that may be tried again are an allowlist kept with
the enumeration (``reasons``); whatever is not on it is permanent. A decoder lost twice on one unit
ends it, whatever budget is left, so that one poisonous document cannot loop (REQUIREMENTS R4.5). A store
or database that is away is no failure of a document at all and never comes here: see ``work.unit``.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from asset_pipeline.reasons import Reason, ReasonClass, is_transient, reason_class

MAX_TRIES = 4
MAX_LOST_DECODERS = 2
MAX_LOST_WORKERS = 5
"""Attempts whose whole worker vanished, without an end: the first one and four that took over from it."""

SUSPECT_AFTER = 2
"""Lost workers after which a unit is worked alone, so that what was merely near does not die with it."""

DECODER_LOST = frozenset({Reason.DECODER_CRASHED, Reason.DEADLINE_EXCEEDED, Reason.MEMORY_EXCEEDED})

FIRST_PAUSE = timedelta(seconds=5)
GROWTH = 3
LONGEST_PAUSE = timedelta(minutes=10)
"""Pauses of 5, 15, 45 and 135 seconds: four retries over some three and a half minutes."""

_NOT_THE_DOCUMENT = frozenset(
    {Reason.RETRIES_EXHAUSTED, Reason.WORKER_LOST, Reason.INTERNAL_ERROR, Reason.EXTRACTOR_CHANGED}
)
"""Permanent, yet no verdict on the document: it is kept as a dead letter that an operator can requeue."""


class Action(StrEnum):
    """What to do with a unit."""

    ACK = "ack"
    RETRY = "retry"
    QUARANTINE = "quarantine"
    DEAD_LETTER = "dead_letter"


@dataclass(frozen=True, slots=True)
class Attempt:
    """How far an attempt came, and what stopped it."""

    validated: bool
    stored: bool
    reason: Reason | None = None


def next_action(attempt: Attempt, tries: int, max_tries: int = MAX_TRIES, lost_decoders: int = 0) -> Action:
    """The next step (REQUIREMENTS R4.4). ``tries`` and ``lost_decoders`` are what was spent *before* this attempt."""
    if attempt.validated and attempt.stored:
        return Action.ACK
    reason = attempt.reason
    if reason is not None and is_transient(reason):
        poison = reason in DECODER_LOST and lost_decoders + 1 >= MAX_LOST_DECODERS
        return Action.RETRY if tries < max_tries and not poison else Action.DEAD_LETTER
    if not attempt.validated and (reason is None or is_verdict(reason)):
        return Action.QUARANTINE
    return Action.DEAD_LETTER


def is_verdict(reason: Reason) -> bool:
    """Whether ``reason`` judges the document itself, so that trying it again unchanged is pointless."""
    return reason_class(reason) is ReasonClass.PERMANENT and reason not in _NOT_THE_DOCUMENT


def final_state(reason: Reason) -> str:
    """State of a job that ends without success for ``reason``."""
    return "failed_permanently" if is_verdict(reason) else "dead_lettered"


def backoff(tries: int, hint: timedelta | None = None, jitter: Callable[[], float] = random.random) -> timedelta:
    """Pause before the next try, after ``tries`` retries. ``jitter`` returns 0 to 1.

    Exponential, a quarter up or down. A provider's ``hint`` (Retry-After) is a floor: only ever later.
    """
    if hint is not None:
        return hint * (1 + jitter() / 4)
    pause: timedelta = min(FIRST_PAUSE * GROWTH ** min(tries, 16), LONGEST_PAUSE)
    return pause * (0.75 + jitter() / 2)
