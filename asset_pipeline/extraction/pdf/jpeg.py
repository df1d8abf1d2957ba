"""JPEG data: a strict decode that believes nothing, scaled where only soundness is asked.

libjpeg repairs: it warns and paints. ``simplejpeg`` in strict mode makes every warning an error; in scaled
mode it still reads all entropy-coded data, at 2.5 times the speed of a full decode. A handful of warnings
are about headers only and lose no pixel; those are forgiven. The markers are read in ``validation.jpeg``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jpeg import JpegFacts

_FORGIVEN = (
    "Invalid SOS parameters for sequential JPEG",
    "Unknown Adobe color transform code",
    "unknown JFIF revision number",
)
_PADDED = "extraneous bytes before marker 0xd9"
_MODES = {1: "GRAY", 3: "RGB", 4: "CMYK"}
_SMALL = 72


def check_scan(data: bytes, facts: JpegFacts) -> NDArray[np.uint8]:
    """Decode all entropy-coded data, scaled down for speed; returns the small picture."""
    factor = 8 if min(facts.width, facts.height) >= _SMALL else 1
    return _decode(data[: facts.end], facts, factor)


def decode_jpeg(data: bytes, facts: JpegFacts, transform: int | None) -> NDArray[np.uint8]:
    """Samples as the DCTDecode filter defines them, ``(height, width, components)``.

    ``transform`` is /ColorTransform; it counts only where the JPEG has no Adobe marker (PDF 7.4.8).
    """
    data = data[: facts.end]
    if overrides_transform(facts, transform):
        data = _with_adobe_marker(data, 0 if not transform else 1 if facts.components == 3 else 2)
    return _decode(data, facts, 1)


def overrides_transform(facts: JpegFacts, transform: int | None) -> bool:
    """Whether /ColorTransform says something else than the JPEG alone would be read as."""
    if transform is None or facts.adobe_transform is not None or facts.components == 1:
        return False
    if facts.components == 3:
        alone = facts.jfif or facts.component_ids != b"RGB"
        return bool(transform) != alone
    return bool(transform)


def _decode(data: bytes, facts: JpegFacts, factor: int) -> NDArray[np.uint8]:
    options: dict[str, Any] = {"colorspace": _MODES[facts.components], "min_factor": factor}
    try:
        samples: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, strict=True, **options)
    except ValueError as error:
        message = str(error)
        if "Premature end" in message:
            raise Refusal(Reason.TRUNCATED_STREAM) from None
        forgiven = any(text in message for text in _FORGIVEN)
        plain = data if forgiven else _without_padding(data) if _PADDED in message else None
        if plain is None:
            raise Refusal(Reason.MALFORMED_STREAM) from None
        try:
            samples = simplejpeg.decode_jpeg(plain, strict=not forgiven, **options)
        except ValueError:
            raise Refusal(Reason.MALFORMED_STREAM) from None
    return samples


def _without_padding(data: bytes) -> bytes | None:
    """The JPEG without the zeros that some scanners write before the end marker; None where there are none."""
    body = data[:-2].rstrip(b"\0")
    return body + data[-2:] if len(body) < len(data) - 2 else None


def _with_adobe_marker(data: bytes, transform: int) -> bytes:
    """A copy to decode: libjpeg reads JFIF before Adobe, so the JFIF marker is made unknown."""
    data = data.replace(b"JFIF\0", b"was \0", 1)
    return data[:2] + b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform]) + data[2:]
