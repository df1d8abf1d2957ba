"""Reads documents with the engine, as the tests of captions use it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import pikepdf
import pytest

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Extraction
from asset_pipeline.policy import Policy


class ReadFile(Protocol):
    """Reads a document, or one page of it."""

    def __call__(self, document: Path, page: int | None = None) -> Extraction: ...


ReadMade = Callable[[Callable[[pikepdf.Pdf], None]], Extraction]


@pytest.fixture
def read_file(tmp_path: Path) -> ReadFile:
    """Read a document as it is."""

    def run(document: Path, page: int | None = None) -> Extraction:
        data = document.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        out = tmp_path / digest
        out.mkdir(exist_ok=True)
        request = Request(document=document, out=out, policy=Policy(), source_sha256=digest, source_bytes=len(data))
        if page is not None:
            request = replace(request, first=page, last=page)
        return load_engine("pdf").extract(request)

    return run


@pytest.fixture
def read_made(tmp_path: Path, read_file: ReadFile) -> ReadMade:
    """Write a document with a function, then read it."""

    def run(write: Callable[[pikepdf.Pdf], None]) -> Extraction:
        document = tmp_path / "source.pdf"
        with pikepdf.new() as pdf:
            write(pdf)
            pdf.save(document)
        return read_file(document)

    return run
