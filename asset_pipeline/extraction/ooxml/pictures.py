"""The bytes of a placed picture to files: gates, original, display, and what went wrong if anything did.

JPEG and JPEG 2000 go the way of PDF pictures, wrapped in a picture object of their own. Of the others the
original is the part itself where that is a file the archive keeps (PNG, TIFF, WebP), else a PNG without
loss (GIF, BMP). Every picture is decoded in full before it is believed, with the one decoder of its true
type: Pillow never chooses. Blends that a document asks for beside cropping and turning (transparency,
recolouring) are not applied; the row says so.
"""

from __future__ import annotations

import io
import struct
import warnings
import zlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pikepdf
from PIL import Image, UnidentifiedImageError

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.pdf import png
from asset_pipeline.extraction.pdf.colour import CMYK, Space, read_space
from asset_pipeline.extraction.pdf.convert import Shown, to_shown
from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.files import File, Rendition, difference_hash, digest_file, png_file, write
from asset_pipeline.extraction.pdf.icc import read_profile
from asset_pipeline.extraction.pdf.pictures import Rendered, render_picture
from asset_pipeline.extraction.pdf.placing import place, stays_as_is
from asset_pipeline.extraction.withheld import WithheldFiles
from asset_pipeline.model import Kind, Placement
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.rasters import Raster, check_raster, plain_type

_BAD_INPUT = (
    *(pikepdf.PdfError, zlib.error, struct.error, OSError, ValueError, TypeError, LookupError),
    *(ArithmeticError, RuntimeError, SyntaxError),
)
_WRAPPED = {"image/jpeg": pikepdf.Name.DCTDecode, "image/jp2": pikepdf.Name.JPXDecode}
_DEVICES = {1: pikepdf.Name.DeviceGray, 3: pikepdf.Name.DeviceRGB, 4: pikepdf.Name.DeviceCMYK}
_PROFILES: dict[int, tuple[bytes, ...]] = {1: (b"GRAY",), 3: (b"RGB ",), 4: (b"CMYK",)}
_DECODERS = {
    "image/png": "PNG",
    "image/gif": "GIF",
    "image/bmp": "BMP",
    "image/tiff": "TIFF",
    "image/webp": "WEBP",
}
_KEPT = {"image/png": "png", "image/tiff": "tif", "image/webp": "webp"}
_SHOWN = frozenset({"image/png", "image/webp"})
_ALPHA = frozenset({"LA", "PA", "RGBA", "La", "RGBa"})
_BITS = {"1": 1, "I;16": 16, "I;16B": 16, "I;16L": 16}
_FAMILIES = {"1": "DeviceGray", "L": "DeviceGray", "LA": "DeviceGray", "P": "Indexed", "CMYK": "DeviceCMYK"}


class Laid(NamedTuple):
    """How a picture lies: quarter turns clockwise, flipped before turning, visible box of its unit square."""

    turn: int
    mirrored: bool
    crop: tuple[float, float, float, float]
    shown: bool


