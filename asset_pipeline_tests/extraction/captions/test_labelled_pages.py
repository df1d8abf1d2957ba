"""Captions against labels made by hand: pages made here, the project's sample reports, real documents.

Precision and recall are over captions: one that is found counts when it is the labelled one, word for word.
Captions that do not start like one are listed apart in the labels: taking them would be guessing.
What is missed or wrong is printed (``pytest -s``), so that nobody has to take the figure for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pikepdf
import pytest

from asset_pipeline.model import Kind
from asset_pipeline_tests.extraction.captions.conftest import ReadFile, ReadMade
from asset_pipeline_tests.extraction.captions.pages import PAGES, Paper

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "fixtures" / "inbox"
CORPUS = Path(os.environ.get("ASSET_PIPELINE_CORPUS", ROOT.parent / "shared" / "corpus"))
LABELS: dict[str, Any] = json.loads(Path(__file__).with_name("labels.json").read_text("utf-8"))


@dataclass
class Score:
    """Labelled and found captions, compared."""

    right: int = 0
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, where: str, wanted: str | None, found: str | None) -> None:
        if wanted is not None and wanted == found:
            self.right += 1
            return
        if wanted is not None:
            self.missed.append(f"{where}: {wanted!r}")
        if found is not None:
            self.wrong.append(f"{where}: {found!r}")

    def check(self, what: str) -> None:
        precision = self.right / max(1, self.right + len(self.wrong))
        recall = self.right / max(1, self.right + len(self.missed))
        print(f"\ncaptions of {what}: precision {precision:.3f}, recall {recall:.3f}, {self.right} right")
        for kind, cases in (("missed", self.missed), ("wrong", self.wrong)):
            for case in cases:
                print(f"  {kind} {case}")
        assert precision >= 0.9
        assert recall >= 0.9


def test_captions_of_made_pages_are_found(read_made: ReadMade) -> None:
    score = Score()
    wanted = []

    def write(pdf: pikepdf.Pdf) -> None:
        for make in PAGES.values():
            paper = Paper(pdf)
            wanted.append(make(paper))
            paper.finish()

    pages = read_made(write).pages
    assert len(PAGES) >= 15
    for name, captions, page in zip(PAGES, wanted, pages, strict=True):
        rows = [row for row in page.placements if row.kind is not Kind.VECTOR_FIGURE]
        for number, (caption, row) in enumerate(zip(captions, rows, strict=True), start=1):
            score.add(f"{name} picture {number}", caption, row.caption)
    score.check("made pages")


def test_captions_of_the_sample_reports_are_found(read_file: ReadFile) -> None:
    score = Score()
    _compare(score, ((name, SAMPLES / name, pages) for name, pages in LABELS["samples"].items()), read_file)
    score.check("sample reports")


def test_captions_of_real_documents_are_found(read_file: ReadFile) -> None:
    if not CORPUS.is_dir():
        pytest.skip("the corpus of real documents is not here (ASSET_PIPELINE_CORPUS names its place)")
    score = Score()
    files = ((name, CORPUS / "pdf" / name, pages) for name, pages in LABELS["real"].items())
    _compare(score, files, read_file)
    score.check("real documents")


def _compare(score: Score, files: Iterable[tuple[str, Path, dict[str, Any]]], read_file: ReadFile) -> None:
    """Pages that are labelled; on them, a picture without a label has no caption."""
    for name, path, labelled in files:
        for number, captions in labelled.items():
            (page,) = read_file(path, int(number)).pages
            rows = {row.name.split("-", 2)[2]: row.caption for row in page.placements}
            for place in sorted({*rows, *captions}):
                score.add(f"{name} page {number} {place}", captions.get(place), rows.get(place))
