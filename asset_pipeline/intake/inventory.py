"""What lies in the inbox, held against the ledger: what is new, what still has to settle, what makes no sense.

The ledger remembers, not a cursor: each page of the listing is compared with what was recorded about its keys (one
query a page), so a lost event or a restart loses nothing. Only what changes is written, so looking often is cheap.
Taking in belongs in ``admission``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice

from asset_pipeline.errors import Refusal
from asset_pipeline.installation import Installation
from asset_pipeline.intake.deferral import Allowance, allowance_of
from asset_pipeline.intake.keys import Months, is_ignored, open_months, parse_key, recordable
from asset_pipeline.ledger.backlog import last_admissions
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.uploads import (
    OPEN,
    Sighting,
    Upload,
    UploadState,
    known_states,
    known_uploads,
    open_ids,
    record_sightings,
    supersede_vanished,
)
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import SPECIAL, Entry, Store

PAGE = 1_000

States = dict[str, tuple[str, str | None]]
"""State and reason of the uploads of one key, by tag."""


@dataclass(slots=True)
class Inventory:
    """The inbox at one moment. ``files`` counts what is there, litter left out."""

    files: int = 0
    settled: dict[str, list[Upload]] = field(default_factory=dict)
    """Per month: uploads that may be admitted now."""
    deferred: dict[str, list[Upload]] = field(default_factory=dict)
    """Per month: uploads that have settled, but whose collection has as much queued as it may have."""
    refused: dict[str, list[Upload]] = field(default_factory=dict)
    """Per month: uploads whose job was refused at the door, and which are still there."""
    waiting: list[Upload] = field(default_factory=list)
    """Uploads that have not settled."""
    rejected: list[Upload] = field(default_factory=list)
    """Uploads whose place in the inbox makes no sense."""

    news: dict[str, str] = field(default_factory=dict)
    """Per month with something to admit: a digest of what that is, the same for the same uploads."""

    def open_ids(self) -> set[str]:
        """Ids of everything here that is waiting or rejected."""
        settled = (upload for found in (self.settled, self.deferred) for some in found.values() for upload in some)
        return {upload.upload_id for upload in (*settled, *self.waiting, *self.rejected)}


def take_inventory(inst: Installation, now: datetime, month: str | None = None) -> Inventory:
    """List the inbox (of ``month`` only, when given) and record in the ledger what is seen. Admits nothing."""
    inventory = Inventory()
    months = open_months(inst.settings, now)
    settle = timedelta(seconds=inst.settings.settle_seconds)
    allowance = allowance_of(inst)
    entries = _entries(inst.inbox, month)
    while page := list(islice(entries, PAGE)):
        sightings = [_look(entry, months) for entry in page if not is_ignored(entry.key)]
        inventory.files += len(sightings)
        for upload in _record(inst.ledger, sightings, now, settle):
            _sort_in(inventory, upload, settle, allowance)
    _supersede_rest(inst.ledger, month, inventory.open_ids(), now)
    inventory.news = _news(inst.ledger, inventory)
    return inventory


def _entries(inbox: Store, month: str | None) -> Iterator[Entry]:
    if month is None:
        yield from inbox.list()
        return
    for collection in inbox.folders():
        yield from inbox.list(f"{collection}/{month}/")


def _look(entry: Entry, months: Months) -> Sighting:
    try:
        place = parse_key(entry.key, months)
    except Refusal as refusal:
        return Sighting(recordable(entry.key), entry.tag, entry.bytes, reason=refusal.reason)
    # A link could lead anywhere, a pipe never ends: only regular files are documents.
    reason = Reason.MEDIA_TYPE_NOT_ALLOWED if entry.tag == SPECIAL else None
    return Sighting(entry.key, entry.tag, entry.bytes, place.collection, place.month, place.name, reason)


def _record(ledger: Ledger, sightings: Sequence[Sighting], now: datetime, settle: timedelta) -> list[Upload]:
    """Record a page of the listing; the uploads of it that are not simply done with."""
    with ledger.read() as conn:
        states = known_states(conn, {sighting.key for sighting in sightings})
        current = [sighting for sighting in sightings if not _is_done(sighting, states.get(sighting.key, {}))]
        known = known_uploads(conn, {sighting.key for sighting in current})
    due = [
        sighting
        for sighting in current
        if _has_rival(sighting, states.get(sighting.key, {}))
        or _is_due(sighting, known.get((sighting.key, sighting.tag)), settle)
    ]
    if due:
        with ledger.begin() as tx:
            record_sightings(tx, due, now)
            known |= known_uploads(tx, {sighting.key for sighting in due})
    return [known[sighting.key, sighting.tag] for sighting in current]


def _is_done(sighting: Sighting, states: States) -> bool:
    """Whether it was taken in before, without a refusal, and nothing else of its key is open."""
    state, reason = states.get(sighting.tag, (None, None))
    done = state in (UploadState.ADMITTED, UploadState.DUPLICATE) and reason is None
    return done and not _has_rival(sighting, states)


def _has_rival(sighting: Sighting, states: States) -> bool:
    """Whether other content of the same key is still open: it is superseded by what is seen now."""
    return any(state in OPEN for tag, (state, _) in states.items() if tag != sighting.tag)


def _is_due(sighting: Sighting, row: Upload | None, settle: timedelta) -> bool:
    """Whether seeing it now changes what the ledger says."""
    if row is None or row.state is UploadState.SUPERSEDED:
        return True
    if row.state not in OPEN:
        return False
    if row.reason is not sighting.reason or row.bytes != sighting.bytes:
        return True
    return row.state is UploadState.WAITING and not row.settled(settle)


def _sort_in(inventory: Inventory, upload: Upload, settle: timedelta, allowance: Allowance) -> None:
    if upload.state is UploadState.REJECTED:
        inventory.rejected.append(upload)
    elif upload.state is UploadState.WAITING and upload.settled(settle):
        found = inventory.settled if allowance.takes(upload) else inventory.deferred
        found.setdefault(str(upload.month), []).append(upload)
    elif upload.state is UploadState.WAITING:
        inventory.waiting.append(upload)
    elif upload.state in (UploadState.ADMITTED, UploadState.DUPLICATE) and upload.reason:
        inventory.refused.setdefault(str(upload.month), []).append(upload)


def _supersede_rest(ledger: Ledger, month: str | None, present: set[str], now: datetime) -> None:
    with ledger.read() as conn:
        gone = open_ids(conn, month) - present
    if gone:
        with ledger.begin() as tx:
            supersede_vanished(tx, gone, now)


def _news(ledger: Ledger, inventory: Inventory) -> dict[str, str]:
    """A digest a month of all that has settled, deferred or not: what is worked meanwhile makes no news of the rest.

    Once something else of the same collections was taken in, the room that there was may have gone to that, and what
    was news before is news again.
    """
    admitted: dict[str, datetime] = {}
    if not inventory.deferred.keys().isdisjoint(inventory.settled):
        with ledger.read() as conn:
            admitted = last_admissions(conn)
    news = {}
    for month, found in sorted(inventory.settled.items()):
        deferred = inventory.deferred.get(month, [])
        marks = {str(admitted.get(str(upload.collection))) for upload in deferred}
        told = sorted(upload.upload_id for upload in (*found, *deferred)) + sorted(marks)
        news[month] = hashlib.sha256("\n".join(told).encode()).hexdigest()
    return news
