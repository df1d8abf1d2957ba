"""One drawn picture to files: gates, original, display, and what went wrong if anything did.

``render_picture`` never raises for bad input: whatever a picture does, the answer is a ``Rendered`` with
a reason. Where it is drawn is the walker's business; joining, naming and counting the engine's. The cache
holds rows, never pixels, so that memory stays flat over a document.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pikepdf
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.colour import printed_space, read_space
from asset_pipeline.extraction.pdf.displays import display_of, original_is_display
from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.files import File, write
from asset_pipeline.extraction.pdf.opening import Opened, open_picture, whole_number
from asset_pipeline.extraction.pdf.originals import original_of
from asset_pipeline.extraction.pdf.streams import filter_names
from asset_pipeline.model import LARGEST_DEPTH, Flag, Picture
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

_BAD_INPUT = (
    pikepdf.PikepdfError,
    zlib.error,
    struct.error,
    OSError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    RuntimeError,
    SyntaxError,
)
"""What libraries raise for objects that are not what they should be. The border of one picture: whatever
its dictionary holds, the next picture must come out."""


_MOST_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class Rendered:
    """What became of a picture. Declared facts are from its dictionary; ``reason`` None means sound.

    ``display`` is None where the picture is not shown, and for both where there is a reason. When the
    original is the display, both are the same row with both renditions.
    """

    width: int
    height: int
    filter: list[str]
    colour_space: str | None
    bits: int | None
    original: Picture | None = None
    display: Picture | None = None
    flags: frozenset[Flag] = frozenset()
    reason: Reason | None = None


@dataclass(slots=True)
class PictureCache:
    """Rows of pictures already rendered in this document, by object and by how they are placed."""

    rows: dict[tuple[object, ...], Rendered] = field(default_factory=dict)

    def find_or(self, key: tuple[object, ...] | None, render: Callable[[], Rendered]) -> Rendered:
        """The row under ``key``, rendered at first need. Without a key nothing is kept."""
        if key is None:
            return render()
        if key not in self.rows:
            if len(self.rows) >= _MOST_ROWS:
                self.rows.clear()
            self.rows[key] = render()
        return self.rows[key]


def render_picture(
    pdf: pikepdf.Pdf,  # noqa: ARG001 - keeps the document of ``draw.image`` alive during the call
    draw: Draw,
    out: Path,
    policy: Policy,
    *,
    pixels: bool = False,
    cache: PictureCache | None = None,
) -> Rendered:
    """Render ``draw`` into files in ``out``. ``pixels`` asks for pixel digests of passed-through files too."""
    return (cache or PictureCache()).find_or(_key(draw, pixels), lambda: _render(draw, out, policy, pixels))


def _key(draw: Draw, pixels: bool) -> tuple[object, ...] | None:
    if draw.refused is not None:
        return None
    identity: object = draw.image.objgen
    if draw.object_id is None:  # inline: a page may hold the same one thousands of times
        identity = draw.image.stream_dict.unparse(), hashlib.sha256(draw.image.read_raw_bytes()).digest()
    paint = None
    if draw.paint is not None:
        paint = (draw.paint.space.unparse(resolved=True), draw.paint.components, draw.paint.pattern)
    crop = tuple(round(bound, 6) for bound in draw.crop)
    default = None if draw.default_space is None else draw.default_space.unparse(resolved=False)
    return identity, draw.turn % 4, draw.mirrored, crop, draw.shown, paint, default, pixels


def _render(draw: Draw, out: Path, policy: Policy, pixels: bool) -> Rendered:
    facts = _declared(draw.image)
    if draw.refused is not None:
        return replace(facts, reason=draw.refused)
    try:
        kept, shown, flags = _prepare(draw, policy, pixels)
    except Refusal as refusal:
        reason = refusal.reason
    except Image.DecompressionBombError:
        reason = Reason.PIXEL_BUDGET_EXCEEDED
    except MemoryError:
        reason = Reason.MEMORY_EXCEEDED
    except _BAD_INPUT:
        reason = Reason.MALFORMED_STREAM
    else:  # a full disk is not the picture's fault: writing is outside the border
        if shown is kept:
            both = write(kept, out, ["original", "display"])
            return replace(facts, original=both, display=both, flags=flags)
        original = write(kept, out, ["original"])
        display = write(shown, out, ["display"]) if shown is not None else None
        return replace(facts, original=original, display=display, flags=flags)
    return replace(facts, reason=reason)


def _prepare(draw: Draw, policy: Policy, pixels: bool) -> tuple[File, File | None, frozenset[Flag]]:
    """Original, display (the same file where it is the same, None where it is not shown) and flags."""
    opened = _open(draw, policy)
    seen = _as_seen(opened, draw, policy)
    shown: File | None = None
    fallback = seen.space.fallback
    if draw.shown and not original_is_display(seen, draw):
        # The display comes first: it needs the full decode, which proves the original as well.
        shown, paint_fell_back = display_of(seen, draw, policy.limits)
        fallback = fallback or paint_fell_back
    flags = frozenset({Flag.COLOUR_FALLBACK} if fallback else ())
    kept = original_of(opened, pixels=pixels)
    if draw.shown and (shown is None or shown.data == kept.data):
        shown = kept
    return kept, shown, flags


def _open(draw: Draw, policy: Policy) -> Opened:
    """The picture, in the space that the resources around it hold under the name that it gives for one."""
    try:
        return open_picture(draw.image, policy.limits)
    except Refusal as refusal:
        if refusal.reason is not Reason.UNSUPPORTED_COLOUR_SPACE or draw.default_space is None:
            raise
        return open_picture(draw.image, policy.limits, space=read_space(draw.default_space, policy.limits))


def _as_seen(opened: Opened, draw: Draw, policy: Policy) -> Opened:
    """The picture in the colour space that the resources around it put in place of its device space, if they do."""
    if draw.default_space is None or opened.jpx is not None:
        return opened
    try:
        space = read_space(draw.default_space, policy.limits)
    except Refusal:
        return opened
    if space.components != opened.space.components or space.family in ("Indexed", "Pattern"):
        return opened
    return open_picture(draw.image, policy.limits, space=space)


def _declared(image: Any) -> Rendered:
    """Width, height, filters, colour space, bits, as the dictionary states them; never raises."""
    width, height = whole_number(image, "/Width", "/W"), whole_number(image, "/Height", "/H")
    names = filter_names(image)
    stencil = image.get("/ImageMask", image.get("/IM")) is True
    space = printed_space(image.get("/ColorSpace", image.get("/CS")))
    bits = image.get("/BitsPerComponent", image.get("/BPC"))
    if stencil:
        bits = 1
    elif not isinstance(bits, int) or isinstance(bits, bool) or abs(bits) > LARGEST_DEPTH:
        last = names[-1] if names else ""
        bits = 1 if last in ("CCITTFaxDecode", "JBIG2Decode") else 8 if last in ("DCTDecode", "JPXDecode") else None
    return Rendered(width, height, names, space, bits)
