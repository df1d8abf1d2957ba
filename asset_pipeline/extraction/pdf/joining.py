"""Joins the files of a composite's parts into one, without loss on the decoded samples.

The original is joined from the parts' originals where all decode to one mode with one colour profile,
else from what is shown. One canvas, one part decoded at a time: memory is that of the joined picture.
Where anything is in the way (limits, a part that does not decode) there is no joined picture and the parts
stay as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from asset_pipeline.extraction.pdf import png
from asset_pipeline.extraction.pdf.composites import Composite, Tile
from asset_pipeline.extraction.pdf.files import File, difference_hash, digest_codes, png_mode, write
from asset_pipeline.extraction.pdf.icc import read_profile
from asset_pipeline.extraction.pdf.tiff import encode_tiff, stored_samples
from asset_pipeline.model import Picture
from asset_pipeline.policy import Limits

_FORMATS = ("PNG", "JPEG", "JPEG2000", "TIFF")
_CHANNELS = {"1": 1, "L": 1, "I;16": 1, "P": 1, "LA": 2, "RGB": 3, "RGBA": 4, "CMYK": 4}
_WORST_CASE = (OSError, ValueError, SyntaxError, MemoryError, Image.DecompressionBombError)

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class _Part:
    """A file and the box of the canvas that it fills."""

    path: Path
    picture: Picture
    left: int
    top: int


@dataclass(frozen=True, slots=True)
class _Layout:
    """Parts on a canvas."""

    parts: tuple[_Part, ...]
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class _Mode:
    """How the samples of all parts are to be read: Pillow's mode, and what belongs to it."""

    name: str
    bits: int
    icc: bytes | None = None
    palette: bytes | None = None
    transparency: bytes | int | None = None


def join(
    composite: Composite, folder: Path, pictures: Mapping[str, Picture], limits: Limits
) -> tuple[Picture, Picture] | None:
    """Original and display of ``composite``, written into ``folder``; None where they cannot be joined."""
    if composite.width * composite.height > limits.pixels:
        return None
    shown = _shown_layout(composite, folder, pictures)
    kept = _kept_layout(composite, folder, pictures)
    if shown is None:
        return None
    try:
        if kept is not None and _same_files(kept, shown):
            both = write(_assemble(kept, _shown_mode(kept.parts)), folder, ["original", "display"])
            return both, both
        display = _assemble(shown, _shown_mode(shown.parts))
        mode = _common(kept.parts) if kept is not None else None
        original = display if kept is None or mode is None else _assemble(kept, mode)
        if original.data == display.data:
            both = write(original, folder, ["original", "display"])
            return both, both
        return write(original, folder, ["original"]), write(display, folder, ["display"])
    except _WORST_CASE:
        return None


def _same_files(kept: _Layout, shown: _Layout) -> bool:
    return {(part.path, part.left, part.top) for part in kept.parts} == {
        (part.path, part.left, part.top) for part in shown.parts
    }


def _shown_layout(composite: Composite, folder: Path, pictures: Mapping[str, Picture]) -> _Layout | None:
    """The displays, which hold only what is seen: together they must fill a rectangle again."""
    placed = []
    for tile in composite.tiles:
        left, top, right, bottom = tile.piece.seen
        if tile.piece.row.display is None:
            continue
        picture = pictures[tile.piece.row.display]
        if (picture.width, picture.height) != (right - left, bottom - top):
            return None  # a mask finer than its picture: not the grid of the other parts
        placed.append((picture, tile.left + left, tile.top + top))
    if not placed:
        return None
    left, top = min(part[1] for part in placed), min(part[2] for part in placed)
    width = max(part[1] + part[0].width for part in placed) - left
    height = max(part[2] + part[0].height for part in placed) - top
    if sum(part[0].width * part[0].height for part in placed) != width * height:
        return None
    parts = [_Part(folder / picture.file, picture, x - left, y - top) for picture, x, y in placed]
    return _Layout(tuple(parts), width, height)


def _kept_layout(composite: Composite, folder: Path, pictures: Mapping[str, Picture]) -> _Layout | None:
    """The originals, laid out as before the page mirrored and turned them."""
    parts = []
    for tile in composite.tiles:
        left, top, width, height = _unturned(tile, composite.width, composite.height)
        picture = pictures[tile.piece.row.picture or ""]
        if (picture.width, picture.height) != (width, height):
            return None
        parts.append(_Part(folder / picture.file, picture, left, top))
    turned = composite.tiles[0].piece.turn % 2
    width, height = (composite.height, composite.width) if turned else (composite.width, composite.height)
    return _Layout(tuple(parts), width, height)


def _unturned(tile: Tile, across: int, down: int) -> Box:
    """(left, top, width, height) on the grid of the originals: turned back, then mirrored back."""
    left, top, width, height = tile.left, tile.top, tile.piece.width, tile.piece.height
    for _ in range(tile.piece.turn):
        left, top, width, height = top, across - left - width, height, width
        across, down = down, across
    return (across - left - width if tile.piece.mirrored else left), top, width, height


