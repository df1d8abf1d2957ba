"""`metrics`: every measure of the installation in one place, for people, programs and Prometheus."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Sheet
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.history.measures import Measure

COLUMNS = ("measure", "of", "value", "unit", "limit", "breach", "meaning")


class MetricsFormat(StrEnum):
    """How it is answered."""

    TABLE = "table"
    JSON = "json"
    PROMETHEUS = "prometheus"


def metrics(
    month: Annotated[str | None, typer.Argument(help="One month, as YYYY-MM; default the last 30 days.")] = None,
    format_: Annotated[MetricsFormat, typer.Option("--format", help="How to answer.")] = MetricsFormat.TABLE,
) -> None:
    """Show how the work goes: times of each stage, queue, retries, what is past its deadline, and what is too slow."""
    if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise UsageError(f"{console.plain(month)} is not a month.", "Write it as YYYY-MM.")

    from asset_pipeline.history.measures import all_measures
    from asset_pipeline.history.prometheus import exposition
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    now = datetime.now(UTC)
    with open_installation(load_settings()) as inst:
        found = all_measures(inst, now, month)
    if format_ is MetricsFormat.PROMETHEUS:
        sys.stdout.write(exposition(found))
    elif format_ is MetricsFormat.JSON:
        console.show_json({"at": now.isoformat(), "month": month, "measures": [_told(row) for row in found]})
    else:
        console.show_tables([Sheet("Measures", COLUMNS, [_row(row) for row in found])])


def _told(measure: Measure) -> dict[str, Any]:
    names = ("name", "value", "unit", "limit", "breach", "labels", "meaning")
    return {name: getattr(measure, name) for name in names}


def _row(measure: Measure) -> dict[str, Any]:
    return {
        "measure": measure.name.replace("_", " "),
        "of": ", ".join(measure.labels.values()),
        "value": _short(measure.value),
        "unit": measure.unit,
        "limit": _short(measure.limit),
        "breach": measure.breach,
        "meaning": measure.meaning,
    }


def _short(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.3f}".rstrip("0").rstrip(".") if isinstance(value, float) else f"{value:,}"
