"""What can be wrong with evidence, each with its own exit status, and in words what that means.

The numbers are part of the command line and never change.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Fault(IntEnum):
    """A way in which evidence fails; the value is the exit status of the command line."""

    BAD_SIGNATURE = 10
    GAP = 11
    CUT_TAIL = 12
    REWRITTEN = 13
    UNKNOWN_KEY = 14
    NOT_CANONICAL = 15
    BAD_CHECKPOINT = 16
    ALTERED_FILE = 17


MEANINGS = {
    Fault.BAD_SIGNATURE: "The event is not what was signed: it was altered after the fact.",
    Fault.GAP: "Numbers are missing: events were taken out.",
    Fault.CUT_TAIL: "The log ends before events that a checkpoint covers: its end was cut off.",
    Fault.REWRITTEN: "Events do not follow each other, or not as a checkpoint has them: somebody who holds a key "
    "wrote a part of the log again, or put it into another order.",
    Fault.UNKNOWN_KEY: "It is signed with a key that is not trusted, or not for this part of the log.",
    Fault.NOT_CANONICAL: "It is not in the one form in which it could have been signed: readers might take it for "
    "different things.",
    Fault.BAD_CHECKPOINT: "A checkpoint is not one of this log, or no trusted key signed it.",
    Fault.ALTERED_FILE: "A file is missing, was added, or is not the one that the log names.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: at which event (None: of no single one), and what was seen."""

    fault: Fault
    seq: int | None
    what: str


PROVES = (
    "Signatures prove that whoever holds the key wrote each event; numbers and links, that none is missing, moved "
    "or exchanged between those shown.",
    "A checkpoint proves that the events it covers were all there, in this order, when it was made: also against the "
    "holder of the key, as far as the checkpoint is kept where that holder cannot replace it.",
)
UNANCHORED = (
    "Nothing proves that the log goes no further: events after the last checkpoint could be cut off or, by the holder "
    "of the key, be written again without a trace."
)
