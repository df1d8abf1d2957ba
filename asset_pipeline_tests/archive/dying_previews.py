"""A maker of thumbnails whose process dies of some pictures. Loaded inside decoder processes."""

from __future__ import annotations

import os
import tarfile

from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.previews import Thumbnails
from asset_pipeline.model import Extraction


class Picky(Thumbnails):
    """Dies when the bundle holds a picture whose digest begins with 0 to 7."""

    def extract(self, request: Request) -> Extraction:
        with tarfile.open(request.document) as bundle:
            if any(name[0] < "8" for name in bundle.getnames()):
                os.abort()
        return super().extract(request)
