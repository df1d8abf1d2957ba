"""Ten thousand pictures in one month: a browser fetches and draws only what is looked at, and filters at once.

The bounds of time are generous, for a busy machine; ``benchmarks/gallery.py`` measures on real documents.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect

from asset_pipeline.archive.gallery.content import CODES, PICTURES_IN_A_BLOCK, Block, GalleryDocument, GalleryMonth
from asset_pipeline.archive.gallery.publish import PageImage, write_gallery
from asset_pipeline.archive.page_states import PageAnswer, PageState
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline_tests.ui.browsing import watch

MONTH, DOCUMENTS, PAGES = "2026-07", 50, 200
LOOKS = 60
MEGABYTE = 1_000_000
ARCHIVED = CODES[0]


class Noise:
    """Thumbnails of noise: as heavy as real ones."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def thumbnails(self, displays: dict[str, int], keep: Callable[[str, Path, str], None]) -> None:
        for number, digest in enumerate(displays):
            body = io.BytesIO()
            small = Image.frombytes("RGB", (40, 30), Random(number).randbytes(3600))
            small.resize((320, 240), Image.Resampling.BICUBIC).save(body, "WEBP", quality=78)
            file = self.folder / digest
            file.write_bytes(body.getvalue())
            keep(digest, file, hashlib.sha256(body.getvalue()).hexdigest())

    def pages(self, source_hash: str, wanted: Sequence[tuple[int, bool]], keep: Callable[[PageImage], None]) -> None:
        return None


def document(number: int) -> GalleryDocument:
    """A picture and a caption on each page."""
    digests = [hashlib.sha256(f"{page % LOOKS}".encode()).hexdigest() for page in range(PAGES)]
    blocks = []
    for first in range(0, PAGES, PICTURES_IN_A_BLOCK):
        pages = range(first, min(first + PICTURES_IN_A_BLOCK, PAGES))
        names = [f"page-{page + 1:03}-image-001" for page in pages]
        captions = [f"Figure {page + 1}. A {'heron' if page % 7 == 0 else 'gull'} over the saltmarsh" for page in pages]
        place = [[200, 200], [203.2, 152.4], [60.0, 80.0, 500.0, 410.0]]
        items = [
            [
                page + 1,
                name,
                1600,
                1200,
                *place,
                *[digests[page]] * 2,
                "image/jpeg",
                250_000,
                1,
                caption,
                None,
                None,
                [],
            ]
            for page, name, caption in zip(pages, names, captions, strict=True)
        ]
        texts = [f"{name}\n{caption}" for name, caption in zip(names, captions, strict=True)]
        blocks.append(Block(pages[0] + 1, pages[-1] + 1, ARCHIVED * len(items), texts, items))
    counts = dict.fromkeys(("collapsed", "decorative", "consumed", "not_shown", "quarantined", "derived"), 0)
    head = {"id": f"report{number:020}", "title": f"report-{number:03}.pdf", "collection": "bulk", "revision": 1}
    head |= {"state": "read", "reason": None, "pages": PAGES, "drawn": PAGES, "archived": PAGES, **counts}
    head |= {"states": "p" * PAGES, "labels": {}}
    answers = {page + 1: PageAnswer(PageState.PICTURES, "1 picture in the archive.", "") for page in range(PAGES)}
    displays = dict.fromkeys(digests, 250_000)
    return GalleryDocument(head, blocks, answers, frozenset(), f"{number:064}", drawable=False, displays=displays)


@pytest.fixture(scope="module")
def large(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a gallery of 10,000 pictures in 50 documents, with 60 different thumbnails."""
    place = tmp_path_factory.mktemp("large")
    names = ("documents", "pages", "drawn", "archived", "collapsed", "decorative", "consumed", "not_shown")
    names += ("quarantined", "derived", "refused", "unfinished", "unread_pages", "waiting")
    totals = dict.fromkeys(names, 0) | {"documents": DOCUMENTS, "pages": DOCUMENTS * PAGES}
    totals |= {"drawn": DOCUMENTS * PAGES, "archived": DOCUMENTS * PAGES}

    @contextmanager
    def noise() -> Iterator[Noise]:
        (place / "made").mkdir()
        yield Noise(place / "made")

    content = GalleryMonth(MONTH, totals, {}, [document(number) for number in range(DOCUMENTS)])
    made = write_gallery(FolderStore(place / "archive"), content, noise)
    assert made.pictures == 10_000
    return place / "archive" / "galleries" / MONTH


FILTER = """async ([id, value]) => {
  const frame = () => new Promise(requestAnimationFrame);
  const before = document.getElementById("found").textContent;
  const began = performance.now();
  document.getElementById(id).value = value;
  document.getElementById(id).dispatchEvent(new Event(id === "text" ? "input" : "change"));
  while (document.getElementById("found").textContent === before) { await frame(); }
  while (!document.querySelector(".card")) { await frame(); }
  return performance.now() - began;
}"""

CLEAR_AND_JUMP = """() => {
  const clear = document.getElementById("clear");
  clear.focus();
  clear.click();
  scrollTo(0, document.documentElement.scrollHeight);
}"""
"""In one go, as a hand that is faster than the browser does it: the whole list has its height at once."""


def test_ten_thousand_pictures_open_light_and_filter_at_once(browser: Browser, large: Path) -> None:
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.set_default_timeout(60_000)
    seen = watch(page)
    page.goto((large / "index.html").as_uri())
    page.wait_for_selector(".card img")
    page.wait_for_load_state("networkidle")
    opened = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    expect(page.locator("#found")).to_contain_text("10,000 pictures in 50 documents")
    assert seen.bytes() < MEGABYTE
    assert page.locator(".card").count() < 500
    assert opened < 5 * 2_000
    page.focus("#text")
    for field, value, found in (
        ("text", "heron", "1,450 pictures"),
        ("text", "heron 15", "pictures in 50 documents"),
        ("document", "7", "in 1 document"),
    ):
        assert page.evaluate(FILTER, [field, value]) < 5 * 200, value
        expect(page.locator("#found")).to_contain_text(found)
    page.evaluate(CLEAR_AND_JUMP)
    expect(page.locator(".document").last.locator(".card").last).to_be_in_viewport()
    page.keyboard.press("Home")
    expect(page.locator(".card").first).to_be_in_viewport()
    page.keyboard.press("End")
    expect(page.locator(".document").last.locator(".card").last).to_be_in_viewport()
    assert page.locator(".card").count() < 2_000
    assert seen.complaints == []
    page.close()
