"""The default engine: our own walk over each page, pictures with the document's true bytes.

Joins the walker (where is it, can it be seen) and ``pictures`` (what are its bytes) into rows and page
accounts. Faults are caught here, per picture and per page, never around the loop: one bad picture
loses no other, one bad page loses no document (REQUIREMENTS R5.4).
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

import pikepdf
import PIL
import simplejpeg
from pypdfium2 import PDFIUM_INFO

from asset_pipeline import account
from asset_pipeline.errors import Refusal
from asset_pipeline.extraction import answering
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.pdf.alt_texts import AltTexts
from asset_pipeline.extraction.pdf.composite_rows import join_composites
from asset_pipeline.extraction.pdf.described import describe
from asset_pipeline.extraction.pdf.document import NeedsPassword, OpenDocument, open_document
from asset_pipeline.extraction.pdf.draws import Draw, PageDraws
from asset_pipeline.extraction.pdf.figure_rows import Sheet, figure_rows
from asset_pipeline.extraction.pdf.occlusion import flag_occluded
from asset_pipeline.extraction.pdf.page_frame import PageFrame
from asset_pipeline.extraction.pdf.pdfium_pages import PdfiumPages
from asset_pipeline.extraction.pdf.pictures import PictureCache, Rendered, render_picture
from asset_pipeline.extraction.pdf.walker import walk_page
from asset_pipeline.extraction.rows import Found, Gallery, placement_row, plain_text
from asset_pipeline.extraction.withheld import WithheldFiles
from asset_pipeline.model import Extraction, Page, Placement, Source
from asset_pipeline.reasons import Reason

_LOG = logging.getLogger(__name__)

REVISION = 8
"""Raised with every change of ours that can change a result (REQUIREMENTS R2.1)."""


class PdfEngine:
    """Reads PDF documents with qpdf, PDFium, Pillow and libjpeg-turbo."""

    name = "pdf"

    def version(self) -> str:
        """Revision of this engine and the versions of every library that can change a byte."""
        libraries = {
            "qpdf": pikepdf.__libqpdf_version__,
            "pdfium": PDFIUM_INFO.build,
            "pillow": PIL.__version__,
            "pikepdf": pikepdf.__version__,
            "simplejpeg": simplejpeg.__version__,
        }
        return "+".join([f"{self.name}/{REVISION}", *(f"{name}-{number}" for name, number in libraries.items())])

    def inspect(self, request: Request) -> Inspection:
        """Open the document and count its pages."""
        return answering.inspect(request, open_document, _source)

    def extract(self, request: Request) -> Extraction:
        """Read the requested pages, one after the other: memory does not grow with their number."""
        return answering.extract(self, request, open_document, _source, _read_pages)


def _source(request: Request, document: OpenDocument | None = None, refusal: Refusal | None = None) -> Source:
    encrypted: Any = document.encrypted if document else "user" if isinstance(refusal, NeedsPassword) else None
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=document.pages if document else None,
        encrypted=encrypted,
    )


@dataclass(slots=True)
class _Reading:
    """What the pages of one document share."""

    document: OpenDocument
    request: Request
    gallery: Gallery
    cache: PictureCache
    alt_texts: AltTexts
    pdfium: PdfiumPages
    withheld: WithheldFiles


def _read_pages(document: OpenDocument, request: Request, gallery: Gallery, withheld: WithheldFiles) -> list[Page]:
    pdfium = PdfiumPages(request.document, request.password, document.pages)
    reading = _Reading(document, request, gallery, PictureCache(), AltTexts(document.pdf), pdfium, withheld)
    try:
        return [_read_page(reading, number) for number in answering.requested(request, document.pages)]
    finally:
        pdfium.close()


def _read_page(reading: _Reading, number: int) -> Page:
    document, request = reading.document, reading.request
    walked = _walk(document, number, request)
    if walked.missed and document.gap is not None:
        walked.notes.add(document.gap)
    unit = _user_unit(document.pdf, number)
    rows: list[Placement] = []
    # Of a page that is not accounted for nothing is decoded: its pictures would be a part without a whole.
    for order, draw in enumerate(walked.draws if walked.counted else (), start=1):
        rendered = _render(document.pdf, draw, request, reading.cache)
        row = placement_row(
            _found(draw, order, rendered),
            reading.gallery,
            page=number,
            pages=document.pages,
            user_unit=unit,
            policy=request.policy,
        )
        rows.append(row)
        # An inline picture drawn twice is one stream, which lives as long as its page.
        key = draw.object_id or (number, id(draw.image))
        reading.withheld.add(number, row, key, draw.image.read_raw_bytes)
    rows = _read_together(reading, walked, rows, unit) if walked.counted else []
    walked.release_inline()
    page = Page(
        page=number,
        label=plain_text(walked.label),
        drawn=0 if walked.counted else None,
        reason=_page_reason(walked),
        placements=rows,
    )
    return account.count(page)


def _read_together(reading: _Reading, walked: PageDraws, rows: list[Placement], unit: float) -> list[Placement]:
    """``rows`` after what only shows when the pictures of a page are seen together: joined, covered, described."""
    document, request, number = reading.document, reading.request, walked.page
    pictures = reading.gallery.pictures
    try:
        rows = join_composites(
            rows,
            walked.draws,
            reading.gallery,
            request.out,
            request.policy,
            page=number,
            pages=document.pages,
            user_unit=unit,
        )
        rows = flag_occluded(rows, walked, pictures)
        rows = [*rows, *_figures(reading, walked, rows, unit)]
        rows = describe(rows, walked, reading.alt_texts, reading.pdfium)
    except Exception as error:  # noqa: BLE001 - additions to a page's rows: the account must not suffer from them
        _LOG.error("unexpected %s", type(error).__name__)
    return rows


def _figures(reading: _Reading, walked: PageDraws, rows: list[Placement], unit: float) -> list[Placement]:
    """Rows of the page's vector figures; none where they are not asked for."""
    request = reading.request
    if walked.undrawn or not (request.figures and request.policy.figures.enabled):
        return []
    frame = PageFrame(crop=walked.crop_box, rotate=walked.rotate, resources=None)
    sheet = Sheet(number=walked.page, of=reading.document.pages, frame=frame, user_unit=unit)
    page = reading.pdfium.page(walked.page)
    return [] if page is None else figure_rows(page, sheet, rows, reading.gallery, request.out, request.policy)


