"""How a picture lies on the page, on its own pixel grid: cropped, mirrored, turned by quarters.

Other angles are not resampled. The crop is the visible bounding box, widened to whole pixels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from asset_pipeline.extraction.pdf.draws import Draw

_WHOLE = (0.0, 0.0, 1.0, 1.0)
_NEARLY = 1e-4


def stays_as_is(draw: Draw, width: int, height: int) -> bool:
    """Whether the picture is shown upright and whole."""
    return not draw.turn % 4 and not draw.mirrored and _box(draw, width, height) == (0, 0, width, height)


def place(samples: Any, draw: Draw) -> Any:
    """``samples`` (height, width[, channels]) cropped, then mirrored left-right, then turned clockwise."""
    left, top, right, bottom = _box(draw, samples.shape[1], samples.shape[0])
    samples = samples[top:bottom, left:right]
    if draw.mirrored:
        samples = samples[:, ::-1]
    if draw.turn % 4:
        samples = np.rot90(samples, -(draw.turn % 4))
    return np.ascontiguousarray(samples)


def _box(draw: Draw, width: int, height: int) -> tuple[int, int, int, int]:
    """The crop in whole pixels; never empty, and the whole picture where the crop is not sound."""
    crop = draw.crop
    if crop == _WHOLE or not all(math.isfinite(bound) for bound in crop):
        return 0, 0, width, height
    left, right = _span(crop[0], crop[2], width)
    top, bottom = _span(crop[1], crop[3], height)
    return left, top, right, bottom


def _span(low: float, high: float, size: int) -> tuple[int, int]:
    """First pixel and the one behind the last; a sliver thinner than a ten-thousandth of a pixel is no pixel."""
    first = min(max(math.floor(low * size + _NEARLY), 0), size - 1)
    last = min(max(math.ceil(high * size - _NEARLY), first + 1), size)
    return first, last
