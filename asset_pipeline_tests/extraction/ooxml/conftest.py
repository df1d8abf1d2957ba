"""Reads a package with the engine, in this process."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from PIL import Image

from asset_pipeline import account
from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Extraction, Placement
from asset_pipeline.policy import Policy
from asset_pipeline.validation.packages import DOCX, PPTX, XLSX

TYPES = {"docx": DOCX, "pptx": PPTX, "xlsx": XLSX}


class Read(NamedTuple):
    """An answer of the engine and the folder of its files."""

    answer: Extraction
    folder: Path

    @property
    def rows(self) -> list[Placement]:
        return [row for page in self.answer.pages for row in page.placements]

    def file(self, digest: str | None) -> Path:
        return next(self.folder / entry.file for entry in self.answer.pictures if entry.sha256 == digest)

    def pixels(self, digest: str | None) -> np.ndarray:
        with Image.open(self.file(digest)) as picture:
            return np.asarray(picture.convert("RGBA" if picture.has_transparency_data else "RGB"))


Reader = Callable[..., Read]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Read ``data``, a package of ``kind``; the account of every unit is held against its rows."""

    def run(kind: str, data: bytes, *, policy: Policy | None = None, pixels: bool = False, declared: str = "") -> Read:
        folder = tmp_path / hashlib.sha256(data).hexdigest()[:12]
        folder.mkdir()
        document = tmp_path / "document"
        document.write_bytes(data)
        request = Request(
            document=document,
            out=folder,
            policy=policy or Policy(),
            source_sha256=hashlib.sha256(data).hexdigest(),
            source_bytes=len(data),
            media_type=TYPES[declared or kind],
            pixels=pixels,
        )
        answer = load_engine("ooxml").extract(request)
        if answer.outcome == "ok":
            assert account.unaccounted(answer.pages, answer.source.pages or 0) == []
        return Read(answer, folder)

    return run
