"""The original rendition: the stream's own bytes where they are a file, else the samples without loss.

JPEG and JPX pass through untouched, whatever masks or Decode say; a bare JPEG 2000 codestream is kept
bare (.jp2, image/jp2: readers go by its signature). Flate data with PNG predictors is wrapped. Other
samples become PNG with their ICC profile, or TIFF where PNG cannot hold them (several inks, CMYK, Lab).
One-component spaces (Separation, DeviceN of one, CalGray) are gray PNG of the stored codes. RGB of 1, 2
or 4 bits is scaled to 8, which loses nothing. A stencil is a 1-bit PNG in one polarity: black (0) is
painted and opaque, white (1) is transparent.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf import png
from asset_pipeline.extraction.pdf.colour import Space
from asset_pipeline.extraction.pdf.convert import to_shown
from asset_pipeline.extraction.pdf.files import File, difference_hash, digest_file, png_file, sparse
from asset_pipeline.extraction.pdf.icc import read_profile
from asset_pipeline.extraction.pdf.jpeg import check_scan
from asset_pipeline.extraction.pdf.jpx import jpx_mode
from asset_pipeline.extraction.pdf.opening import Opened
from asset_pipeline.extraction.pdf.samples import to_eight
from asset_pipeline.extraction.pdf.showing import painted
from asset_pipeline.extraction.pdf.tiff import encode_tiff, stored_samples, tiff_mode
from asset_pipeline.reasons import Reason

_JPEG_MODES = {1: "L", 3: "RGB", 4: "CMYK"}


def original_of(opened: Opened, *, pixels: bool) -> File:
    """The original of a picture whose data is proved sound on the way. Raises Refusal otherwise."""
    if opened.jpeg is not None:
        return _jpeg(opened, pixels)
    if opened.jpx is not None:
        return _jpx(opened, pixels)
    if opened.stencil:
        return _stencil(opened)
    if fits_png(opened.space, opened.bits):
        return _png(opened)
    return _tiff(opened)


def fits_png(space: Space, bits: int) -> bool:
    """Whether PNG holds samples of ``space`` as they are."""
    if space.family == "Indexed" and space.base is not None:
        return bits <= 8 and space.base.family != "Lab" and space.base.components in (1, 3)
    return space.components == 1 or (space.components == 3 and space.family not in ("Lab", "DeviceN"))


def _jpeg(opened: Opened, pixels: bool) -> File:
    facts, data = opened.jpeg, opened.stored.data
    if facts is None:
        raise Refusal(Reason.UNSUPPORTED_CODEC)
    # Always this decode, even where the display had its own: the row must depend on the bytes alone.
    shown = check_scan(data, facts)
    profile = read_profile(facts.icc) if facts.icc else None
    return File(
        data,
        "jpg",
        "image/jpeg",
        facts.width,
        facts.height,
        8,
        _JPEG_MODES[facts.components],
        icc=profile.name if profile else None,
        pixel_sha256=digest_file(data, "JPEG") if pixels else None,
        phash=difference_hash(shown[:, :, :3]),
    )


def _jpx(opened: Opened, pixels: bool) -> File:
    facts, data = opened.jpx, opened.stored.data
    if facts is None:
        raise Refusal(Reason.UNSUPPORTED_CODEC)
    codes = opened.codes()
    mode = jpx_mode(data)
    profile = read_profile(facts.icc) if facts.icc else None
    return File(
        data,
        "jp2",
        "image/jp2",
        facts.width,
        facts.height,
        facts.bits,
        mode,
        has_alpha=mode in ("LA", "RGBA", "PA"),
        icc=profile.name if profile else None,
        pixel_sha256=digest_file(data, "JPEG2000") if pixels else None,
        phash=difference_hash(codes[:, :, :1] if codes.shape[2] < 3 else codes[:, :, :3]),
    )


def _stencil(opened: Opened) -> File:
    codes = np.bitwise_xor(painted(opened), 1, dtype=np.uint8)[:, :, None]
    clear = bool(codes.any())
    data = png.encode_png(codes, 1, transparent_gray=1 if clear else None)
    return png_file(data, codes, 1, palette=False, has_alpha=clear, shown=sparse(codes) * np.uint8(255))


def _png(opened: Opened) -> File:
    codes, bits, space = opened.codes(), opened.bits, opened.space
    palette = _palette_of(space, bits)
    coloured = space.base if space.family == "Indexed" and space.base is not None else space
    profile = coloured.profile if coloured.profile and coloured.profile.data[16:20] in (b"RGB ", b"GRAY") else None
    if profile is not None and palette is not None and profile.components != 3:
        profile = None  # a palette is RGB, its gray profile would not fit
    icc = profile.data if profile else None
    body = wrappable_body(opened)
    if body is not None:
        kind = png.PALETTE if palette is not None else png.GRAY if space.components == 1 else png.RGB
        data = png.wrap_png(body, opened.width, opened.height, bits, kind, palette=palette, icc=icc)
    else:
        if space.components == 3 and bits < 8:
            codes, bits = to_eight(codes, bits), 8
        data = png.encode_png(codes, bits, palette=palette, icc=icc)
    few = sparse(codes)
    shown = palette[few[:, :, 0]] if palette is not None else to_eight(few, bits)
    return png_file(data, codes, bits, palette=palette is not None, icc=profile.name if profile else None, shown=shown)


def wrappable_body(opened: Opened) -> bytes | None:
    """The stream itself where it is the body of a PNG of the same geometry: clean, complete, not longer."""
    stored, predictor = opened.stored, opened.stored.predictor
    if predictor is None or predictor.kind < 10 or stored.last is None or stored.last.name != "FlateDecode":
        return None
    if opened.components == 3 and opened.bits < 8:
        return None
    opened.codes()
    return stored.data if opened.wraps else None


def _tiff(opened: Opened) -> File:
    codes, bits, space = opened.codes(), opened.bits, opened.space
    if space.family == "Indexed" and space.base is not None:
        table = np.frombuffer(space.palette, np.uint8).reshape(256, space.base.components)
        codes, bits, space = table[codes[:, :, 0]], 8, space.base
    if bits < 8:
        codes, bits = to_eight(codes, bits), 8
    icc = space.profile.data if space.profile else None
    notes = f"{space.family} samples"
    if space.family == "Lab":
        notes += ", Range " + " ".join(f"{bound:g}" for bound in space.ranges[2:])
    return File(
        encode_tiff(codes, bits, space.family, icc=icc, description=notes),
        "tif",
        "image/tiff",
        opened.width,
        opened.height,
        bits,
        tiff_mode(space.family, space.components) + (";16" if bits == 16 else ""),
        icc=space.profile.name if space.profile else None,
        pixel_sha256=hashlib.sha256(stored_samples(codes, bits, space.family).data).hexdigest(),
    )


def _palette_of(space: Space, bits: int) -> NDArray[np.uint8] | None:
    """Entries for every code that ``bits`` can name, in the base space's own samples as RGB triples."""
    if space.family != "Indexed" or space.base is None:
        return None
    entries = np.frombuffer(space.palette, np.uint8).reshape(256, space.base.components)[: 1 << bits]
    if space.base.plain and space.base.components == 1:
        entries = to_shown(entries[None], 8, space.base, None)[0][:, None]
    return np.ascontiguousarray(np.broadcast_to(entries, (len(entries), 3)))
