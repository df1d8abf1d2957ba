"""JPEG 2000 pictures: Pillow (OpenJPEG) proves that the data decodes and gives samples and alpha.

Colour is PDFium's where the PDF or the file asks for more than gray and RGB of 8 bits. Sizes and tile
parts were checked in ``validation.jpx``: OpenJPEG fills what is missing without a word.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jpx import JpxFacts

_SRGB, _GRAY = 16, 17


def decode_jpx(data: bytes) -> tuple[NDArray[Any], str]:
    """Samples ``(height, width, channels)`` and Pillow's mode for them."""
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG2000",)) as picture:
            picture.load()
            whole: Image.Image = picture
            if picture.mode == "P":
                whole = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
            samples = np.asarray(whole)
            mode = whole.mode
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise Refusal(Reason.MALFORMED_STREAM) from None
    return (samples[:, :, None] if samples.ndim == 2 else samples), mode


def jpx_mode(data: bytes) -> str:
    """Pillow's mode, from the header alone."""
    try:
        with Image.open(io.BytesIO(data), formats=("JPEG2000",)) as picture:
            return picture.mode
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise Refusal(Reason.UNSUPPORTED_CODEC) from None


def describes_itself(facts: JpxFacts) -> bool:
    """Whether Pillow's samples are gray or sRGB as they are: 8 bits, plain colour, no palette."""
    return facts.bits == 8 and not facts.palette and facts.icc is None and facts.colour in (None, _SRGB, _GRAY)
