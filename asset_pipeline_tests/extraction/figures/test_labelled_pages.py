"""Figures on pages labelled by hand: found where a person sees one, and nothing else is taken for one.

A figure counts as found where its box and the labelled one overlap by half of what they cover together.
``labels.json`` has the boxes of real pages, looked at one by one; those of the made pages are in the
modules that draw them. Emblems and vector illustrations from 40 points on are labelled as figures; bar
codes, lettering, watermarks of text and drawings over photos are not.
"""

from __future__ import annotations

import inspect
import io
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import pikepdf
import pypdfium2
import pytest

from asset_pipeline.extraction.pdf.figure_marks import read_marks
from asset_pipeline.extraction.pdf.figures import find_figures
from asset_pipeline.extraction.pdf.page_frame import read_frame
from asset_pipeline.policy import Figures
from asset_pipeline_tests.extraction.figures import (
    made_charts,
    made_charts_more,
    made_fields,
    made_layouts,
    made_plots,
    made_unseen,
)

Box = tuple[float, float, float, float]

HERE = Path(__file__).parent
CORPUS = Path(os.environ.get("ASSET_PIPELINE_CORPUS", HERE.parents[3] / "shared" / "corpus")) / "pdf"
INBOX = HERE.parents[2] / "fixtures" / "inbox"
LABELS = json.loads((HERE / "labels.json").read_text())
OVERLAP = 0.5


@dataclass
class Score:
    """Labelled and found figures of a set of pages, and what went wrong by page."""

    labelled: int = 0
    found: int = 0
    right: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, name: str, labelled: list[Box], found: list[Box]) -> None:
        left = list(found)
        for box in labelled:
            best = max(left, key=lambda other: _overlap(box, other), default=None)
            if best is not None and _overlap(box, best) >= OVERLAP:
                left.remove(best)
                self.right += 1
            else:
                self.faults.append(f"{name}: missed {_short(box)}")
        self.faults += [f"{name}: no figure {_short(box)}" for box in left]
        self.labelled += len(labelled)
        self.found += len(found)

    def check(self, name: str) -> None:
        precision, recall = self.right / max(1, self.found), self.right / max(1, self.labelled)
        print(f"figures, {name}: {self.labelled} labelled, precision {precision:.2f}, recall {recall:.2f}")
        print("\n".join(self.faults))
        assert min(precision, recall) >= 0.9, "\n".join(self.faults)


def test_figures_of_pages_made_in_the_habits_of_many_programs_are_found() -> None:
    score = Score()
    for name, data, labelled in _made(made_charts, made_charts_more, made_layouts):
        score.add(name, labelled, _figures(data, [1])[1])
    assert score.labelled >= 20
    score.check("made pages")


def test_figures_of_pages_made_later_are_found() -> None:
    score = Score()
    for name, data, labelled in _made(made_fields, made_unseen, made_plots):
        score.add(name, labelled, _figures(data, [1])[1])
    score.check("pages made later")


def test_charts_of_the_fixtures_are_found() -> None:
    score = Score()
    for name, pages in LABELS["fixtures"].items():
        _add(score, INBOX / name, pages)
    score.check("fixtures")


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"there is no corpus in {CORPUS}")
def test_figures_of_real_pages_are_found() -> None:
    score = Score()
    for name, pages in LABELS["corpus"].items():
        _add(score, CORPUS / name, pages)
    score.check("real pages")


def _add(score: Score, path: Path, pages: dict[str, list[Box]]) -> None:
    found = _figures(path.read_bytes(), [int(number) for number in pages])
    for number, labelled in pages.items():
        score.add(f"{path.name} page {number}", labelled, found[int(number)])


def _made(*modules: ModuleType) -> Iterator[tuple[str, bytes, list[Box]]]:
    for module in modules:
        for name, draw in inspect.getmembers(module, inspect.isfunction):
            if draw.__module__ == module.__name__ and not name.startswith("_"):
                yield name, *_drawn(draw)


def _drawn(draw: Callable[[pikepdf.Pdf], list[Box]]) -> tuple[bytes, list[Box]]:
    written = io.BytesIO()
    with pikepdf.new() as pdf:
        labelled = draw(pdf)
        pdf.save(written)
    return written.getvalue(), labelled


def _figures(data: bytes, numbers: list[int]) -> dict[int, list[Box]]:
    policy = Figures()
    found = {}
    document = pypdfium2.PdfDocument(data)
    with pikepdf.open(io.BytesIO(data)) as pdf:
        for number in numbers:
            frame = read_frame(pdf.pages[number - 1].obj)
            page = document[number - 1]
            found[number] = find_figures(read_marks(page.raw, frame.crop, policy.marks), frame.crop, policy)
            page.close()
    document.close()
    return found


def _overlap(one: Box, other: Box) -> float:
    across, up = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    shared = max(0.0, across) * max(0.0, up)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return shared / (sum(areas) - shared)


def _short(box: Box) -> str:
    return ", ".join(f"{value:.0f}" for value in box)
