"""Renders one box of a page with PDFium: on white, upright as the page shows it, without annotations.

On white, since that is what a figure was drawn for: transparent, black axes would vanish on a dark
screen. Annotations are remarks about the page and stay out. Rendering can be made slow by a hostile
page, so PDFium is asked to pause and given up on when its time is over.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from pypdfium2 import raw

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.files import File, difference_hash, digest_codes, write
from asset_pipeline.extraction.pdf.geometry import as_displayed
from asset_pipeline.extraction.pdf.page_frame import PageFrame
from asset_pipeline.extraction.pdf.png import encode_png
from asset_pipeline.model import Four, Picture
from asset_pipeline.reasons import Reason

_WHITE = 0xFFFFFFFF
_LONGEST = 30_000
_POINTS_PER_INCH = 72.0


@dataclass(frozen=True, slots=True)
class Grid:
    """The pixels of one box: where it lies on the whole page's pixels, how large it is, how dense."""

    left: int
    top: int
    width: int
    height: int
    page_width: int
    page_height: int
    dpi: float


def plan_grid(box: Four, frame: PageFrame, dpi: float, user_unit: float, pixels: int) -> Grid:
    """The pixel grid of ``box`` (user space) at ``dpi``, or coarser where it would have more than ``pixels``."""
    left, top, right, bottom = as_displayed(box, frame.crop, frame.rotate)
    scale = dpi * user_unit / _POINTS_PER_INCH
    scale = min(scale, math.sqrt(pixels / max(1.0, (right - left) * (bottom - top))) * 0.999)
    across, up = frame.crop[2] - frame.crop[0], frame.crop[3] - frame.crop[1]
    if frame.rotate % 180:
        across, up = up, across
    scale = min(scale, _LONGEST / max(across, up, 1.0))
    return Grid(
        left=math.floor(left * scale),
        top=math.floor(top * scale),
        width=max(1, math.floor((right - left) * scale)),
        height=max(1, math.floor((bottom - top) * scale)),
        page_width=max(1, round(across * scale)),
        page_height=max(1, round(up * scale)),
        dpi=scale * _POINTS_PER_INCH / user_unit,
    )


def render_figure(page: Any, grid: Grid, deadline: float) -> NDArray[np.uint8] | None:
    """RGB samples of ``grid`` on ``page`` (a PDFium page); None where nothing is to be seen.

    Raises Refusal when ``deadline`` (monotonic seconds) passes or PDFium fails.
    """
    try:
        bitmap = pypdfium2.PdfBitmap.new_native(grid.width, grid.height, raw.FPDFBitmap_BGRx)
    except pypdfium2.PdfiumError:
        raise Refusal(Reason.MEMORY_EXCEEDED) from None
    bitmap.warn_on_close = False  # the samples are copied before it is closed
    try:
        raw.FPDFBitmap_FillRect(bitmap, 0, 0, grid.width, grid.height, _WHITE)
        with _pause_after(deadline) as pause:
            status = raw.FPDF_RenderPageBitmap_Start(
                bitmap, page.raw, -grid.left, -grid.top, grid.page_width, grid.page_height, 0, 0, pause
            )
            raw.FPDF_RenderPage_Close(page.raw)
        if status == raw.FPDF_RENDER_TOBECONTINUED:
            raise Refusal(Reason.DEADLINE_EXCEEDED)
        if status != raw.FPDF_RENDER_DONE:
            raise Refusal(Reason.MALFORMED_STREAM)
        samples = np.array(bitmap.to_numpy()[:, :, 2::-1], np.uint8, copy=True, order="C")
    finally:
        bitmap.close()
    return None if (samples == samples[0, 0]).all() else samples


@contextmanager
def _pause_after(deadline: float) -> Iterator[Any]:
    pause = raw.IFSDK_PAUSE()
    pause.version = 1
    called = type(pause.NeedToPauseNow)(lambda _: int(time.monotonic() > deadline))
    pause.NeedToPauseNow = called
    yield ctypes.byref(pause)


def write_figure(samples: NDArray[np.uint8], out: Path) -> Picture:
    """The PNG of ``samples`` in ``out``: original and display at once."""
    height, width = samples.shape[:2]
    file = File(
        data=encode_png(samples, 8),
        extension="png",
        media_type="image/png",
        width=width,
        height=height,
        bits=8,
        mode="RGB",
        pixel_sha256=digest_codes(samples, 8, palette=False),
        phash=difference_hash(samples),
    )
    return write(file, out, ["original", "display"])
