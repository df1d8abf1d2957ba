"""The installation that these tests work in."""

from asset_pipeline_tests.installations import inst, settings, submit

__all__ = ["inst", "settings", "submit"]
