"""JPEG data: a strict decode that believes nothing, scaled where only soundness is asked.

libjpeg repairs: it warns and paints. ``simplejpeg`` in strict mode makes every warning an error; scaled to an
eighth it still reads all entropy-coded data, at three times the speed of a full decode. A handful of warnings
are about headers only and lose no pixel; those are forgiven. Where changed bytes decode without a warning,
``jpeg_range`` and for small data ``jpeg_walk`` find what no encoder can have written. Sampling that
``simplejpeg`` does not take is decoded by Pillow after such a walk. Markers are read in ``validation.jpeg``.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import simplejpeg
from numpy.typing import NDArray
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.jpeg_range import halved, leaves_range
from asset_pipeline.extraction.pdf.jpeg_walk import walk_scans
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jpeg import SEQUENTIAL_FRAMES, JpegFacts

_FORGIVEN = (
    "Invalid SOS parameters for sequential JPEG",
    "Unknown Adobe color transform code",
    "unknown JFIF revision number",
)
_PADDED = "extraneous bytes before marker 0xd9"
_UNKNOWN_LAYOUT = "Could not determine subsampling"
_MODES = {1: "GRAY", 3: "RGB", 4: "CMYK"}
_SMALL = 72
"""Pixels of a side below which the means of blocks are too few for a perceptual hash."""
_WALKED = 8 << 10
"""Bytes of data up to which the walk in Python is worth its time: some milliseconds."""


def check_scan(data: bytes, facts: JpegFacts) -> NDArray[np.uint8]:
    """Prove all entropy-coded data as far as it can be done quickly; returns the picture's tones, gray or RGB.

    These are what a perceptual hash needs: of a large picture the means of its blocks, within half a tone.
    """
    data = data[: facts.end]
    small = min(facts.width, facts.height) < _SMALL
    copy = halved(data, facts)
    means = None
    if copy is not None:
        try:
            means = _decode(copy.data, facts, scaled=True)
        except _UnknownLayoutError:
            pass  # without its colour transform simplejpeg does not take it: nothing is proved of its range
        else:
            if leaves_range(means, copy.quantisers):
                raise Refusal(Reason.MALFORMED_STREAM)
    if small or means is None:
        shown = decode_samples(data, facts)
    else:
        shown = means[:, :, :1] if facts.components == 1 or _has_luminance(facts) else means[:, :, :3]
    if facts.frame in SEQUENTIAL_FRAMES and len(data) <= _WALKED:
        walk_scans(data)
    return shown


def decode_jpeg(data: bytes, facts: JpegFacts, transform: int | None) -> NDArray[np.uint8]:
    """Samples as the DCTDecode filter defines them, ``(height, width, components)``.

    ``transform`` is /ColorTransform; it counts only where the JPEG has no Adobe marker (PDF 7.4.8).
    """
    data = data[: facts.end]
    if overrides_transform(facts, transform):
        data = _with_adobe_marker(data, 0 if not transform else 1 if facts.components == 3 else 2)
    return decode_samples(data, facts)


def overrides_transform(facts: JpegFacts, transform: int | None) -> bool:
    """Whether /ColorTransform says something else than the JPEG alone would be read as."""
    if transform is None or facts.adobe_transform is not None or facts.components == 1:
        return False
    if facts.components == 3:
        alone = facts.jfif or facts.component_ids != b"RGB"
        return bool(transform) != alone
    return bool(transform)


def decode_samples(data: bytes, facts: JpegFacts) -> NDArray[np.uint8]:
    """All samples, in the colours that the JPEG alone says."""
    try:
        return _decode(data, facts, scaled=False)
    except _UnknownLayoutError:
        return _decode_unusual(data, facts)


class _UnknownLayoutError(Exception):
    """Sampling that has no name in TurboJPEG."""


def _decode(data: bytes | bytearray, facts: JpegFacts, *, scaled: bool) -> NDArray[np.uint8]:
    options: dict[str, Any] = {"colorspace": _MODES[facts.components]}
    if scaled:
        options |= {"min_factor": 8, "min_height": 1, "min_width": 1}
    try:
        samples: NDArray[np.uint8] = simplejpeg.decode_jpeg(data, strict=True, **options)
    except ValueError as error:
        message = str(error)
        if _UNKNOWN_LAYOUT in message:
            raise _UnknownLayoutError from None
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


def _has_luminance(facts: JpegFacts) -> bool:
    """Whether the first component is the luminance."""
    if facts.components != 3:
        return False
    if facts.jfif or facts.adobe_transform is None:
        return facts.jfif or facts.component_ids != b"RGB"
    return facts.adobe_transform != 0


def _decode_unusual(data: bytes, facts: JpegFacts) -> NDArray[np.uint8]:
    """Sampling that has no name in TurboJPEG, as CMYK with cyan alone in full size. Pillow repairs, hence the walk."""
    if not walk_scans(data):
        raise Refusal(Reason.UNSUPPORTED_CODEC, "sampling")
    try:
        with Image.open(io.BytesIO(data), formats=["JPEG"]) as picture:
            samples = np.asarray(picture).reshape(facts.height, facts.width, facts.components)
    except (OSError, ValueError, SyntaxError):
        raise Refusal(Reason.MALFORMED_STREAM) from None
    return 255 - samples if facts.components == 4 else samples  # Pillow inverts all CMYK


def _without_padding(data: bytes | bytearray) -> bytes | bytearray | None:
    """The JPEG without the zeros that some scanners write before the end marker; None where there are none."""
    body = data[:-2].rstrip(b"\0")
    return body + data[-2:] if len(body) < len(data) - 2 else None


def _with_adobe_marker(data: bytes, transform: int) -> bytes:
    """A copy to decode: libjpeg reads JFIF before Adobe, so the JFIF marker is made unknown."""
    data = data.replace(b"JFIF\0", b"was \0", 1)
    return data[:2] + b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00" + bytes([transform]) + data[2:]
