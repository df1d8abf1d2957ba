"""The display rendition: what the viewer shows of a picture, on its own pixel grid, in sRGB.

The original file itself where it already is that (the same object then); else PNG. A stencil is drawn
in its paint colour with the unpainted part transparent. Palettes stay palettes where nothing but the
placing changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf import png
from asset_pipeline.extraction.pdf.colour import read_space
from asset_pipeline.extraction.pdf.convert import Shown, effective_decode, paint_colour, palette_colours
from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.files import File, png_file, sparse
from asset_pipeline.extraction.pdf.icc import read_profile
from asset_pipeline.extraction.pdf.jpeg import overrides_transform
from asset_pipeline.extraction.pdf.opening import Opened
from asset_pipeline.extraction.pdf.originals import fits_png
from asset_pipeline.extraction.pdf.placing import place, stays_as_is
from asset_pipeline.extraction.pdf.showing import has_mask, masked, painted
from asset_pipeline.policy import Limits

_BLACK, _WHITE = (0, 0, 0), (255, 255, 255)


def original_is_display(opened: Opened, draw: Draw) -> bool:
    """Whether the original file, opened by any viewer, shows exactly what the page shows."""
    if opened.stencil or not opened.space.plain or has_mask(opened.image):
        return False
    if not stays_as_is(draw, opened.width, opened.height):
        return False
    if opened.jpeg is not None:
        return _jpeg_describes_itself(opened)
    if opened.jpx is not None or not fits_png(opened.space, opened.bits):
        return False
    return effective_decode(_decode_array(opened), opened.space, opened.bits) is None


def display_of(opened: Opened, draw: Draw, limits: Limits) -> tuple[File, bool]:
    """The display as PNG, and whether its colour fell back."""
    if opened.stencil:
        return _stencil(opened, draw, limits)
    if not has_mask(opened.image) and opened.space.family == "Indexed" and opened.jpx is None and opened.bits <= 8:
        colours = palette_colours(opened.space)
        if colours.ndim == 2 and effective_decode(_decode_array(opened), opened.space, opened.bits) is None:
            return _palette(opened, draw, colours), False
    colours, alpha = masked(opened, limits)
    colours = place(colours, draw)
    if alpha is not None:
        alpha = place(alpha, draw)
        if bool((alpha == 255).all()):
            alpha = None
    return _encode(colours, alpha, opened.bits), False


def _jpeg_describes_itself(opened: Opened) -> bool:
    facts, codec = opened.jpeg, opened.stored.codec
    if facts is None or codec is None or facts.components not in (1, 3) or facts.orientation != 1:
        return False
    transform = codec.number("/ColorTransform", -1)
    if overrides_transform(facts, None if transform < 0 else transform):
        return False
    if opened.space.family == "Indexed" or effective_decode(_decode_array(opened), opened.space, 8) is not None:
        return False
    if facts.icc is not None:
        profile = read_profile(facts.icc)
        if profile is None or not profile.plain or profile.components != facts.components:
            return False
    image = opened.image
    return (image.get("/Width"), image.get("/Height")) == (facts.width, facts.height)


def _stencil(opened: Opened, draw: Draw, limits: Limits) -> tuple[File, bool]:
    colour, fallback = _BLACK, False
    if draw.paint is not None and not draw.paint.pattern:
        try:
            colour = paint_colour(read_space(draw.paint.space, limits), draw.paint.components)
        except Refusal:
            fallback = True
    clear: NDArray[np.uint8] = np.bitwise_xor(place(painted(opened), draw)[:, :, None], 1, dtype=np.uint8)
    palette: Shown = np.array([colour, _WHITE], np.uint8)
    transparent = bool(clear.any())
    data = png.encode_png(clear, 1, palette=palette, alphas=b"\x00\xff"[::-1] if transparent else None)
    shown = palette[sparse(clear)[:, :, 0]]
    return png_file(data, clear, 1, palette=True, has_alpha=transparent, shown=shown), fallback


def _palette(opened: Opened, draw: Draw, colours: Shown) -> File:
    codes = place(opened.codes(), draw)
    palette = colours[: 1 << opened.bits]
    data = png.encode_png(codes, opened.bits, palette=palette)
    return png_file(data, codes, opened.bits, palette=True, shown=palette[sparse(codes)[:, :, 0]])


def _encode(colours: Shown, alpha: Shown | None, bits: int) -> File:
    codes = colours[:, :, None] if colours.ndim == 2 else colours
    if alpha is not None:
        joined = np.concatenate((codes, alpha[:, :, None]), axis=2)
        return png_file(png.encode_png(joined, 8), joined, 8, palette=False, has_alpha=True, shown=colours)
    if bits == 1 and colours.ndim == 2 and bool(np.isin(colours, (0, 255)).all()):
        codes = np.right_shift(codes, 7, dtype=np.uint8)
        return png_file(png.encode_png(codes, 1), codes, 1, palette=False, shown=colours)
    return png_file(png.encode_png(codes, 8), codes, 8, palette=False, shown=colours)


def _decode_array(opened: Opened) -> object:
    return opened.image.get("/Decode", opened.image.get("/D"))
