"""Files of an answer: bytes written once under their digest, and the row that describes them.

A row is a function of the file's bytes, so that the same picture from two page ranges is the same row.
``pixel_sha256`` hashes what Pillow's ``tobytes`` gives for the file in the row's mode (mode ``1``: eight
pixels a byte); where Pillow has no mode, 16-bit RGB and many inks, it hashes the samples as stored, 16 bits
big-endian in PNG, little-endian in TIFF.
"""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from PIL import Image

from asset_pipeline.extraction.pdf.samples import Codes, pack, to_eight
from asset_pipeline.extraction.written import write_file
from asset_pipeline.model import Picture

Rendition = Literal["original", "display", "thumbnail"]


class File(NamedTuple):
    """An encoded picture and what its row says."""

    data: bytes
    extension: str
    media_type: str
    width: int
    height: int
    bits: int
    mode: str
    has_alpha: bool = False
    icc: str | None = None
    pixel_sha256: str | None = None
    phash: str | None = None


def write(file: File, out: Path, renditions: list[Rendition]) -> Picture:
    """Write ``file`` into ``out`` as ``<sha256>.<extension>`` unless it is there; its row."""
    digest = hashlib.sha256(file.data).hexdigest()
    path = out / f"{digest}.{file.extension}"
    if not path.exists():
        write_file(path, file.data)
    return Picture(
        sha256=digest,
        file=path.name,
        renditions=list(renditions),
        media_type=file.media_type,
        bytes=len(file.data),
        width=file.width,
        height=file.height,
        bits=file.bits,
        mode=file.mode,
        has_alpha=file.has_alpha,
        icc=file.icc,
        pixel_sha256=file.pixel_sha256,
        phash=file.phash,
    )


def png_mode(channels: int, bits: int, palette: bool) -> str:
    """The mode in which Pillow opens a PNG."""
    if palette:
        return "P"
    if channels == 1:
        return "1" if bits == 1 else "I;16" if bits == 16 else "L"
    if bits == 16:
        return "RGB;16B"
    return {2: "LA", 3: "RGB", 4: "RGBA"}[channels]


def digest_codes(codes: Codes, bits: int, *, palette: bool) -> str:
    """``pixel_sha256`` of the codes that a PNG holds."""
    raw: Any
    if palette:
        raw = np.ascontiguousarray(codes, np.uint8)
    elif bits == 1:
        raw = pack(codes, 1)
    elif bits == 16:
        raw = np.ascontiguousarray(codes, "<u2" if codes.shape[2] == 1 else ">u2").view(np.uint8)
    else:
        raw = np.ascontiguousarray(to_eight(codes, bits))
    return hashlib.sha256(raw.data).hexdigest()


def digest_file(data: bytes, kind: str) -> str | None:
    """``pixel_sha256`` by decoding the whole file; None where Pillow cannot."""
    try:
        with Image.open(io.BytesIO(data), formats=(kind,)) as picture:
            return hashlib.sha256(picture.tobytes()).hexdigest()
    except (OSError, ValueError, SyntaxError):
        return None


def sparse(samples: Any) -> Any:
    """The rows and columns of a picture that a perceptual hash looks at; of these, all again."""
    height, width = samples.shape[:2]
    return samples[:: max(1, height // 64), :: max(1, width // 72)]


def difference_hash(samples: Any) -> str | None:
    """64-bit difference hash (hexadecimal): a link to similar pictures, never an identity."""
    samples = sparse(samples)
    channels = 1 if samples.ndim == 2 else samples.shape[2]
    if samples.dtype != np.uint8 or channels not in (1, 3):
        return None
    small = np.ascontiguousarray(samples.reshape(*samples.shape[:2]) if channels == 1 else samples)
    gray = Image.fromarray(small).convert("L").resize((9, 8), Image.Resampling.BOX)
    tones = np.asarray(gray).astype(np.int16)
    flags = (tones[:, 1:] > tones[:, :-1]).reshape(-1)
    return np.packbits(flags).tobytes().hex()


def png_file(
    data: bytes,
    codes: Codes,
    bits: int,
    *,
    palette: bool,
    shown: Any,
    has_alpha: bool = False,
    icc: str | None = None,
) -> File:
    """A PNG of ``codes`` with everything its row says; ``shown`` is what the perceptual hash looks at."""
    height, width, channels = codes.shape
    return File(
        data,
        "png",
        "image/png",
        width,
        height,
        bits,
        png_mode(channels, bits, palette),
        has_alpha=has_alpha,
        icc=icc,
        pixel_sha256=digest_codes(codes, bits, palette=palette),
        phash=difference_hash(shown),
    )