@dataclass(slots=True)
class PictureFiles:
    """Renders the pictures of one document; each part is rendered once for each way it lies."""

    package: Package
    out: Path
    policy: Policy
    pixels: bool
    withheld: WithheldFiles
    _known: dict[tuple[str, Laid], Rendered] = field(default_factory=dict)

    def render(self, part: str | None, reason: Reason | None, laid: Laid) -> Rendered:
        """Files of the picture in ``part``; with a ``reason`` there are none. Never raises for bad input."""
        if part is None or reason is not None:
            return Rendered(0, 0, [], None, None, reason=reason or Reason.TRUNCATED_STREAM)
        if (part, laid) not in self._known:
            self._known[part, laid] = self._render(part, laid)
        return self._known[part, laid]

    def withhold(self, page: int, row: Placement, part: str | None) -> None:
        """Keep the bytes of ``part`` where ``row`` is quarantined."""
        if part is not None:
            most = self.policy.limits.encoded_bytes
            self.withheld.add(page, row, part, lambda: self.package.read(part, most, Reason.PAYLOAD_TOO_LARGE))

    def _render(self, part: str, laid: Laid) -> Rendered:
        limits = self.policy.limits
        declared = plain_type(self.package.content_type(part))
        facts = Rendered(0, 0, [declared] if declared else [], None, None)
        try:
            data = self.package.read(part, limits.encoded_bytes, Reason.PAYLOAD_TOO_LARGE)
            raster = check_raster(data, declared, limits)
            facts = replace(facts, width=raster.width, height=raster.height, filter=[raster.media_type])
            if raster.media_type in _WRAPPED:
                return self._render_wrapped(data, raster, laid, facts)
            kept, shown, facts = self._prepare(data, raster, laid, facts)
        except Refusal as refusal:
            return replace(facts, reason=refusal.reason)
        except Image.DecompressionBombError:
            return replace(facts, reason=Reason.PIXEL_BUDGET_EXCEEDED)
        except _BAD_INPUT:
            return replace(facts, reason=Reason.MALFORMED_STREAM)
        # A full disk is not the picture's fault: writing is outside the border.
        renditions: list[Rendition] = ["original", "display"] if shown is kept else ["original"]
        original = write(kept, self.out, renditions)
        display = original if shown is kept else write(shown, self.out, ["display"]) if shown is not None else None
        return replace(facts, original=original, display=display)

    def _render_wrapped(self, data: bytes, raster: Raster, laid: Laid, facts: Rendered) -> Rendered:
        with pikepdf.new() as pdf:
            image = _wrap(pdf, data, raster)
            rendered = render_picture(pdf, _draw(image, laid), self.out, self.policy, pixels=self.pixels)
        return replace(rendered, filter=facts.filter)

    def _prepare(self, data: bytes, raster: Raster, laid: Laid, facts: Rendered) -> tuple[File, File | None, Rendered]:
        """Original, display (the same file where it is the same, None where it is not shown) and facts."""
        picture = _decode(data, raster, self.policy.limits)
        facts = replace(facts, colour_space=_FAMILIES.get(picture.mode, "DeviceRGB"), bits=_BITS.get(picture.mode, 8))
        colours, alpha, plain = _colours(picture, raster, self.policy.limits)
        if raster.media_type == "image/png":
            facts = replace(facts, bits=raster.facts.bits)
        kept = self._original(data, raster, picture, colours, alpha)
        if not laid.shown:
            return kept, None, facts
        with pikepdf.new() as pdf:
            draw = _draw(pikepdf.Stream(pdf, b""), laid)
        same = (
            plain
            and kept.media_type in _SHOWN
            and kept.has_alpha == (alpha is not None)
            and stays_as_is(draw, picture.width, picture.height)
            and not getattr(raster.facts, "oriented", False)
        )
        if same:
            return kept, kept, facts
        colours, alpha = place(colours, draw), place(alpha, draw) if alpha is not None else None
        shown = _encode(colours, None if alpha is None or bool((alpha == 255).all()) else alpha)
        return kept, kept if shown.data == kept.data else shown, facts

    def _original(self, data: bytes, raster: Raster, picture: Image.Image, colours: Shown, alpha: Any) -> File:
        extension = _KEPT.get(raster.media_type)
        if extension is None:
            return _encode(colours, alpha)
        bits, mode = _BITS.get(picture.mode, 8), picture.mode
        if raster.media_type == "image/png":
            bits = raster.facts.bits
        deep = bits == 16 and mode not in _BITS  # Pillow has no mode for it and gives the high bytes
        if deep:
            mode = "RGB;16B"
        profile = _profile(raster)
        return File(
            data,
            extension,
            raster.media_type,
            picture.width,
            picture.height,
            bits,
            mode,
            has_alpha=picture.mode in _ALPHA or picture.has_transparency_data,
            icc=profile,
            pixel_sha256=digest_file(data, _DECODERS[raster.media_type]) if self.pixels and not deep else None,
            phash=difference_hash(colours),
        )


def _wrap(pdf: pikepdf.Pdf, data: bytes, raster: Raster) -> Any:
    """The picture as an object of ``pdf``, with the colour that its own file states."""
    image: Any = pikepdf.Stream(pdf, data)
    image.Width, image.Height, image.Filter = raster.width, raster.height, _WRAPPED[raster.media_type]
    if raster.media_type == "image/jp2":
        return image
    facts = raster.facts
    image.BitsPerComponent = 8
    image.ColorSpace = _DEVICES[facts.components]
    if facts.icc is not None and facts.icc[16:20] in _PROFILES[facts.components]:
        image.ColorSpace = _icc_based(pdf, facts.icc, facts.components)
    if facts.components == 4 and facts.adobe_transform is not None:
        # Programs of Adobe write inks the other way round, and every reader of such files knows it.
        image.Decode = pikepdf.Array([1, 0] * 4)
    return image


def _icc_based(pdf: pikepdf.Pdf, icc: bytes, components: int) -> pikepdf.Array:
    profile = pikepdf.Stream(pdf, icc)
    profile["/N"] = components
    return pikepdf.Array([pikepdf.Name.ICCBased, profile])


