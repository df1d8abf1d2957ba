"""The two clocks, set at admission from the policy in force and never moved: no retry, no requeue, no newer policy.

*Archive* (``archive_until``): source, pictures, and what is made of them. The source is on this clock, not on the
working one: without it no picture could be repaired, released from quarantine or read again. *Working*
(``working_until``): what is needed only while a document is worked, which is bytes in the quarantine store; working
copies go sooner, with the janitor. Bytes in the quarantine store belong to no job, so their clock is the policy's
``working_days`` from when they were put. What is past its archive deadline is told by ``ledger.expiry``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from asset_pipeline.errors import StorageError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.expiry import past_deadline
from asset_pipeline.ledger.holds import keeps_unowned
from asset_pipeline.storage.store import Entry, Store


def bytes_past_deadline(inst: Installation, now: datetime) -> int:
    """Bytes that are there although they should be gone: 0 is the target. What a hold keeps is not among them."""
    with inst.ledger.read() as conn:
        kept = sum(row.bytes for row in past_deadline(conn, now))
    return kept + sum(entry.bytes for entry in due_in_quarantine(inst, now))


def due_in_quarantine(inst: Installation, now: datetime) -> list[Entry]:
    """Files of the quarantine store whose working time is over; none while any hold is in force."""
    with inst.ledger.read() as conn:
        if keeps_unowned(conn):
            return []
    return [entry for entry in entries(inst.quarantine) if working_deadline(inst, entry) <= now]


def working_deadline(inst: Installation, entry: Entry) -> datetime:
    """Until when a file of the quarantine store may stay."""
    return entry.modified + timedelta(days=inst.policy.retention.working_days)


def entries(store: Store, prefix: str = "") -> Iterator[Entry]:
    """What is in a store, also in one that nothing was put into yet. Raises StorageError when it is away."""
    try:
        yield from store.list(prefix)
    except StorageError:
        store.check()  # makes a folder that is not there yet, and says what is wrong with any other
        yield from store.list(prefix)
