"""The tables of the history as pandas frames: the public Python API.

Every function has the columns of its table in ``columns.TABLES``, in that order, with the same types when it is empty:
``str``, ``Int64``, ``Float64`` and UTC times. Rows come newest first (pictures: by document), so ``limit`` means the
latest. ``inst`` None opens the installation of the environment. Raises PipelineError when that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from asset_pipeline.history.columns import TABLES, Column
from asset_pipeline.history.rows import ROWS, Row
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.settings import load_settings

if TYPE_CHECKING:
    import pandas as pd

_DTYPES = {"text": "str", "integer": "Int64", "number": "Float64"}


def attempts(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Attempts at units of work: times of each stage, memory, outcome, reason."""
    return _frame("attempts", inst, month, since, limit)


def pictures(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Pictures on the pages of the documents that were read, one row a placement."""
    return _frame("pictures", inst, month, since, limit)


def events(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Audit events with their payload as JSON."""
    return _frame("events", inst, month, since, limit)


def retries(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Attempts that were tried again, why, and what came of it."""
    return _frame("retries", inst, month, since, limit)


def pages(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Pages of the documents that were read, each with its account: what it draws and what became of it."""
    return _frame("pages", inst, month, since, limit)


def editions(
    inst: Installation | None = None,
    month: str | None = None,
    since: datetime | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Manifests that were published, with the moment at which their upload was first seen."""
    return _frame("editions", inst, month, since, limit)


def materializations(rows: Iterable[Row]) -> pd.DataFrame:
    """What Dagster recorded, from the rows of ``defs.history_rows.materialization_rows``."""
    return frame("materializations", rows)


def frame(table: str, rows: Iterable[Row]) -> pd.DataFrame:
    """``rows`` of one of ``TABLES`` as a frame."""
    return typed(TABLES[table], rows)


def typed(columns: Sequence[Column], rows: Iterable[Row]) -> pd.DataFrame:
    """``rows`` with these columns and their types."""
    import pandas as pd

    found = pd.DataFrame(list(rows), columns=[column.name for column in columns], dtype=object)
    for column in columns:
        if column.kind == "time":
            found[column.name] = pd.to_datetime(found[column.name], utc=True).astype("datetime64[us, UTC]")
        else:
            found[column.name] = found[column.name].astype(pd.api.types.pandas_dtype(_DTYPES[column.kind]))
    return found


def _frame(
    table: str, inst: Installation | None, month: str | None, since: datetime | None, limit: int | None
) -> pd.DataFrame:
    wanted: dict[str, Any] = {"month": month, "since": since, "limit": limit}
    if inst is not None:
        return frame(table, ROWS[table](inst, **wanted))
    with open_installation(load_settings()) as opened:
        return frame(table, ROWS[table](opened, **wanted))
