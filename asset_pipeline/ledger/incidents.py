"""An integrity failure that must be remembered although its transaction is undone.

``Ledger.begin`` rolls back first and then lets the incident record itself in a transaction of its own,
so that nothing it contradicts is changed and yet it cannot go unnoticed.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection

from asset_pipeline.errors import IntegrityError
from asset_pipeline.reasons import Reason


class Incident(IntegrityError):
    """An IntegrityError with what is to be recorded about it."""

    def __init__(self, what: str, remedy: str, reason: Reason, record: Callable[[Connection], None]) -> None:
        super().__init__(what, remedy, reason)
        self.record = record
