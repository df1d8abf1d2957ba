"""The one partition there is: the report month, as ``2026-10``, the current month included.

Never a partition a document: Dagster's event log would grow with the archive. Which months take
documents is decided by ``intake.keys.open_months``; this is the same range as Dagster needs it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from asset_pipeline.intake.keys import open_months
from asset_pipeline.settings import Settings

FORMAT = "%Y-%m"


def monthly_partitions(settings: Settings) -> dg.MonthlyPartitionsDefinition:
    """Months from the first one of ``settings`` to the current one. ConfigurationError for an unknown time zone."""
    open_months(settings, datetime.now(ZoneInfo("UTC")))
    return dg.MonthlyPartitionsDefinition(
        start_date=settings.first_month, fmt=FORMAT, timezone=settings.timezone, end_offset=1
    )


def month_before(moment: datetime, timezone: str) -> str:
    """The month before the one in which ``moment`` lies, where months begin in ``timezone``."""
    first = moment.astimezone(ZoneInfo(timezone)).replace(day=1)
    return (first - timedelta(days=1)).strftime(FORMAT)
