"""A document of real pages, and engines that fail on one of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest

from asset_pipeline.extraction.engine import ENGINES

MakeDocument = Callable[..., Path]


@pytest.fixture(autouse=True)
def failing_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    for name in (
        *("CrashesOnPage3", "HungryOnPage3", "HangsOnPage3", "CrashesOnCounting", "CrashesOnOpening"),
        *("Hangs", "HangsOnCounting", "Dawdles"),
        *("KeepsTurns", "TakesNoTurns", "TakesOneTurn", "TakesOneTurnForAll"),
        *("LeavesPageOut", "CountsMorePages", "Waits"),
    ):
        monkeypatch.setitem(ENGINES, name, f"failing_engines:{name}")


@pytest.fixture
def make_document(tmp_path: Path) -> MakeDocument:
    """A PDF with one page for each colour, each drawing an 8 x 8 picture of it; equal colours are one picture."""

    def make(colours: list[int], name: str = "report.pdf", **how: object) -> Path:
        path = tmp_path / name
        with pikepdf.new() as pdf:
            for colour in colours:
                page = pdf.add_blank_page(page_size=(200, 200))
                picture = pdf.make_stream(bytes([colour, 255 - colour, 90]) * 64)
                picture.Type, picture.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
                picture.Width, picture.Height, picture.BitsPerComponent = 8, 8, 8
                picture.ColorSpace = pikepdf.Name.DeviceRGB
                page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=picture))
                page.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im0 Do Q")
            pdf.save(path, **how)
        return path

    return make
