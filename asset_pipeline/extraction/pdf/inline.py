"""Inline pictures: abbreviations spelled out, names of colour spaces resolved, data cut out exactly.

The result is a stream of the same document with the dictionary that a picture object would have, so
that nobody behind the walker needs to know inline pictures. Where the data ends is ``inline_data``'s.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pikepdf
from pikepdf import Name

from asset_pipeline.extraction.pdf.content import inline_entries, parse_object
from asset_pipeline.extraction.pdf.inline_data import EndFinder
from asset_pipeline.extraction.pdf.resources import Scope, entry
from asset_pipeline.extraction.pdf.streams import FULL_NAMES

KEYS = {
    "/BPC": "/BitsPerComponent",
    "/CS": "/ColorSpace",
    "/D": "/Decode",
    "/DP": "/DecodeParms",
    "/F": "/Filter",
    "/H": "/Height",
    "/I": "/Interpolate",
    "/IM": "/ImageMask",
    "/W": "/Width",
}
SPACES = {"/G": "/DeviceGray", "/RGB": "/DeviceRGB", "/CMYK": "/DeviceCMYK", "/I": "/Indexed"}
_DEVICE = {"/DeviceGray": 1, "/DeviceRGB": 3, "/DeviceCMYK": 4}
_COMPONENTS = {"/CalGray": 1, "/CalRGB": 3, "/Lab": 3, "/Indexed": 1, "/Separation": 1, **_DEVICE}
_LENGTHS = ("/L", "/Length")


@dataclass(frozen=True, slots=True)
class InlinePicture:
    """An inline picture as written: its dictionary with full names, and its data still encoded."""

    entries: dict[str, Any]
    data: bytes

    @property
    def is_stencil(self) -> bool:
        """Whether it is a stencil mask, which has no colours of its own."""
        return self.entries.get("/ImageMask") is True

    def wrap(self, pdf: pikepdf.Pdf) -> pikepdf.Stream:
        """The picture as a stream of ``pdf``."""
        stream = pikepdf.Stream(pdf, self.data)
        stream["/Type"], stream["/Subtype"] = Name.XObject, Name.Image
        for key, value in self.entries.items():
            stream[key] = value
        return stream


def read_inline(data: bytes, start: int, scope: Scope, ends: EndFinder) -> tuple[InlinePicture | None, int]:
    """The picture behind the BI that ends at ``start``, and where the content goes on.

    None when there is no picture, since no data begins.
    """
    found = inline_entries(data, start)
    if found is None:
        return None, start
    written, after_id = found
    parsed = {str(parse_object(key)): parse_object(value) for key, value in written.items() if key.isascii()}
    entries = _spell_out(parsed, scope)
    first = _first_filter(entries.get("/Filter"))
    sizes = [_raw_size(entries) if first is None else None, _declared_size(parsed)]
    begin, end, behind = ends.find(data, after_id, first, [size for size in sizes if size is not None])
    return InlinePicture(entries, data[begin:end]), behind


def _spell_out(parsed: dict[str, Any], scope: Scope) -> dict[str, Any]:
    entries: dict[str, Any] = {}
    for key, value in parsed.items():
        full = KEYS.get(key, key)
        if value is None or full in _LENGTHS:
            continue
        if full == "/Filter":
            value = _full_filter(value)
        elif full == "/ColorSpace":
            value = full_space(value, scope)
        entries[full] = value
    return entries


def _first_filter(value: Any) -> str | None:
    if isinstance(value, pikepdf.Array):
        value = value[0] if len(value) else None
    return str(value)[1:] if isinstance(value, Name) else None


def _full_filter(value: Any) -> Any:
    if isinstance(value, Name):
        full = FULL_NAMES.get(str(value)[1:])
        return value if full is None else Name("/" + full)
    if isinstance(value, pikepdf.Array):
        return pikepdf.Array([_full_filter(part) if isinstance(part, Name) else part for part in value])
    return value


def full_space(value: Any, scope: Scope) -> Any:
    """A colour space as given inline: names in full, other names looked up, the base of a palette as well."""
    if isinstance(value, Name):
        if str(value) in SPACES:
            return Name(SPACES[str(value)])
        named = scope.find("/ColorSpace", value.unparse())
        return value if named is None else named
    if isinstance(value, pikepdf.Array) and len(value) and isinstance(value[0], Name):
        parts = list(value)
        if str(parts[0]) in SPACES:
            parts[0] = Name(SPACES[str(parts[0])])
        if parts[0] == Name.Indexed and len(parts) > 1:
            parts[1] = full_space(parts[1], scope)
        return pikepdf.Array(parts)
    return value


def components_of(space: Any) -> int | None:
    """Components of one colour in ``space``, None where it cannot be told."""
    family = space[0] if isinstance(space, pikepdf.Array) and len(space) else space
    if not isinstance(family, Name):
        return None
    if family == Name.ICCBased and len(space) > 1:
        count = entry(space[1], "/N")
        return count if isinstance(count, int) and 0 < count <= 32 else None
    if family == Name.DeviceN and len(space) > 1 and isinstance(space[1], pikepdf.Array):
        return len(space[1])
    return _COMPONENTS.get(str(family))


def _declared_size(parsed: dict[str, Any]) -> int | None:
    """/L or /Length of PDF 2.0, with which a writer says how long the data is."""
    for key in _LENGTHS:
        value = parsed.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _raw_size(entries: dict[str, Any]) -> int | None:
    width, height, bits = (_count(entries.get(key)) for key in ("/Width", "/Height", "/BitsPerComponent"))
    components = components_of(entries.get("/ColorSpace"))
    if entries.get("/ImageMask") is True:
        bits = components = 1
    return (width * (components or 0) * bits + 7) // 8 * height or None


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
