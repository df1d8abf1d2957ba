"""Takes every picture out of documents, and can prove what it did.

The public Python API is small: ``extract`` reads one document without database or Dagster. Imports
are lazy, so that ``import asset_pipeline`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from asset_pipeline.extraction.report import extract as extract

__all__ = ["extract"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "extract":
        from asset_pipeline.extraction.report import extract

        return extract
    raise AttributeError(f"module 'asset_pipeline' has no attribute {name!r}")
