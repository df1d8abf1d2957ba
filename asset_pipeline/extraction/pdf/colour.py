"""Colour spaces of pictures: read once into plain values, printed the way reports print them.

``plain`` spaces hold samples that already are sRGB or gray; all others are converted through PDFium
(``convert``). A corrupt ICC profile falls back to the alternate that the document names, else to the device
space of its component count, flagged.
Missing entries of a short palette are zero in the base space: black, as viewers paint them. A code beyond the
palette's highest is taken for that (PDF 8.6.6.3).
Samples in CalGray and CalRGB are taken as they are, as PDFium and Poppler do; palettes in them are not.
Default colour spaces of a page (DefaultRGB and so on) are not applied.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.icc import Profile, read_profile
from asset_pipeline.extraction.pdf.streams import expand_last, open_stream
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason

MAX_DEPTH = 8
MAX_COMPONENTS = 32
_MOST_PROFILE = 16 * 1024 * 1024
_DEVICE = {"DeviceGray": 1, "DeviceRGB": 3, "DeviceCMYK": 4}
_SHORT = {"G": "DeviceGray", "RGB": "DeviceRGB", "CMYK": "DeviceCMYK", "I": "Indexed", "CalCMYK": "DeviceCMYK"}


@dataclass(frozen=True, slots=True)
class Space:
    """One colour space. ``source`` is its PDF object, for PDFium; ``base`` and ``palette`` are Indexed's."""

    family: str
    components: int
    plain: bool = False
    source: Any = None
    base: Space | None = None
    palette: bytes = b""
    profile: Profile | None = None
    fallback: bool = False
    ranges: tuple[float, ...] = ()


GRAY = Space("DeviceGray", 1, plain=True, source=pikepdf.Name.DeviceGray)
RGB = Space("DeviceRGB", 3, plain=True, source=pikepdf.Name.DeviceRGB)
CMYK = Space("DeviceCMYK", 4, source=pikepdf.Name.DeviceCMYK)
BY_COMPONENTS = {1: GRAY, 3: RGB, 4: CMYK}


def read_space(value: Any, limits: Limits, depth: int = 0) -> Space:
    """The colour space in ``value`` (a name or an array). Raises Refusal for what no picture can have."""
    if depth > MAX_DEPTH:
        raise Refusal(Reason.STRUCTURE_LOOP, "colour space")
    if isinstance(value, pikepdf.Name):
        return _device(value)
    if not isinstance(value, pikepdf.Array) or len(value) == 0 or not isinstance(value[0], pikepdf.Name):
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE)
    family = str(value[0])[1:]
    family = _SHORT.get(family, family)
    if family in _DEVICE:
        return _device(value[0])
    if len(value) < 2:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, family)
    if family == "ICCBased":
        return _icc_based(value, limits, depth)
    if family == "Indexed":
        return _indexed(value, limits, depth)
    if family in ("CalGray", "CalRGB", "Lab"):
        return Space(
            family,
            1 if family == "CalGray" else 3,
            plain=family != "Lab",
            source=value,
            ranges=_lab_ranges(value, family),
        )
    if family == "Separation" and len(value) >= 4:
        read_space(value[2], limits, depth + 1)
        return Space(family, 1, source=value)
    if family == "DeviceN" and len(value) >= 4 and isinstance(value[1], pikepdf.Array):
        count = len(value[1])
        if not 0 < count <= MAX_COMPONENTS:
            raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, family)
        read_space(value[2], limits, depth + 1)
        # The attributes (fifth entry) describe inks for printers; no viewer needs them for colour.
        return Space(family, count, source=pikepdf.Array([value[0], value[1], value[2], value[3]]))
    raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE)


def printed_space(value: Any, depth: int = 0) -> str | None:
    """How a report prints ``value`` as declared; reads no stream, never raises. None where nothing is declared."""
    first = value[0] if isinstance(value, pikepdf.Array) and len(value) else value
    if not isinstance(first, pikepdf.Name):
        return None
    family = str(first)[1:]
    family = _SHORT.get(family, family)
    detail: object = None
    if isinstance(value, pikepdf.Array) and len(value) > 1:
        second = value[1]
        if family == "ICCBased" and isinstance(second, pikepdf.Stream):
            detail = second.get("/N")
        elif family == "DeviceN" and isinstance(second, pikepdf.Array):
            detail = len(second)
        elif family == "Indexed" and depth < MAX_DEPTH:
            detail = printed_space(second, depth + 1)
    return f"{family}({detail})" if isinstance(detail, (int, str)) else family


