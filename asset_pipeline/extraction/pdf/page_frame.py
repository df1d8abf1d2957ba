"""The page as a sheet: crop box, rotation, resources, all of them inherited down the page tree (PDF 7.7.3.4).

Defaults and repairs are those of PDFium, which is what people see: US Letter without a media box, the
media box where the crop box is empty or lies beside it, a rotation that is a multiple of 90.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.geometry import overlap
from asset_pipeline.extraction.pdf.resources import box_of, entry, number
from asset_pipeline.model import Four

LETTER: Four = (0.0, 0.0, 612.0, 792.0)
_LEVELS = 256


@dataclass(frozen=True, slots=True)
class PageFrame:
    """The visible part of a page in user space, how it is turned for display, and its resources."""

    crop: Four
    rotate: int
    resources: Any


def read_frame(page: pikepdf.Object) -> PageFrame:
    """The frame of ``page``, a page dictionary."""
    media = _box(page, "/MediaBox") or LETTER
    crop = _box(page, "/CropBox")
    shared = media if crop is None else overlap(media, crop)
    resources = inherited(page, "/Resources")
    return PageFrame(
        crop=shared if _has_area(shared) else media,
        rotate=int(number(inherited(page, "/Rotate")) / 90) % 4 * 90,
        resources=resources if isinstance(resources, pikepdf.Dictionary) else None,
    )


def inherited(page: pikepdf.Object, key: str) -> Any:
    """The page's own entry or that of its nearest ancestor; a tree that runs in a circle ends."""
    node: Any = page
    for _ in range(_LEVELS):
        value = entry(node, key)
        if value is not None or node is None:
            return value
        node = entry(node, "/Parent")
    return None


def _box(page: pikepdf.Object, key: str) -> Four | None:
    node: Any = page
    for _ in range(_LEVELS):
        if node is None:
            break
        box = box_of(node, key)
        if box is not None:
            return box if _has_area(box) else None
        node = entry(node, "/Parent")
    return None


def _has_area(box: Four) -> bool:
    return box[2] > box[0] and box[3] > box[1]
