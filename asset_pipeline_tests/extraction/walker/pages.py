"""One-page documents for the walker's tests, written as a PDF author would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pikepdf
from pikepdf import Array, Dictionary, Name, Stream

from asset_pipeline.extraction.pdf.draws import PageDraws
from asset_pipeline.extraction.pdf.walker import walk_page
from asset_pipeline.policy import Limits


def picture(pdf: pikepdf.Pdf, width: int = 6, height: int = 4, **entries: Any) -> pikepdf.Object:
    """A gray picture with its own object number."""
    stream = Stream(pdf, bytes(width * height))
    stream.Type, stream.Subtype = Name.XObject, Name.Image
    stream.Width, stream.Height, stream.BitsPerComponent = width, height, 8
    stream.ColorSpace = Name.DeviceGray
    for key, value in entries.items():
        stream["/" + key] = value
    return pdf.make_indirect(stream)


def stencil(pdf: pikepdf.Pdf) -> pikepdf.Object:
    """An 8 x 2 stencil mask."""
    made = picture(pdf, 8, 2, ImageMask=True, BitsPerComponent=1)
    del made.ColorSpace
    return made


def form(pdf: pikepdf.Pdf, content: str, resources: Mapping[str, Any] | None = None, **entries: Any) -> pikepdf.Object:
    """A form XObject; without ``resources`` it has none of its own."""
    stream = Stream(pdf, content.encode())
    stream.Type, stream.Subtype, stream.BBox = Name.XObject, Name.Form, Array([0, 0, 300, 200])
    if resources is not None:
        stream.Resources = Dictionary({"/" + key: value for key, value in resources.items()})
    for key, value in entries.items():
        stream["/" + key] = value
    return pdf.make_indirect(stream)


def xobjects(**named: Any) -> Dictionary:
    """An XObject resource dictionary."""
    return Dictionary({"/" + key: value for key, value in named.items()})


def page(pdf: pikepdf.Pdf, content: str | bytes, resources: Mapping[str, Any] | None = None, **entries: Any) -> Any:
    """Add a page of 300 x 200 points."""
    data = content if isinstance(content, bytes) else content.encode()
    made = Dictionary(Type=Name.Page, MediaBox=[0, 0, 300, 200], Contents=Stream(pdf, data))
    if resources is not None:
        made.Resources = Dictionary({"/" + key: value for key, value in resources.items()})
    for key, value in entries.items():
        made["/" + key] = value
    pdf.pages.append(pikepdf.Page(pdf.make_indirect(made)))
    return pdf.pages[-1].obj


def walk(pdf: pikepdf.Pdf, number: int = 1, **limits: int) -> PageDraws:
    """Walk one page under the default limits, some replaced."""
    return walk_page(pdf, number, Limits(**limits))


def boxes(found: PageDraws) -> list[tuple[float, ...]]:
    """The boxes of all draws, rounded to a hundredth of a point."""
    return [tuple(round(side, 2) for side in draw.bbox) for draw in found.draws]
