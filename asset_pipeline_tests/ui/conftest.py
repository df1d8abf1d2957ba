"""A browser, and a month with one of everything to look at in it, a page for each reason to miss a picture included."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pikepdf
import pytest

from asset_pipeline.archive.catalogue import publish_catalogue
from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.installation import open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.intake.inventory import take_inventory
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import MonthSummary
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import open_previews
from asset_pipeline_tests.small_documents import drop_document, fresh_settings
from asset_pipeline_tests.ui.browsing import browser

__all__ = ["browser"]

MONTH = "2026-10"
EMPTY = "2026-02"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "inbox"
HOSTILE = "<img src=x onerror=alert(1)>\u202efdp.pdf"
MADE_UP = (
    "annual-reports/2026-10/coastline-atlas.pdf",
    "field-notes/2026-10/dune-restoration.pdf",
    "field-notes/2026-08/volunteer-handbook.pdf",
    "press-desk/2026-09/board-minutes.pdf",
    "annual-reports/2026-08/saltmarsh-annual-report.pdf",
)


PAGE = 87
MISSING = {"no_picture": "none.pdf", "late": "late.pdf", "quarantined": "held.pdf", "decorative": "hairline.pdf"}
"""Documents that show nothing on page 87, by the reason."""
WAITING = "just-dropped.pdf"
"""One that shows nothing yet, because nobody took it in."""


@dataclass(frozen=True, slots=True)
class Month:
    """The folder of a gallery and what the ledger says of its month."""

    home: Path
    folder: Path
    summary: MonthSummary

    @property
    def address(self) -> str:
        return (self.folder / "index.html").as_uri()


@pytest.fixture(scope="session")
def month(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Month]:
    """Made-up reports, one with a hostile name, one still to be worked and one that waits in the inbox."""
    settings = fresh_settings(tmp_path_factory.mktemp("month"))
    inbox = Path(settings.store_address("inbox"))
    for name in MADE_UP:
        collection, _, document = name.split("/")
        (inbox / collection / MONTH).mkdir(parents=True, exist_ok=True)
        shutil.copy(FIXTURES / name, inbox / collection / MONTH / document)
    drop_document(settings, HOSTILE, [10, 20], month=MONTH)
    for cause, name in MISSING.items():
        if cause != "late":
            _drop_without_picture(inbox / "city" / MONTH / name, cause)
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, utc_now, wait=True)
        work_month(inst, MONTH)
        drop_document(settings, MISSING["late"], [30], month=MONTH)
        admit_month(inst, MONTH, utc_now, wait=True)
        drop_document(settings, WAITING, [40], month=MONTH)
        take_inventory(inst, utc_now(), MONTH)
        for each in (MONTH, EMPTY):
            publish_gallery(inst, each, lambda: open_previews(inst))
        publish_catalogue(inst, MONTH)
        with inst.ledger.read() as conn:
            summary = reading.month_summary(conn, MONTH)
    yield Month(settings.home, Path(settings.store_address("archive"), "galleries", MONTH), summary)


def _drop_without_picture(path: Path, cause: str) -> None:
    """A document of 87 pages; the last one draws nothing, a hairline, or a picture whose bytes are cut short."""
    with pikepdf.new() as pdf:
        for _ in range(PAGE):
            page = pdf.add_blank_page(page_size=(200, 200))
        if cause != "no_picture":
            picture = pdf.make_stream(b"short" if cause == "quarantined" else bytes(192))
            picture.Type, picture.Subtype, picture.ColorSpace = (
                pikepdf.Name.XObject,
                pikepdf.Name.Image,
                pikepdf.Name.DeviceRGB,
            )
            picture.Width, picture.Height, picture.BitsPerComponent = 8, 8, 8
            page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=picture))
            height = 1 if cause == "decorative" else 100
            page.Contents = pdf.make_stream(b"q 100 0 0 %d 20 20 cm /Im0 Do Q" % height)
        pdf.save(path)
