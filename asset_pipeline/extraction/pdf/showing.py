"""What a picture looks like before it is placed: gray or sRGB samples, and alpha from its masks.

Masks are decoded as pictures of their own and composited here, because every library drops some:
PDFium's bitmap drops all of them. Where base and mask differ in size, the smaller is repeated up to the
larger, per side, so that neither loses detail (a 2 x 2 base under a large mask carries the text).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pikepdf
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.colour import Space
from asset_pipeline.extraction.pdf.convert import Shown, effective_decode, paint_colour, to_shown
from asset_pipeline.extraction.pdf.isolate import decode_stream
from asset_pipeline.extraction.pdf.jpx import describes_itself
from asset_pipeline.extraction.pdf.opening import Opened, open_picture
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.limits import check_pixels

Alpha = NDArray[np.uint8]
_BLOCK = 256
_ALPHA_MODES = frozenset({"LA", "La", "PA", "RGBA", "RGBa"})


def has_mask(image: Any) -> bool:
    """Whether anything in the dictionary can make a pixel transparent."""
    return (
        isinstance(image.get("/SMask"), pikepdf.Stream)
        or isinstance(image.get("/Mask"), (pikepdf.Stream, pikepdf.Array))
        or bool(image.get("/SMaskInData", 0))
    )


def painted(opened: Opened) -> NDArray[np.uint8]:
    """Of a stencil: 1 where it paints (sample 0 unless Decode is [1 0]), ``(height, width)``."""
    codes: NDArray[np.uint8] = opened.codes()[:, :, 0]
    return codes if inverts(opened) else np.bitwise_xor(codes, 1, dtype=np.uint8)


def inverts(opened: Opened) -> bool:
    """Whether the Decode array of a stencil or a one-bit mask is [1 0]."""
    return effective_decode(opened.image.get("/Decode", opened.image.get("/D")), opened.space, 1) == (1.0, 0.0)


def colours_of(opened: Opened) -> Shown:
    """Gray or sRGB of a picture, Decode applied, masks not."""
    codes = opened.codes()
    if opened.jpx is not None:
        return _colours_of_jpx(opened, codes)
    decode = effective_decode(opened.image.get("/Decode", opened.image.get("/D")), opened.space, opened.bits)
    return to_shown(codes, opened.bits, opened.space, decode)


def masked(opened: Opened, limits: Limits) -> tuple[Shown, Alpha | None]:
    """Colours and alpha on one grid; alpha None where every pixel is opaque."""
    alpha, matte = _alpha_of(opened, limits)
    colours = colours_of(opened)
    if alpha is None or bool((alpha == 255).all()):
        return colours, None
    height = max(colours.shape[0], alpha.shape[0])
    width = max(colours.shape[1], alpha.shape[1])
    check_pixels(width, height, limits)
    colours, alpha = _grow(colours, width, height), _grow(alpha, width, height)
    if matte is not None:
        colours = _remove_matte(colours, alpha, matte)
    return colours, alpha


def _colours_of_jpx(opened: Opened, codes: Any) -> Shown:
    facts, space = opened.jpx, opened.space
    if facts is None:
        raise Refusal(Reason.UNSUPPORTED_CODEC)
    channels = codes.shape[2] - (1 if opened.jpx_mode in _ALPHA_MODES else 0)
    declared = opened.image.get("/ColorSpace")
    if facts.bits == 8 and channels == space.components == 1 and declared is not None:
        # The standard has Decode ignored here. Viewers apply it, PDFium for one component.
        decode = effective_decode(opened.image.get("/Decode"), space, 8)
        if decode is not None or space.family == "Indexed":
            return to_shown(codes[:, :, :1], 8, space, decode)
    if describes_itself(facts) and space.plain and space.components == channels:
        shown: Shown = codes[:, :, 0] if channels == 1 else codes[:, :, :channels]
        return np.ascontiguousarray(shown, np.uint8)
    decoded: Shown = decode_stream(
        opened.stored.data,
        opened.width,
        opened.height,
        "JPXDecode",
        space=space.source if declared is not None else None,
        bits=None,
    )
    return decoded


def _alpha_of(opened: Opened, limits: Limits) -> tuple[Alpha | None, tuple[int, int, int] | None]:
    image = opened.image
    in_data = image.get("/SMaskInData", 0)
    if opened.jpx is not None and in_data in (1, 2):
        codes = opened.codes()
        if opened.jpx_mode in _ALPHA_MODES:
            matte = (_matte_of(image, opened.space) or (0, 0, 0)) if in_data == 2 else None
            return np.ascontiguousarray(codes[:, :, -1], np.uint8), matte
    soft = image.get("/SMask")
    if isinstance(soft, pikepdf.Stream):
        _refuse_loop(image, soft)
        return _gray_of(open_picture(soft, limits, mask=True)), _matte_of(soft, opened.space)
    mask = image.get("/Mask")
    if isinstance(mask, pikepdf.Stream):
        _refuse_loop(image, mask)
        stencil = open_picture(mask, limits, mask=True)
        if stencil.bits == 1:
            return painted(stencil) * np.uint8(255), None
        return np.uint8(255) - _gray_of(stencil), None
    if isinstance(mask, pikepdf.Array):
        return _key_out(opened, mask), None
    return None, None


def _refuse_loop(image: Any, mask: Any) -> None:
    if mask.is_indirect and mask.objgen == image.objgen:
        raise Refusal(Reason.STRUCTURE_LOOP, "mask")


def _gray_of(mask: Opened) -> Alpha:
    shown = colours_of(mask)
    if shown.ndim == 2:
        return shown
    luminance: Alpha = (shown @ np.array([0.299, 0.587, 0.114])).round().astype(np.uint8)
    return luminance


def _key_out(opened: Opened, ranges: Any) -> Alpha | None:
    """Colour key (PDF 8.9.6.4): a pixel is masked when all its codes, before Decode, are in range."""
    codes = opened.codes()
    count = opened.space.components
    bounds = [item for item in ranges if isinstance(item, int)]
    if len(bounds) < 2 * count or codes.shape[2] < count:
        return None
    hit = np.ones(codes.shape[:2], bool)
    for index in range(count):
        hit &= (codes[:, :, index] >= bounds[2 * index]) & (codes[:, :, index] <= bounds[2 * index + 1])
    return np.where(hit, 0, 255).astype(np.uint8)


def _matte_of(soft: Any, space: Space) -> tuple[int, int, int] | None:
    matte = soft.get("/Matte")
    if not isinstance(matte, pikepdf.Array) or len(matte) != space.components:
        return None
    try:
        return paint_colour(space, [float(number) for number in matte])
    except (TypeError, ValueError):
        raise Refusal(Reason.MALFORMED_STREAM, "matte") from None


def _grow(samples: Any, width: int, height: int) -> Any:
    """Repeat pixels up to the larger grid; nothing is invented between them."""
    if samples.shape[0] != height:
        samples = samples[np.arange(height) * samples.shape[0] // height]
    if samples.shape[1] != width:
        samples = samples[:, np.arange(width) * samples.shape[1] // width]
    return samples


def _remove_matte(colours: Shown, alpha: Alpha, matte: tuple[int, int, int]) -> Shown:
    """Undo preblending: c = m + (c' - m) / alpha (PDF 11.6.5.2), in blocks to stay small."""
    if colours.ndim == 2 and len(set(matte)) > 1:
        colours = np.repeat(colours[:, :, None], 3, axis=2)
    out = np.empty_like(colours)
    ground: Any = np.array(matte if colours.ndim == 3 else matte[0], np.float32)
    for top in range(0, colours.shape[0], _BLOCK):
        part = colours[top : top + _BLOCK].astype(np.float32)
        opacity = alpha[top : top + _BLOCK].astype(np.float32)
        if colours.ndim == 3:
            opacity = opacity[:, :, None]
        clear = ground + (part - ground) * 255.0 / np.maximum(opacity, 1.0)
        out[top : top + _BLOCK] = np.where(opacity > 0, np.clip(np.rint(clear), 0, 255), part).astype(np.uint8)
    return out
