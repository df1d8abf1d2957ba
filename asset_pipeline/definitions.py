"""The door through which Dagster comes in."""

from __future__ import annotations

from asset_pipeline.defs.build import build_defs

defs = build_defs()
