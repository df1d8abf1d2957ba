"""Keeps what was claimed ours while its decoder works, from a thread beside it, and gives it back in the end.

Renewal is every third of the lease, so that two may fail before another worker may take over. A lost
lease is not acted on here: the fence refuses the late result when it is recorded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from sqlalchemy import Connection

from asset_pipeline.errors import LeaseLost, StorageError
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.work.clock import Clock

Renewal = Callable[[Connection, datetime], None]
"""Holds something for another lease from that moment on. Raises LeaseLost."""

PATIENCE_SECONDS = (0.5, 1.0, 2.0, 4.0)
"""Pauses in which a ledger that is away may come back, before what was claimed is left to its lease."""


@contextmanager
def renewed(ledger: Ledger, renewal: Renewal, lease: timedelta, clock: Clock) -> Iterator[None]:
    """Call ``renewal``, which holds for ``lease``, again and again until the block ends."""
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(lease.total_seconds() / 3):
            try:
                with ledger.begin() as tx:
                    renewal(tx, clock())
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


def patiently(ledger: Ledger, change: Callable[[Connection], object], stopping: threading.Event | None) -> None:
    """Make ``change`` in a transaction, again after a pause where the ledger is away, unless ``stopping`` is set.

    Raises StorageError when it stays away.
    """
    for pause in (*PATIENCE_SECONDS, None):
        try:
            with ledger.begin() as tx:
                change(tx)
            return
        except StorageError:
            if pause is None or (stopping or threading.Event()).wait(pause):
                raise
