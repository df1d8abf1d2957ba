"""Engines that misbehave in ways a document can make a real one misbehave. Loaded inside decoder processes."""

from __future__ import annotations

import os
import time

from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.pdf.engine import PdfEngine
from asset_pipeline.model import Extraction


class Crashing(PdfEngine):
    """Its process dies at every extraction."""

    def extract(self, request: Request) -> Extraction:
        os.abort()


class CrashingInspection(PdfEngine):
    """Its process dies before the pages are counted."""

    def inspect(self, request: Request) -> Inspection:
        os.abort()


class Slow(PdfEngine):
    """Takes longer than any test waits."""

    def extract(self, request: Request) -> Extraction:
        time.sleep(600)
        return super().extract(request)


class Unhurried(PdfEngine):
    """Answers, but late."""

    def extract(self, request: Request) -> Extraction:
        time.sleep(1.5)
        return super().extract(request)


class Newer(PdfEngine):
    """Another version than the one that jobs were queued for."""

    def version(self) -> str:
        return f"{super().version()}+newer"
