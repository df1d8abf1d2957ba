"""Keeps a claimed unit ours while its decoder works, from a thread beside it.

Renewal is every third of the lease, so that two may fail before another worker may take over. A lost
lease is not acted on here: the fence refuses the late result when it is published.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from asset_pipeline.errors import LeaseLost, StorageError
from asset_pipeline.ledger import units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.work.clock import Clock


@contextmanager
def renewed(ledger: Ledger, claim: units.Claim, lease: timedelta, clock: Clock) -> Iterator[None]:
    """Renew ``claim`` until the block ends."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(lease.total_seconds() / 3):
            try:
                with ledger.begin() as tx:
                    units.renew_lease(tx, claim, lease, clock())
            except LeaseLost:
                return
            except StorageError:
                continue  # the database is away; the next renewal may still be in time

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
