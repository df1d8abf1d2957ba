"""Gates that read numbers and headers only, so that nothing is decoded or allocated for a picture that lies.

Each gate raises ``Refusal`` with the exact reason (REQUIREMENTS R5.1) or returns. Parsers of codec
headers are beside this module; decoding belongs in ``extraction``. The order matters: dimensions,
pixels, encoded bytes, filters, expanded bytes, so that one fault always has the same reason.
"""

from __future__ import annotations

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason


def check_dimensions(width: int, height: int) -> None:
    """A picture has at least one pixel."""
    if width <= 0 or height <= 0:
        raise Refusal(Reason.INVALID_DIMENSIONS)


def check_pixels(width: int, height: int, limits: Limits) -> None:
    """Sound dimensions within the pixel budget; used for the dictionary, the mask and the codec's own header."""
    check_dimensions(width, height)
    if width * height > limits.pixels:
        raise Refusal(Reason.PIXEL_BUDGET_EXCEEDED)


def check_encoded(count: int, limits: Limits) -> None:
    """The stored stream is not larger than one picture may be."""
    if count > limits.encoded_bytes:
        raise Refusal(Reason.PAYLOAD_TOO_LARGE)


def check_filters(count: int, limits: Limits) -> None:
    """The filter chain is not longer than the policy allows."""
    if count > limits.filters:
        raise Refusal(Reason.FILTER_BUDGET_EXCEEDED)


def check_expanded(count: int, limits: Limits) -> None:
    """Decoded samples (known in advance: rows of whole bytes) fit the budget."""
    if count > limits.expanded_bytes:
        raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED)


def check_frames(count: int, limits: Limits) -> None:
    """One picture has one frame by default."""
    if count > limits.frames:
        raise Refusal(Reason.FRAME_BUDGET_EXCEEDED)


def check_metadata(count: int, limits: Limits) -> None:
    """Metadata inside a picture (EXIF, XMP, ICC, comments) is small beside the picture."""
    if count > limits.metadata_bytes:
        raise Refusal(Reason.METADATA_TOO_LARGE)
