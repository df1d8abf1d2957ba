"""The clock of the working rooms: aware UTC now, passed on as a value wherever a time is recorded."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The current moment in UTC."""
    return datetime.now(UTC)
