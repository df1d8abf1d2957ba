"""The engine for office documents: placements as the document shows them, originals as it holds them.

Joins the readers of the three formats (where is a picture, can it be seen) and ``pictures`` (what are its
bytes) into the same rows and accounts as for PDF pages. Faults are caught per picture and per unit, never
around the loop. A macro is never run: a document with macros is of another media type and not let in.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal, Protocol

from pypdfium2 import PDFIUM_INFO

from asset_pipeline import account
from asset_pipeline.errors import Refusal
from asset_pipeline.extraction import answering
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.ooxml.package import Package, open_package
from asset_pipeline.extraction.ooxml.pictures import Laid, PictureFiles
from asset_pipeline.extraction.ooxml.placed import Placed, Unit
from asset_pipeline.extraction.ooxml.sheets import Workbook
from asset_pipeline.extraction.ooxml.slides import Presentation
from asset_pipeline.extraction.ooxml.word import WordDocument
from asset_pipeline.extraction.pdf.geometry import (
    UNIT_SQUARE,
    WHOLE,
    as_displayed,
    bounds,
    is_mirrored,
    move,
    orientation,
    unit_crop,
)
from asset_pipeline.extraction.rows import TEXT_CHARACTERS, Found, Gallery, placement_row, plain_text
from asset_pipeline.extraction.withheld import WithheldFiles
from asset_pipeline.model import Extraction, Flag, Page, Placement, Source
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import OFFICE, recognise
from asset_pipeline.validation.packages import DOCX, MAIN_PARTS, PPTX, XLSX

_LOG = logging.getLogger(__name__)

REVISION = 4
"""Raised with every change of ours that can change a result (REQUIREMENTS R2.1)."""

_ALL = 1 - 1e-6
_NOWHERE = (0.0, 0.0, 0.0, 0.0)


class _Reader(Protocol):
    """The units of one document, counted at once and read one at a time."""

    def __len__(self) -> int: ...

    def read(self, index: int) -> Unit:
        """Raises Refusal where the unit cannot be read."""
        ...


_READERS: dict[str, Callable[[Package, str], _Reader]] = {DOCX: WordDocument, PPTX: Presentation, XLSX: Workbook}
_KINDS: dict[str, Literal["part", "slide", "sheet"]] = {DOCX: "part", PPTX: "slide", XLSX: "sheet"}


class OoxmlEngine:
    """Reads docx, pptx and xlsx with zipfile, expat and the decoders of the default engine."""

    name = "ooxml"

    def version(self) -> str:
        """Revision of this engine and the versions of every library that can change a byte."""
        libraries = {
            "pdfium": PDFIUM_INFO.build,
            "pillow": version("pillow"),
            "pikepdf": version("pikepdf"),
            "simplejpeg": version("simplejpeg"),
            "defusedxml": version("defusedxml"),
        }
        return "+".join([f"{self.name}/{REVISION}", *(f"{name}-{number}" for name, number in libraries.items())])

    def inspect(self, request: Request) -> Inspection:
        """Open the document and count its units."""
        return answering.inspect(request, _open, _source)

    def extract(self, request: Request) -> Extraction:
        """Read the requested units, one after the other: memory does not grow with their number."""
        return answering.extract(self, request, _open, _source, _read_units)


@dataclass(frozen=True, slots=True)
class _Document:
    package: Package
    media_type: str
    reader: _Reader
    units: int


@contextmanager
def _open(request: Request) -> Iterator[_Document]:
    """The document, opened. Raises Refusal with its reason."""
    with request.document.open("rb") as file:
        signature = recognise(file, request.media_type)
    if signature.encrypted:
        raise Refusal(Reason.ENCRYPTED)
    if signature.media_type not in OFFICE.values():
        known = request.media_type in OFFICE.values()
        raise Refusal(Reason.SIGNATURE_MISMATCH if known else Reason.MEDIA_TYPE_NOT_ALLOWED)
    with open_package(request.document, request.policy.limits) as package:
        document = _document_of(package, request.media_type)
        if not document.units:
            raise Refusal(Reason.MALFORMED_DOCUMENT, "nothing to show")
        if document.units > request.policy.limits.pages:
            raise Refusal(Reason.PAGE_BUDGET_EXCEEDED)
        yield document


def _document_of(package: Package, declared: str | None) -> _Document:
    main = next(iter(package.parts_of("", "officeDocument")), None)
    if main is None:
        raise Refusal(Reason.MALFORMED_DOCUMENT, "no main part")
    media_type = MAIN_PARTS.get((package.content_type(main) or "").lower())
    if media_type is None or media_type not in _READERS or (declared is not None and media_type != declared):
        raise Refusal(Reason.SIGNATURE_MISMATCH)
    reader = _READERS[media_type](package, main)
    return _Document(package, media_type, reader, len(reader))


def _source(request: Request, document: _Document | None = None, refusal: Refusal | None = None) -> Source:
    encrypted: Any = "none" if document else "user" if refusal and refusal.reason is Reason.ENCRYPTED else None
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=document.units if document else None,
        encrypted=encrypted,
    )


def _read_units(document: _Document, request: Request, gallery: Gallery, withheld: WithheldFiles) -> list[Page]:
    files = PictureFiles(document.package, request.out, request.policy, request.pixels, withheld)
    return [_read(document, number, files, gallery) for number in answering.requested(request, document.units)]


def _read(document: _Document, number: int, files: PictureFiles, gallery: Gallery) -> Page:
    unit = _read_unit(document, number)
    rows = [
        _row(placed, order, number, document.units, unit, files, gallery)
        for order, placed in enumerate(unit.placed, start=1)
    ]
    page = Page(
        page=number,
        unit=unit.kind,
        label=plain_text(unit.label),
        drawn=0 if unit.counted else None,
        reason=unit.reason,
        placements=rows,
    )
    return account.count(page)


def _read_unit(document: _Document, number: int) -> Unit:
    try:
        return document.reader.read(number - 1)
    except Exception as error:  # noqa: BLE001 - the border of a unit: no other unit may suffer from it
        return Unit(_KINDS[document.media_type], None, reason=_reason(error), counted=False)


def _reason(error: Exception) -> Reason:
    if isinstance(error, Refusal):
        return error.reason
    if isinstance(error, MemoryError):
        return Reason.MEMORY_EXCEEDED
    if isinstance(error, RecursionError):
        return Reason.STRUCTURE_TOO_DEEP
    _LOG.error("unexpected %s", type(error).__name__)
    return Reason.INTERNAL_ERROR


def _row(
    placed: Placed, order: int, number: int, units: int, unit: Unit, files: PictureFiles, gallery: Gallery
) -> Placement:
    height = unit.box[3] if unit.box else 0.0
    matrix = placed.matrix(height)
    visible, region = placed.seen(unit.box, height)
    whole = visible > _ALL
    shown = visible > 0 and not (placed.hidden or unit.hidden)
    turn, mirrored = orientation(matrix, 0)
    laid = Laid(turn, mirrored, WHOLE if whole or not region else unit_crop(matrix, region), shown)
    rendered = files.render(placed.part, placed.reason, laid)
    matrix = placed.fitted(rendered.width, rendered.height).matrix(height)
    box = bounds(move(matrix, UNIT_SQUARE))
    flags = {
        Flag.CLIPPED: 0 < visible <= _ALL,
        Flag.NOT_VISIBLE: not shown,
        Flag.MIRRORED: is_mirrored(matrix),
    }
    found = Found(
        kind=placed.kind,
        order=order,
        object_id=None,
        width=rendered.width,
        height=rendered.height,
        filter=rendered.filter,
        colour_space=rendered.colour_space,
        bits=rendered.bits,
        matrix=matrix,
        bbox=box,
        display_bbox=as_displayed(box, unit.box or _NOWHERE, 0),
        visible=1.0 if whole else visible,
        shown=shown,
        flags=placed.flags | rendered.flags | {flag for flag, holds in flags.items() if holds},
        original=rendered.original,
        display=rendered.display,
        reason=rendered.reason,
        alt=placed.alt,
    )
    row = placement_row(found, gallery, page=number, pages=units, user_unit=1.0, policy=files.policy)
    files.withhold(number, row, placed.part)
    return row.model_copy(update={"caption": plain_text(placed.caption, TEXT_CHARACTERS)})
