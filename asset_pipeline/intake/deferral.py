"""Keeps the bulk import of one collection out of the queue beyond a cap, and says when the rest is taken.

An upload that has settled is taken while its collection has less queued and in work than the settings allow
(REQUIREMENTS R1.6); else it stays in the inbox, deferred. The uploads of a collection are taken in the order of their
keys, so that a large one is not overtaken for ever by small ones. A deferral is derived whenever somebody asks and
recorded nowhere: it ends by itself when work ends.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from asset_pipeline.installation import Installation
from asset_pipeline.ledger.backlog import Pace, paces, queued_bytes
from asset_pipeline.ledger.uploads import Upload, UploadState, list_uploads

FRESH_SECONDS = 1.0
"""How old the ledger's sums may be while a month is admitted: others admit and end work meanwhile."""


class Allowance:
    """What each collection may still have queued. ``takes`` in the order in which uploads would come in.

    ``queued`` reads what the collections have queued, once or again after ``fresh_seconds``.
    """

    def __init__(self, queued: Callable[[], Mapping[str, int]], cap: int, fresh_seconds: float = math.inf) -> None:
        self._read = queued
        self._cap = cap
        self._fresh_seconds = fresh_seconds
        self._queued: dict[str, int] = {}
        self._over: set[str] = set()
        self._until = -math.inf

    def takes(self, upload: Upload) -> bool:
        """Whether ``upload`` may come in, counted as queued if so.

        Where nothing is queued, one upload may always come in, however large it is.
        """
        if time.monotonic() >= self._until:
            self._queued = dict(self._read())
            self._until = time.monotonic() + self._fresh_seconds
        collection = str(upload.collection)
        queued = self._queued.get(collection, 0)
        if collection in self._over or (queued and queued + upload.bytes > self._cap):
            self._over.add(collection)
            return False
        self._queued[collection] = queued + upload.bytes
        return True


def allowance_of(inst: Installation, fresh_seconds: float = math.inf) -> Allowance:
    """The allowance of this moment, or as it changes while uploads are taken in."""

    def queued() -> Mapping[str, int]:
        with inst.ledger.read() as conn:
            return queued_bytes(conn)

    return Allowance(queued, inst.settings.queued_bytes, fresh_seconds)


@dataclass(frozen=True, slots=True)
class Deferral:
    """An upload that waits for its collection. ``expected_at`` is None where nothing was worked lately."""

    upload_id: str
    queued_bytes: int
    allowed_bytes: int
    bytes_before: int
    expected_at: datetime | None

    @property
    def meaning(self) -> str:
        """Why it waits, for people."""
        queued, allowed = _in_words(self.queued_bytes), _in_words(self.allowed_bytes)
        if not self.queued_bytes:
            return f"Its collection may have {allowed} queued or in work at once, and others come before it."
        return f"Its collection has {queued} queued or in work, and may have {allowed}."

    @property
    def remedy(self) -> str:
        """When it is taken, for people."""
        about = f", about {self.expected_at:%Y-%m-%d %H:%M} UTC" if self.expected_at else ""
        return f"Nothing: a later run takes it, once {_in_words(self.bytes_before)} before it are worked{about}."


def deferrals(inst: Installation, conn: Connection, now: datetime) -> dict[str, Deferral]:
    """Every upload that has settled and is deferred, by id, with when it is taken at the pace of the last hour."""
    settle = timedelta(seconds=inst.settings.settle_seconds)
    settled = [row for row in list_uploads(conn, states=[UploadState.WAITING]) if row.settled(settle)]
    if not settled:
        return {}
    return _derive(settled, queued_bytes(conn), paces(conn, now), inst.settings.queued_bytes, now)


def _derive(
    settled: Iterable[Upload], queued: dict[str, int], known: dict[str, Pace], cap: int, now: datetime
) -> dict[str, Deferral]:
    before: dict[str, int] = defaultdict(int) | queued
    allowance = Allowance(lambda: queued, cap)
    found = {}
    for upload in settled:
        collection = str(upload.collection)
        ahead = before[collection]
        before[collection] += upload.bytes
        if allowance.takes(upload):
            continue
        # What lies ahead of one that is larger than the cap has to be worked wholly.
        left = min(before[collection] - cap, ahead)
        pace = known.get(collection)
        expected = now + timedelta(seconds=pace.seconds_for(left)) if pace else None
        found[upload.upload_id] = Deferral(upload.upload_id, queued.get(collection, 0), cap, left, expected)
    return found


def _in_words(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count:,} byte{'' if count == 1 else 's'}"
