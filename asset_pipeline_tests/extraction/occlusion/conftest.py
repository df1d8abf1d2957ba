"""One page with a picture of 100 x 100 points at (50, 50), and what is painted around it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Page
from asset_pipeline.policy import Policy

PICTURE = "q 100 0 0 100 50 50 cm /Im0 Do Q\n"


def gray(pdf: pikepdf.Pdf, tone: int, **keys: Any) -> pikepdf.Object:
    """A picture of 8 x 8 pixels."""
    stream = pdf.make_stream(bytes([tone]) * 64)
    given = {"Type": Name.XObject, "Subtype": Name.Image, "Width": 8, "Height": 8}
    for key, value in (given | {"ColorSpace": Name.DeviceGray, "BitsPerComponent": 8} | keys).items():
        stream["/" + key] = value
    return pdf.make_indirect(stream)


def form(pdf: pikepdf.Pdf, content: str, **keys: Any) -> pikepdf.Object:
    """A form with the resources of the page."""
    stream = pdf.make_stream(content.encode())
    for key, value in ({"Type": Name.XObject, "Subtype": Name.Form, "BBox": Array([0, 0, 300, 300])} | keys).items():
        stream["/" + key] = value
    return pdf.make_indirect(stream)


Occluded = Callable[..., list[bool]]


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[..., Page]:
    """Read a page with this content; ``more`` adds resources and page entries."""

    def run(content: str, more: Callable[[pikepdf.Pdf, Any], None] | None = None) -> Page:
        document, out = tmp_path / "source.pdf", tmp_path / "out"
        out.mkdir(exist_ok=True)
        with pikepdf.new() as pdf:
            page = pdf.add_blank_page(page_size=(300, 300)).obj
            page.Resources = Dictionary(
                XObject=Dictionary({"/Im0": gray(pdf, 90), "/Im1": gray(pdf, 200)}),
                ExtGState=Dictionary(
                    {
                        "/Half": Dictionary(ca=0.5),
                        "/Full": Dictionary(ca=1, BM=Name.Normal, SMask=Name("/None")),
                        "/Multiply": Dictionary(BM=Name.Multiply),
                    }
                ),
            )
            page.Contents = pdf.make_stream(content.encode())
            if more is not None:
                more(pdf, page)
            pdf.save(document)
        data = document.read_bytes()
        request = Request(
            document=document,
            out=out,
            policy=Policy(),
            source_sha256=hashlib.sha256(data).hexdigest(),
            source_bytes=len(data),
            figures=False,
        )
        return load_engine("pdf").extract(request).pages[0]

    return run


@pytest.fixture
def occluded(page_of: Callable[..., Page]) -> Occluded:
    """For each placement of such a page, whether it has the flag."""

    def run(content: str, more: Callable[[pikepdf.Pdf, Any], None] | None = None) -> list[bool]:
        return ["occluded" in row.flags for row in page_of(content, more).placements]

    return run
