"""The engine, as the tests of composites use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.policy import Policy
from asset_pipeline_tests.extraction.composites.sheets import Answer, Read, Sheet


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write one sheet with a function, finish it, read the document."""

    def run(write: Callable[[Sheet], None], policy: Policy | None = None, pages: int = 1, **entries: Any) -> Answer:
        document, out = tmp_path / "source.pdf", tmp_path / "out"
        with pikepdf.new() as pdf:
            for _ in range(pages):
                sheet = Sheet(pdf)
                write(sheet)
                sheet.finish(**entries)
            pdf.save(document)
        out.mkdir(exist_ok=True)
        content = document.read_bytes()
        request = Request(
            document=document,
            out=out,
            policy=policy or Policy(),
            source_sha256=hashlib.sha256(content).hexdigest(),
            source_bytes=len(content),
            figures=False,
        )
        return Answer(load_engine("pdf").extract(request), out)

    return run
