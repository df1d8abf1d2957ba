"""Small real documents and a fresh installation, for the tests of the rooms that work a whole month."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pikepdf

from asset_pipeline.settings import Settings, load_settings
from asset_pipeline_tests.blank_ledgers import blank_ledger

MONTH = "2026-05"


def fresh_settings(folder: Path, **overrides: object) -> Settings:
    """Settings of an installation in ``folder``, with its inbox and a blank ledger there and no settle time."""
    (folder / "home" / "inbox").mkdir(parents=True)
    if "ledger" not in overrides:
        (folder / "home" / "ledger.db").write_bytes(blank_ledger())
    values: dict[str, object] = {"home": folder / "home", "settle_seconds": 0, "workers": 2, "pages_per_unit": 2}
    return load_settings(**(values | overrides))


def drop_document(
    settings: Settings, name: str, colours: list[int], *, collection: str = "city", month: str = MONTH, **how: bool
) -> Path:
    """Put a document into the inbox with one page for each colour; equal colours are one picture."""
    place = Path(settings.store_address("inbox"), collection, month, name)
    place.parent.mkdir(parents=True, exist_ok=True)
    picture_pdf(place, colours, **how)
    return place


def picture_pdf(path: Path, colours: list[int], *, encrypted: bool = False, broken_picture: bool = False) -> None:
    """A PDF with one page for each colour, each drawing one 8 x 8 picture of it."""
    with pikepdf.new() as pdf:
        for colour in colours:
            _draw(pdf, pdf.add_blank_page(page_size=(200, 200)), bytes([colour, 255 - colour, 90]) * 64)
        if broken_picture:
            _draw(pdf, pdf.add_blank_page(page_size=(200, 200)), b"short")
        security = pikepdf.Encryption(user="secret", owner="owner") if encrypted else None
        pdf.save(path, encryption=security or False, deterministic_id=not encrypted)


def samples_pdf(path: Path, pictures: list[bytes], side: int = 8) -> None:
    """A PDF with one page for each picture, given as its ``side`` x ``side`` RGB samples."""
    with pikepdf.new() as pdf:
        for samples in pictures:
            _draw(pdf, pdf.add_blank_page(page_size=(200, 200)), samples, side)
        pdf.save(path, deterministic_id=True)


def noisy_pdf(path: Path, pages: int, side: int = 500) -> None:
    """A PDF whose pictures take a moment each: random pixels, another picture on each page."""
    samples_pdf(path, [Random(number).randbytes(side * side * 3) for number in range(pages)], side)


def _draw(pdf: pikepdf.Pdf, page: pikepdf.Page, samples: bytes, side: int = 8) -> None:
    picture = pdf.make_stream(samples)
    picture.Type, picture.Subtype = pikepdf.Name.XObject, pikepdf.Name.Image
    picture.Width, picture.Height, picture.BitsPerComponent = side, side, 8
    picture.ColorSpace = pikepdf.Name.DeviceRGB
    page.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(Im0=picture))
    page.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im0 Do Q")
