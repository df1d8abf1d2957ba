"""Loaded into a Dask worker: an engine that takes its process along when a document of one page comes."""

from __future__ import annotations

import os
import signal

from asset_pipeline.extraction.engine import ENGINES, Request
from asset_pipeline.extraction.pdf.engine import PdfEngine
from asset_pipeline.model import Extraction


class Lethal(PdfEngine):
    def extract(self, request: Request) -> Extraction:
        if request.first == request.last == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().extract(request)


ENGINES["pdf"] = f"{__name__}:{Lethal.__name__}"