def _draw(image: pikepdf.Stream, laid: Laid) -> Draw:
    nowhere = (0.0, 0.0, 0.0, 0.0)
    return Draw(
        kind=Kind.RASTER,
        order=1,
        image=image,
        object_id=None,
        matrix=(1.0, 0.0, 0.0, 1.0, 0.0, 0.0),
        bbox=nowhere,
        display_bbox=nowhere,
        turn=laid.turn,
        mirrored=laid.mirrored,
        crop=laid.crop,
        shown=laid.shown,
    )


def _decode(data: bytes, raster: Raster, limits: Limits) -> Image.Image:
    """The whole picture, decoded. Its size is the one that the gates allowed."""
    Image.MAX_IMAGE_PIXELS = limits.pixels
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            picture = Image.open(io.BytesIO(data), formats=(_DECODERS[raster.media_type],))
        except UnidentifiedImageError:
            raise Refusal(Reason.UNSUPPORTED_CODEC) from None
        except Image.DecompressionBombWarning:
            raise Refusal(Reason.PIXEL_BUDGET_EXCEEDED) from None
        if sorted(picture.size) != sorted((raster.width, raster.height)):
            raise Refusal(Reason.INVALID_DIMENSIONS, "header")
        try:
            picture.load()
        except OSError as error:
            reason = Reason.TRUNCATED_STREAM if "truncated" in str(error) else Reason.MALFORMED_STREAM
            raise Refusal(reason) from None
    return picture


def _colours(picture: Image.Image, raster: Raster, limits: Limits) -> tuple[Shown, Any, bool]:
    """Gray or sRGB, alpha where some pixel is not opaque, and whether the samples were that already."""
    alpha = None
    if picture.mode in _ALPHA or picture.has_transparency_data:
        whole = np.asarray(picture.convert("RGBA"))
        alpha = None if bool((whole[:, :, 3] == 255).all()) else np.ascontiguousarray(whole[:, :, 3])
        samples = np.ascontiguousarray(whole[:, :, :3])
        if picture.mode in ("LA", "L", "1"):
            samples = np.ascontiguousarray(samples[:, :, 0])
    else:
        samples = _opaque(picture)
    codes = samples[:, :, None] if samples.ndim == 2 else samples
    with pikepdf.new() as pdf:  # holds the profile while colours are converted
        space = _space(pdf, getattr(raster.facts, "icc", None), codes.shape[2], limits)
        if space is None or space.plain:
            return samples, alpha, True
        return to_shown(codes, 8, space, None), alpha, False


def _opaque(picture: Image.Image) -> Any:
    """Samples ``(height, width[, components])`` of 8 bits: gray, RGB or CMYK."""
    mode = picture.mode
    if mode == "1":
        return np.asarray(picture).astype(np.uint8) * np.uint8(255)
    if mode in ("I;16", "I;16B", "I;16L"):
        return (np.asarray(picture) >> 8).astype(np.uint8)
    if mode == "P":
        table = np.asarray(picture.convert("RGB"))
        gray = bool((table[:, :, 0] == table[:, :, 1]).all() and (table[:, :, 0] == table[:, :, 2]).all())
        return np.ascontiguousarray(table[:, :, 0]) if gray else table
    if mode in ("L", "RGB", "CMYK"):
        return np.asarray(picture)
    if mode in ("RGBX", "YCbCr", "LAB"):
        return np.asarray(picture.convert("RGB"))
    raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "mode")


def _space(pdf: pikepdf.Pdf, icc: bytes | None, components: int, limits: Limits) -> Space | None:
    """The colour space that a profile states; None where the samples are taken as they are."""
    if icc is not None and icc[16:20] in _PROFILES[components]:
        space = read_space(_icc_based(pdf, icc, components), limits)
        if not space.fallback:
            return space
    return CMYK if components == 4 else None


def _profile(raster: Raster) -> str | None:
    icc = getattr(raster.facts, "icc", None)
    profile = read_profile(icc) if icc else None
    return profile.name if profile else None


def _encode(colours: Shown, alpha: Any) -> File:
    """A PNG of what is shown: one bit where only black and white are, alpha only where it is given."""
    codes = colours[:, :, None] if colours.ndim == 2 else colours
    if alpha is not None:
        joined = np.concatenate((codes, alpha[:, :, None]), axis=2)
        return png_file(png.encode_png(joined, 8), joined, 8, palette=False, has_alpha=True, shown=colours)
    if colours.ndim == 2 and bool(np.isin(colours, (0, 255)).all()):
        codes = np.right_shift(codes, 7, dtype=np.uint8)
        return png_file(png.encode_png(codes, 1), codes, 1, palette=False, shown=colours)
    return png_file(png.encode_png(codes, 8), codes, 8, palette=False, shown=colours)
