"""How a gallery of 10,000 pictures feels: time to build it, to open it and to filter it, and bytes before scrolling.

    .venv/bin/python benchmarks/gallery.py [--documents 50] [--pages 200] [--home FOLDER]

Makes the documents, works their month through real decoder processes, builds the gallery, serves the folder on this
machine and opens it in the installed Chromium. The bounds that a month must keep: opens in 2 s, 1 MB before scrolling,
filters in 200 ms.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import io
import json
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from typing import Any

import pikepdf
from PIL import Image
from playwright.sync_api import Page, Request, sync_playwright

from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.settings import load_settings
from asset_pipeline.work.clock import utc_now
from asset_pipeline.work.month import work_month
from asset_pipeline.work.previews import open_previews

MONTH = "2026-05"
CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WORDS = ("heron", "tide", "marsh", "gull", "dune", "ferry", "crane", "harbour", "quay", "reed", "salt", "tern")


def make_document(path: Path, number: int, pages: int) -> None:
    """A report with a picture, a caption and the same logo on each page."""
    random = Random(number)
    with pikepdf.new() as pdf:
        logo = _picture(pdf, Image.effect_noise((60, 60), 40).convert("RGB"))
        font = pdf.make_indirect(
            pikepdf.Dictionary(Type=pikepdf.Name.Font, Subtype=pikepdf.Name.Type1, BaseFont=pikepdf.Name.Helvetica)
        )
        for page_number in range(1, pages + 1):
            small = Image.frombytes("RGB", (12, 9), random.randbytes(12 * 9 * 3))
            picture = _picture(pdf, small.resize((480, 360), Image.Resampling.BICUBIC))
            page = pdf.add_blank_page(page_size=(400, 400))
            page.Resources = pikepdf.Dictionary(
                XObject=pikepdf.Dictionary(Im0=picture, Im1=logo), Font=pikepdf.Dictionary(F0=font)
            )
            caption = f"Figure {page_number}. " + " ".join(random.sample(WORDS, 6))
            page.Contents = pdf.make_stream(
                f"q 240 0 0 180 80 150 cm /Im0 Do Q q 30 0 0 30 350 360 cm /Im1 Do Q "
                f"BT /F0 9 Tf 80 136 Td ({caption}) Tj ET".encode()
            )
        pdf.save(path, deterministic_id=True)


def _picture(pdf: pikepdf.Pdf, image: Image.Image) -> pikepdf.Object:
    body = io.BytesIO()
    image.save(body, "JPEG", quality=80)
    stream = pdf.make_stream(body.getvalue())
    stream.Type, stream.Subtype, stream.Filter = pikepdf.Name.XObject, pikepdf.Name.Image, pikepdf.Name.DCTDecode
    stream.Width, stream.Height, stream.BitsPerComponent = *image.size, 8
    stream.ColorSpace = pikepdf.Name.DeviceRGB
    return stream


def build(inst: Installation, documents: int, pages: int) -> dict[str, float]:
    """Work the month and build its gallery twice; seconds of each."""
    inbox = Path(inst.settings.store_address("inbox"), "bulk", MONTH)
    inbox.mkdir(parents=True, exist_ok=True)
    for number in range(documents):
        if not (inbox / f"report-{number:03}.pdf").exists():
            make_document(inbox / f"report-{number:03}.pdf", number, pages)
    seconds = {}
    for name, step in (
        ("extract", lambda: (admit_month(inst, MONTH, utc_now, wait=True), work_month(inst, MONTH))),
        ("gallery", lambda: publish_gallery(inst, MONTH, lambda: open_previews(inst))),
        ("gallery_again", lambda: publish_gallery(inst, MONTH, lambda: open_previews(inst))),
    ):
        began = time.monotonic()
        made = step()
        seconds[f"{name}_s"] = round(time.monotonic() - began, 2)
    seconds["gallery_again_written"] = made.written
    seconds["placements"] = made.pictures
    return seconds


FIRST_PICTURE = """async () => {
  while (!document.querySelector(".card img")?.complete) { await new Promise(requestAnimationFrame); }
}"""
FILTER = """async ([id, value]) => {
  const field = document.getElementById(id), found = document.getElementById("found");
  const frame = () => new Promise(requestAnimationFrame);
  found.textContent = "";
  const began = performance.now();
  field.value = value;
  field.dispatchEvent(new Event(id === "text" ? "input" : "change", {bubbles: true}));
  while (!found.textContent) { await frame(); }
  const none = found.textContent.startsWith("0 ");
  while (!none && !document.querySelector(".card")) { await frame(); }
  await frame();
  return {ms: Math.round(10 * (performance.now() - began)) / 10, found: found.textContent};
}"""
"""Until the cards in view are there, or, where nothing fits, until that is said."""

FILTERS = (
    ("status", "status", "collapsed"),
    ("everything", "status", "all"),
    ("kind", "kind", "raster"),
    ("text", "text", "heron"),
    ("text_two", "text", "heron tide"),
    ("document", "document", "7"),
    ("nothing", "text", "heron zeppelin"),
)
"""One upon the other, as a person narrows down: name in the answer, field, value."""


def measure(page: Page, address: str) -> dict[str, Any]:
    """Open and filter as a person does. Bytes are those of all answers until nothing more is asked for."""
    finished: list[Request] = []
    page.on("requestfinished", lambda request: finished.append(request))
    began = time.monotonic()
    page.goto(address)
    page.evaluate(FIRST_PICTURE)
    opened = time.monotonic() - began
    page.wait_for_load_state("networkidle")
    sizes = [request.sizes()["responseBodySize"] for request in finished]
    figures: dict[str, Any] = {"open_s": round(opened, 2), "before_scrolling_bytes": sum(sizes), "requests": len(sizes)}
    page.focus("#text")
    for name, field, value in FILTERS:
        figures[f"filter_{name}"] = page.evaluate(FILTER, [field, value])
    figures["filter_slowest_ms"] = max(figures[f"filter_{name}"]["ms"] for name, _, _ in FILTERS)
    return figures


def serve(folder: Path) -> tuple[http.server.ThreadingHTTPServer, str]:
    """The folder on a free port of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            return None

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--documents", type=int, default=50)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--home", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        settings = load_settings(home=asked.home or Path(scratch, "home"), settle_seconds=0)
        with open_installation(settings) as inst:
            figures = build(inst, asked.documents, asked.pages)
        archive = Path(settings.store_address("archive"))
        server, address = serve(archive)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for name, start in (("http", address), ("file", archive.absolute().as_uri())):
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                figures[name] = measure(page, f"{start}/galleries/{MONTH}/index.html")
                page.close()
            browser.close()
        server.shutdown()
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