def for_components(space: Space, components: int) -> Space:
    """``space``, or the device space that fits when the data has another number of components."""
    if space.components == components:
        return space
    fitting = BY_COMPONENTS.get(components)
    if fitting is None:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE)
    return replace(fitting, fallback=True)


def _device(name: Any) -> Space:
    text = str(name)[1:]
    text = _SHORT.get(text, text)
    if text not in _DEVICE:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE)
    return BY_COMPONENTS[_DEVICE[text]]


def _icc_based(value: Any, limits: Limits, depth: int) -> Space:
    stream = value[1]
    if not isinstance(stream, pikepdf.Stream):
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "profile")
    count: Any = stream.get("/N")
    profile = _profile_of(stream, limits)
    if count not in (1, 3, 4):
        if profile is None:
            raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "profile")
        count = profile.components
    lab = profile is not None and profile.data[16:20] == b"Lab " and stream.get("/Alternate") is not None
    if profile is None or profile.components != count or lab:
        return replace(_alternate(stream, int(count), limits, depth), family="ICCBased", fallback=True)
    return Space("ICCBased", int(count), plain=profile.plain, source=value, profile=profile)


def _alternate(stream: Any, count: int, limits: Limits, depth: int) -> Space:
    """What stands in for a profile: the space that the document names for it, else the device space."""
    named = stream.get("/Alternate")
    try:
        space = BY_COMPONENTS[count] if named is None else read_space(named, limits, depth + 1)
    except Refusal:
        return BY_COMPONENTS[count]
    return space if space.components == count and space.family != "Indexed" else BY_COMPONENTS[count]


def _profile_of(stream: Any, limits: Limits) -> Profile | None:
    try:
        stored = open_stream(stream, limits)
        if stored.codec is not None:
            return None
        return read_profile(_expand_whole(stored, _MOST_PROFILE))
    except (Refusal, pikepdf.PikepdfError):
        return None


def _expand_whole(stored: Any, most: int) -> bytes:
    data = expand_last(stored, most).data
    return stored.predictor.undo(data) if stored.predictor else data


def _indexed(value: Any, limits: Limits, depth: int) -> Space:
    if len(value) < 4:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette")
    base = read_space(value[1], limits, depth + 1)
    if base.family == "Indexed":
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette of a palette")
    highest = value[2]
    if not isinstance(highest, int) or not 0 <= highest <= 255:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette size")
    size = (highest + 1) * base.components
    lookup = value[3]
    if isinstance(lookup, pikepdf.Stream):
        stored = open_stream(lookup, limits)
        if stored.codec is not None:
            raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette")
        entries = _expand_whole(stored, size + size // 8 + 256)
    elif isinstance(lookup, (pikepdf.String, str, bytes)):
        entries = bytes(lookup) if not isinstance(lookup, str) else lookup.encode("latin-1", "replace")
    else:
        raise Refusal(Reason.UNSUPPORTED_COLOUR_SPACE, "palette")
    entries = entries[:size].ljust(size, b"\0")
    entries += entries[-base.components :] * (255 - highest)
    source = pikepdf.Array([pikepdf.Name.Indexed, base.source, 255, pikepdf.String(entries)])
    plain = base.plain and base.family not in ("CalGray", "CalRGB")
    return Space("Indexed", 1, plain=plain, source=source, base=base, palette=entries, fallback=base.fallback)


def _lab_ranges(value: Any, family: str) -> tuple[float, ...]:
    if family != "Lab":
        return ()
    given = value[1].get("/Range") if isinstance(value[1], pikepdf.Dictionary) else None
    if isinstance(given, pikepdf.Array) and len(given) == 4:
        return (0.0, 100.0, *(float(number) for number in given))
    return (0.0, 100.0, -100.0, 100.0, -100.0, 100.0)
