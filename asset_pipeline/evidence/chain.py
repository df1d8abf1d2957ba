"""What an event says, and how it is tied to the one before.

One flat object: who (``actor``, ``actor_source``), what (``type``, ``month``, ``job_id``, ids, counts and reasons of
its kind), by which rules and code (``policy_digest``, ``code_version``, ``extractor_version`` where there is one), when
(``at``, as context), and its place: ``seq``, which has no gaps, and ``prev``, the link of the event before. The
published shape is ``event.schema.json`` beside this module; the kinds are in ``types``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from asset_pipeline import __version__
from asset_pipeline.evidence import canonical, dsse
from asset_pipeline.evidence.actor import Actor
from asset_pipeline.evidence.dsse import Envelope
from asset_pipeline.evidence.keys import Signer

SCHEMA = "asset-pipeline/event/1"
EVENT = "application/vnd.asset-pipeline.event+json"
"""Type of the payload of an event's envelope."""

GENESIS = bytes(32)
"""What the first event of a log names as the one before."""

CODE_VERSION = f"asset-pipeline/{__version__}"

_TYPE = re.compile(r"[a-z][a-z_]{0,47}")
_CODE = re.compile(r"[\x21-\x7e]{0,512}")
_OURS = frozenset({"schema", "seq", "prev", "type", "at", "month", "job_id", "actor", "actor_source", "code_version"})


@dataclass(frozen=True, slots=True)
class Event:
    """What happened, before it has its place in a log. ``facts`` are ids, counts, digests and reason codes."""

    type: str
    at: datetime
    month: str | None = None
    job_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    actor: Actor | None = None

    def __post_init__(self) -> None:
        if not _TYPE.fullmatch(self.type):
            raise ValueError("an event type is lower-case words joined by underscores")
        if _OURS & set(self.facts):
            raise ValueError("an event's facts cannot say what the log says of every event")
        _check(self.facts)


def seal(
    event: Event, seq: int, prev: bytes, signers: Sequence[Signer], actor: Actor, policy_digest: str | None
) -> Envelope:
    """``event`` at its place, signed. ``actor`` and ``policy_digest`` hold where the event does not say."""
    who = event.actor or actor
    body: dict[str, Any] = {
        "correlation_id": None,
        "policy_digest": policy_digest,
        **event.facts,
        "schema": SCHEMA,
        "seq": seq,
        "prev": prev.hex(),
        "type": event.type,
        "at": moment(event.at),
        "month": event.month,
        "job_id": event.job_id,
        "actor": who.name,
        "actor_source": who.source,
        "code_version": CODE_VERSION,
    }
    return dsse.sign(EVENT, canonical.dumps(body), signers)


def moment(value: datetime) -> str:
    """A time as events write it: UTC, in microseconds."""
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _check(value: Any) -> None:
    """Refuse what could be a text of a document, a name or a path with spaces."""
    match value:
        case None | bool() | int() | float():
            return
        case str():
            if not _CODE.fullmatch(value):
                raise ValueError("an event holds ids, counts, digests and reason codes only")
        case Mapping():
            for key, part in value.items():
                _check(key)
                _check(part)
        case list() | tuple():
            for part in value:
                _check(part)
        case _:
            raise ValueError(f"an event cannot hold a {type(value).__name__}")