def _page_reason(walked: PageDraws) -> Reason | None:
    """What stopped the walk, else what it noted on its way: a counted page may have a reason as well."""
    if walked.reason is None and not walked.counted:
        return Reason.CONTENT_BUDGET_EXCEEDED
    return walked.reason or min(walked.notes, default=None)


def _walk(document: OpenDocument, number: int, request: Request) -> PageDraws:
    try:
        if number in document.lost:
            raise Refusal(document.gap or Reason.STRUCTURE_TOO_DEEP)
        return walk_page(document.pdf, number, request.policy.limits)
    except Exception as error:  # noqa: BLE001 - the border of a page: no other page may suffer from it
        return PageDraws(page=number, label=None, reason=_reason(error), counted=False)


def _render(pdf: pikepdf.Pdf, draw: Draw, request: Request, cache: PictureCache) -> Rendered:
    try:
        return render_picture(pdf, draw, request.out, request.policy, pixels=request.pixels, cache=cache)
    except Exception as error:  # noqa: BLE001 - the border of a picture: no other picture may suffer from it
        return Rendered(
            width=_declared(draw, "/Width"),
            height=_declared(draw, "/Height"),
            filter=[],
            colour_space=None,
            bits=None,
            original=None,
            display=None,
            flags=frozenset(),
            reason=_reason(error),
        )


def _reason(error: Exception) -> Reason:
    """The reason for an exception that should have been a ``Refusal`` or a result."""
    if isinstance(error, Refusal):
        return error.reason
    for kind, reason in _REASONS:
        if isinstance(error, kind):
            return reason
    _LOG.error("unexpected %s", type(error).__name__)
    return Reason.INTERNAL_ERROR


_REASONS: tuple[tuple[type[Exception], Reason], ...] = (
    (MemoryError, Reason.MEMORY_EXCEEDED),
    (RecursionError, Reason.STRUCTURE_TOO_DEEP),
    (pikepdf.PikepdfError, Reason.MALFORMED_STREAM),
    (UnicodeDecodeError, Reason.MALFORMED_STREAM),  # a name that is no text where only known names can stand
)


def _found(draw: Draw, order: int, rendered: Rendered) -> Found:
    return Found(
        kind=draw.kind,
        order=order,
        object_id=draw.object_id,
        width=rendered.width,
        height=rendered.height,
        filter=rendered.filter,
        colour_space=rendered.colour_space,
        bits=rendered.bits,
        matrix=draw.matrix,
        bbox=draw.bbox,
        display_bbox=draw.display_bbox,
        visible=draw.visible,
        shown=draw.shown,
        flags=draw.flags | rendered.flags,
        original=rendered.original,
        display=rendered.display,
        reason=draw.refused or rendered.reason,
    )


def _declared(draw: Draw, key: str) -> int:
    try:
        return int(draw.image.get(key, 0))
    except (TypeError, ValueError, pikepdf.PikepdfError):
        return 0


def _user_unit(pdf: pikepdf.Pdf, number: int) -> float:
    """Points to one unit of user space (PDF 8.3.2.3); 1 unless the page says something sensible."""
    try:
        unit = float(pdf.pages[number - 1].obj.get("/UserUnit", 1))
    except (TypeError, ValueError, pikepdf.PikepdfError):
        return 1.0
    return unit if math.isfinite(unit) and unit > 0 else 1.0