def _common(parts: Sequence[_Part]) -> _Mode | None:
    """The one mode that all files decode to without a change; None when they differ or it is not ours to write."""
    modes = {_mode_of(part) for part in parts}
    opaque = {mode for mode in modes if mode.transparency is None}
    if len(modes) == 2 and len(opaque) == 1:  # a part without a clear pixel does not say what clear is
        (rest,) = modes - opaque
        (plain,) = opaque
        if _Mode(rest.name, rest.bits, rest.icc, rest.palette) == plain:
            return rest
    if len(modes) != 1:
        return None
    (mode,) = modes
    return mode if mode.name in _CHANNELS and not _is_deep(parts[0].picture, mode) else None


def _is_deep(picture: Picture, mode: _Mode) -> bool:
    """Whether Pillow gives fewer bits than the file has."""
    return picture.bits > 8 and mode.name != "I;16"


def _mode_of(part: _Part) -> _Mode:
    with Image.open(part.path, formats=_FORMATS) as opened:
        palette = opened.getpalette("RGB") if opened.mode == "P" else None
        transparency = opened.info.get("transparency")
        return _Mode(
            opened.mode,
            part.picture.bits if opened.mode in ("1", "P") else 16 if opened.mode == "I;16" else 8,
            opened.info.get("icc_profile"),
            bytes(palette) if palette is not None else None,
            transparency if isinstance(transparency, (bytes, int)) else None,
        )


def _shown_mode(parts: Sequence[_Part]) -> _Mode:
    """A mode that holds the pixels of all displays, which are gray or sRGB of eight bits at most."""
    common = _common(parts)
    if common is not None:
        return common
    names = {part.picture.mode for part in parts}
    alpha = any(part.picture.has_alpha for part in parts)
    gray = names <= {"1", "L", "LA"}
    return _Mode({(True, True): "LA", (True, False): "L", (False, True): "RGBA", (False, False): "RGB"}[gray, alpha], 8)


def _assemble(layout: _Layout, mode: _Mode) -> File:
    channels = _CHANNELS[mode.name]
    deep = mode.name == "I;16"
    canvas: NDArray[Any] = np.empty((layout.height, layout.width, channels), np.uint16 if deep else np.uint8)
    for part in layout.parts:
        with Image.open(part.path, formats=_FORMATS) as opened:
            samples = np.asarray(opened if opened.mode == mode.name else opened.convert(mode.name))
        if samples.shape[:2] != (part.picture.height, part.picture.width):
            raise ValueError("size")
        box = slice(part.top, part.top + samples.shape[0]), slice(part.left, part.left + samples.shape[1])
        canvas[box] = samples.reshape(*samples.shape[:2], channels)
    profile = read_profile(mode.icc) if mode.icc else None
    icc = mode.icc if profile is not None and _fits(profile.components, mode.name) else None
    name = profile.name if profile is not None and icc is not None else None
    return _tiff(canvas, icc, name) if mode.name == "CMYK" else _png(canvas, mode, icc, name)


def _fits(components: int, mode: str) -> bool:
    return components == {"P": 3, "CMYK": 4}.get(mode, 1 if mode in ("1", "L", "LA", "I;16") else 3)


def _png(canvas: NDArray[Any], mode: _Mode, icc: bytes | None, profile: str | None) -> File:
    palette = None if mode.palette is None else np.frombuffer(mode.palette, np.uint8).reshape(-1, 3)[: 1 << mode.bits]
    clear = mode.transparency
    alphas = bytes([255] * clear + [0]) if palette is not None and isinstance(clear, int) else clear
    gray = clear if palette is None and isinstance(clear, int) else None
    if mode.name == "1" and gray is not None:
        gray = min(gray, 1)
    data = png.encode_png(
        canvas,
        mode.bits,
        palette=palette,
        alphas=alphas if isinstance(alphas, bytes) else None,
        transparent_gray=gray,
        icc=icc,
    )
    height, width, channels = canvas.shape
    shown = canvas
    if palette is not None:
        shown = palette[np.minimum(canvas[:, :, 0], len(palette) - 1)]
    elif mode.name in ("1", "I;16"):
        shown = canvas * np.uint8(255) if mode.name == "1" else (canvas >> 8).astype(np.uint8)
    return File(
        data,
        "png",
        "image/png",
        width,
        height,
        mode.bits,
        png_mode(channels, mode.bits, palette is not None),
        has_alpha=channels in (2, 4) or clear is not None,
        icc=profile,
        pixel_sha256=digest_codes(canvas, mode.bits, palette=palette is not None),
        phash=difference_hash(shown if channels in (1, 3) else shown[:, :, : channels - 1]),
    )


def _tiff(canvas: NDArray[Any], icc: bytes | None, profile: str | None) -> File:
    height, width, _ = canvas.shape
    return File(
        encode_tiff(canvas, 8, "DeviceCMYK", icc=icc, description="DeviceCMYK samples"),
        "tif",
        "image/tiff",
        width,
        height,
        8,
        "CMYK",
        icc=profile,
        pixel_sha256=hashlib.sha256(stored_samples(canvas, 8, "DeviceCMYK").data).hexdigest(),
    )
