"""Waits for one of the slots that all machines share, so that many workers do not overrun one store.

Without the setting there is no cap and no cost. A store that is overrun all the same says so (503), and the work that
it refused is given back: see ``unit``.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta

from sqlalchemy import Connection

from asset_pipeline.errors import LeaseLost
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.identity import new_id
from asset_pipeline.ledger.slots import hold_slot, take_slot
from asset_pipeline.work.clock import Clock
from asset_pipeline.work.lease import patiently, renewed

STORES = "stores"
PAUSE_SECONDS = 0.2
"""Mean pause between two looks for a free slot."""


@contextmanager
def store_slot(inst: Installation, stopping: threading.Event | None, clock: Clock) -> Iterator[None]:
    """Hold one of the slots of the stores until the block ends, where the settings cap them.

    Told to stop, it waits for none: the block is about to be given up.
    """
    count = inst.settings.store_slots
    if not count:
        yield
        return
    lease = timedelta(seconds=inst.settings.lease_seconds)
    holder, stopped = new_id(), stopping or threading.Event()
    while True:
        with inst.ledger.begin() as tx:
            slot = take_slot(tx, STORES, count, holder, clock() + lease, clock())
        if slot is not None:
            break
        if stopped.wait(random.uniform(0, 2 * PAUSE_SECONDS)):  # noqa: S311 - so that not all look at once
            yield
            return

    def hold(tx: Connection, now: datetime) -> None:
        hold_slot(tx, STORES, slot, holder, now + lease)

    try:
        with renewed(inst.ledger, hold, lease, clock):
            yield
    finally:
        with suppress(LeaseLost):
            patiently(inst.ledger, lambda tx: hold_slot(tx, STORES, slot, holder, None), stopped)
