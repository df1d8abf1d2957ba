"""What happened? The read side for analysts: frames, measures and comparisons out of the ledger. Changes nothing.

    from asset_pipeline import history

    history.attempts(month="2026-05").groupby("extractor_version").decode_ms.quantile(0.95)

Columns are described in ``columns.TABLES``. Dagster's event log is read in ``defs.history_rows``, which hands on plain
rows; nothing here knows Dagster.
"""

from __future__ import annotations

from asset_pipeline.history.columns import TABLES
from asset_pipeline.history.comparison import changes
from asset_pipeline.history.frames import attempts, editions, events, materializations, pages, pictures, retries

__all__ = ["TABLES", "attempts", "changes", "editions", "events", "materializations", "pages", "pictures", "retries"]
