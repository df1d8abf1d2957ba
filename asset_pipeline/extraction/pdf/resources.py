"""Named resources in nested scopes, and careful access to objects of a document that may be wrong.

A scope is what names mean inside one content stream: its own resources first, then those of the page,
as PDFium looks them up. The same name in two scopes is two things; identity is the object, never the
name. Every read of an untrusted entry in the walker goes through ``entry``, ``number`` or ``numbers``.
Two spellings that viewers accept qpdf keeps under other names: a # without digits, and a zero byte.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.content import parse_object
from asset_pipeline.model import Four, Six

Key = tuple[int, int]

_MOST = 1e12
_MISSING = object()
_DEFAULTS = {"/DeviceGray": b"/DefaultGray", "/DeviceRGB": b"/DefaultRGB", "/DeviceCMYK": b"/DefaultCMYK"}
_ESCAPED = re.compile(rb"#([0-9A-Fa-f]{2})")
_MADE_UP = "/QPDFFake"


class Scope:
    """What names mean inside one content stream. ``page`` is the page's own scope, asked last."""

    def __init__(self, resources: Any, page: Scope | None = None) -> None:
        self._resources = resources
        self._page = page
        self._found: dict[tuple[str, bytes], Any] = {}

    def find(self, category: str, written: bytes) -> Any:
        """The resource called ``written`` (a name as in the content stream), or None."""
        found = self._found.get((category, written), _MISSING)
        if found is _MISSING:
            held = entry(self._resources, category)
            found = entry(held, written)
            if found is None and b"#" in written:
                found = _under_another_name(held, written)
            if found is None and self._page is not None:
                found = self._page.find(category, written)
            self._found[category, written] = found
        return found

    def default_space(self, image: Any) -> Any:
        """What stands in for the device space that ``image`` names (PDF 8.6.5.6), or None.

        A picture should name no other space; where it does, viewers look it up here.
        """
        space = entry(image, "/ColorSpace")
        if isinstance(space, pikepdf.Array) and len(space) == 1:
            space = space[0]
        if not isinstance(space, pikepdf.Name):
            return None
        # Compared as names: one may be no text.
        key = next((key for name, key in _DEFAULTS.items() if space == name), None)
        return self.find("/ColorSpace", key or space.unparse())

    def may_hide(self, category: str, written: bytes) -> bool:
        """Whether ``written`` may name something that qpdf keeps under a name of its own making."""
        made_up = any(name.startswith(_MADE_UP) for name in _names(entry(self._resources, category)))
        return (made_up and b"\0" in _spelled_out(written)) or (
            self._page is not None and self._page.may_hide(category, written)
        )

    def inside(self, stream: Any) -> Scope:
        """Scope of a form or pattern used here: its own resources, or this one where it has none."""
        own = entry(stream, "/Resources")
        return Scope(own, self._page or self) if isinstance(own, pikepdf.Dictionary) else self


def entry(container: Any, key: str | bytes) -> Any:
    """``container[key]``; None when absent, null, or when ``container`` holds no entries."""
    if not isinstance(container, (pikepdf.Dictionary, pikepdf.Stream)):
        return None
    if isinstance(key, bytes):
        name = written_name(key)
        return None if name is None else container.get(name)
    return container.get(key)


def written_name(written: bytes) -> Any:
    """A name as written to what pikepdf looks up by; only plain ASCII goes as text, since names are bytes."""
    if written.isascii() and b"#" not in written:
        return written.decode("ascii") if len(written) > 1 else None
    return parse_object(written)


def _under_another_name(held: Any, written: bytes) -> Any:
    """What ``held`` has under ``written`` (with a #) as qpdf spells it; None where that is not certain."""
    wanted = _spelled_out(written)
    if b"\0" in wanted:  # it keeps no such name: each gets one of its own, and only a single one is known again
        values = [held.get(name) for name in _names(held) if name.startswith(_MADE_UP)]
        streams = [value for value in values if isinstance(value, pikepdf.Stream)]
        return streams[0] if len(streams) == 1 else None
    for name in _names(held):
        if name.replace("\0", "#").encode("utf-8", "surrogateescape") == wanted:
            return held.get(name)
    return None


def _names(held: Any) -> list[str]:
    return list(held.keys()) if isinstance(held, pikepdf.Dictionary) else []


def _spelled_out(written: bytes) -> bytes:
    """A name as written, its escapes resolved; a # without two digits stands for itself, as viewers read it."""
    return _ESCAPED.sub(lambda escape: bytes.fromhex(escape[1].decode("ascii")), written)


def key_of(thing: Any) -> Key | None:
    """Identity of an indirect object; None for a direct one."""
    key: Key = thing.objgen
    return key if key[0] else None


def number(value: Any, default: float = 0.0) -> float:
    """A number within reason; ``default`` for everything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        return default
    return min(max(float(value), -_MOST), _MOST)


def numbers(value: Any, count: int) -> tuple[float, ...] | None:
    """The first ``count`` entries of an array of numbers; None when it is not one."""
    if not isinstance(value, pikepdf.Array) or len(value) < count:
        return None
    return tuple(number(value[index]) for index in range(count))


def matrix_of(stream: Any) -> Six:
    """/Matrix of a form or pattern; the identity when absent or unsound."""
    six = numbers(entry(stream, "/Matrix"), 6)
    return (1.0, 0.0, 0.0, 1.0, 0.0, 0.0) if six is None else (six[0], six[1], six[2], six[3], six[4], six[5])


def box_of(holder: Any, key: str) -> Four | None:
    """A rectangle with its corners in order, however they were given; None when absent or unsound."""
    four = numbers(entry(holder, key), 4)
    if four is None:
        return None
    return min(four[0], four[2]), min(four[1], four[3]), max(four[0], four[2]), max(four[1], four[3])


def is_stencil(image: Any) -> bool:
    """Whether a picture is a stencil mask, which has no colours of its own."""
    return entry(image, "/ImageMask") is True


def is_name(value: Any, *names: str) -> bool:
    """Whether ``value`` is one of the names."""
    return isinstance(value, pikepdf.Name) and any(value == name for name in names)
