"""Engines that fail on one page of a document. Run only inside real decoder processes."""

from __future__ import annotations

import os
import time

from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.pypdf import PypdfEngine
from asset_pipeline.model import Extraction

BAD_PAGE = 3


def _reads_bad_page(request: Request) -> bool:
    return request.first <= BAD_PAGE <= (request.last or BAD_PAGE)


class CrashesOnPage3(PypdfEngine):
    def extract(self, request: Request) -> Extraction:
        if _reads_bad_page(request):
            os.abort()
        return super().extract(request)


class HungryOnPage3(PypdfEngine):
    def extract(self, request: Request) -> Extraction:
        if _reads_bad_page(request):
            raise MemoryError
        return super().extract(request)


class HangsOnPage3(PypdfEngine):
    def extract(self, request: Request) -> Extraction:
        if _reads_bad_page(request):
            time.sleep(60)
        return super().extract(request)


class CrashesOnCounting(PypdfEngine):
    def inspect(self, request: Request) -> Inspection:
        os.abort()


class CrashesOnOpening(CrashesOnCounting):
    def extract(self, request: Request) -> Extraction:
        os.abort()
