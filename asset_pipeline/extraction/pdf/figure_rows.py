"""The rows of a page's vector figures: found, rendered, written; or quarantined with a reason.

A figure that lies over a quarantined picture is quarantined with it: PDFium invents pixels for corrupt
streams, and a rendering must not launder them (REQUIREMENTS R5.4). What cannot be seen, on a hidden
layer for example, has no row.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pypdfium2

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.captions import is_named_caption
from asset_pipeline.extraction.pdf.figure_marks import count_paths, read_marks
from asset_pipeline.extraction.pdf.figure_pictures import plan_grid, render_figure, write_figure
from asset_pipeline.extraction.pdf.figures import find_figures
from asset_pipeline.extraction.pdf.geometry import as_displayed, overlap
from asset_pipeline.extraction.pdf.page_frame import PageFrame
from asset_pipeline.extraction.rows import Found, Gallery, placement_row
from asset_pipeline.model import Four, Kind, Picture, Placement, Six, Status
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

_READ_POINTS = 1.0


@dataclass(frozen=True, slots=True)
class Sheet:
    """A page as its figures need it: number, number of pages of the document, frame, points to a unit."""

    number: int
    of: int
    frame: PageFrame
    user_unit: float


def figure_rows(
    page: Any, sheet: Sheet, rows: Sequence[Placement], gallery: Gallery, out: Path, policy: Policy
) -> list[Placement]:
    """Rows of the figures on ``page`` (a PDFium page); ``rows`` are those of its pictures."""
    if (
        not _is_same_sheet(page, sheet)
        or count_paths(page.raw, policy.figures.fewest_paths) < policy.figures.fewest_paths
    ):
        return []
    marks = read_marks(page.raw, sheet.frame.crop, policy.figures.marks)
    with_captions = _Captions(page)
    boxes = find_figures(marks, sheet.frame.crop, policy.figures, with_captions)
    with_captions.close()
    deadline = time.monotonic() + policy.figures.seconds
    found: list[Placement] = []
    for box in boxes:
        grid = plan_grid(box, sheet.frame, policy.figures.dpi, sheet.user_unit, policy.limits.pixels)
        picture: Picture | None = None
        reason = _reason_below(box, rows)
        if reason is None:
            try:
                samples = render_figure(page, grid, deadline)
            except Refusal as refusal:
                reason = refusal.reason
            else:
                if samples is None:
                    continue
                picture = write_figure(samples, out)
        order = len(found) + 1
        row = placement_row(
            _found(box, (grid.width, grid.height), sheet.frame, order, picture, reason),
            gallery,
            page=sheet.number,
            pages=sheet.of,
            user_unit=sheet.user_unit,
            policy=policy,
        )
        density = round(grid.dpi, 2)
        name = row.name.replace("-image-", "-figure-")
        found.append(row.model_copy(update={"name": name, "ppi": (density, density)}))
    return found


def _is_same_sheet(page: Any, sheet: Sheet) -> bool:
    """Whether PDFium sees the page in the same proportions; if not, boxes would be cut in the wrong place."""
    crop = sheet.frame.crop
    across, up = crop[2] - crop[0], crop[3] - crop[1]
    if sheet.frame.rotate % 180:
        across, up = up, across
    width, height = page.get_size()
    return bool(across > 0 and up > 0 and abs(width * up - height * across) <= 0.01 * max(width * up, 1.0))


def _reason_below(box: Four, rows: Sequence[Placement]) -> Reason | None:
    for row in rows:
        left, bottom, right, top = overlap(row.bbox, box)
        if row.status is Status.QUARANTINED and right > left and top > bottom:
            return row.reason
    return None


class _Captions:
    """Tells lines that begin a caption; reads the page's text only when asked for the first time."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self._texts: Any = None

    def __call__(self, line: Four) -> bool:
        try:
            if self._texts is None:
                self._texts = self._page.get_textpage()
            left, bottom, right, top = line
            text = self._texts.get_text_bounded(
                left - _READ_POINTS, bottom - _READ_POINTS, right + _READ_POINTS, top + _READ_POINTS
            )
        except (pypdfium2.PdfiumError, ValueError):
            return False
        return is_named_caption(text.strip())

    def close(self) -> None:
        if self._texts is not None:
            self._texts.close()


def _found(
    box: Four, size: tuple[int, int], frame: PageFrame, order: int, picture: Picture | None, reason: Reason | None
) -> Found:
    return Found(
        kind=Kind.VECTOR_FIGURE,
        order=order,
        object_id=None,
        width=size[0],
        height=size[1],
        filter=[],
        colour_space="DeviceRGB",
        bits=8,
        matrix=_upright(box, frame.rotate),
        bbox=box,
        display_bbox=as_displayed(box, frame.crop, frame.rotate),
        visible=1.0,
        shown=True,
        flags=frozenset(),
        original=picture,
        display=picture,
        reason=reason,
    )


def _upright(box: Four, rotate: int) -> Six:
    """The unit square onto ``box`` so that it stands upright on a page turned by ``rotate``."""
    left, bottom, right, top = box
    across, up = right - left, top - bottom
    placed: dict[int, Six] = {
        0: (across, 0.0, 0.0, up, left, bottom),
        90: (0.0, up, -across, 0.0, right, bottom),
        180: (-across, 0.0, 0.0, -up, right, top),
        270: (0.0, -up, across, 0.0, left, top),
    }
    return placed[rotate]
