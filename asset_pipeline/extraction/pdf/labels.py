"""Printed page labels (PDF 12.4.2): the number tree is searched, not read, so each page costs little.

A document may label every page apart, and the tree may run in a circle; the search goes down one branch
and halves each leaf.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import partial
from typing import Any

import pikepdf

from asset_pipeline.extraction.pdf.resources import entry, is_name, number, numbers

_LEVELS = 64
_LARGEST = 100_000
_ROMAN = (
    (1000, "m"),
    (900, "cm"),
    (500, "d"),
    (400, "cd"),
    (100, "c"),
    (90, "xc"),
    (50, "l"),
    (40, "xl"),
    (10, "x"),
    (9, "ix"),
    (5, "v"),
    (4, "iv"),
    (1, "i"),
)


def page_label(pdf: pikepdf.Pdf, index: int) -> str | None:
    """The label of the page at ``index`` (from 0); None where the document labels no such page or with nothing."""
    found = _search(entry(pdf.Root, "/PageLabels"), index)
    if found is None:
        return None
    first, rule = found
    start = rule.get("/St")
    value = index - first + (start if isinstance(start, int) and not isinstance(start, bool) else 1)
    prefix = rule.get("/P")
    return (str(prefix) if isinstance(prefix, pikepdf.String) else "") + _numeral(rule.get("/S"), value) or None


def _search(node: Any, index: int) -> tuple[int, pikepdf.Dictionary] | None:
    """The last rule that starts at or before ``index``, and the page where it starts."""
    for _ in range(_LEVELS):
        leaf = entry(node, "/Nums")
        if isinstance(leaf, pikepdf.Array):
            place = bisect_right(range(len(leaf) // 2), index, key=partial(_start_of_rule, leaf)) - 1
            rule = leaf[2 * place + 1] if place >= 0 else None
            return (_start_of_rule(leaf, place), rule) if isinstance(rule, pikepdf.Dictionary) else None
        kids = entry(node, "/Kids")
        if not isinstance(kids, pikepdf.Array):
            return None
        place = bisect_right(range(len(kids)), index, key=partial(_start_of_kid, kids)) - 1
        if place < 0:
            return None
        node = kids[place]
    return None


def _start_of_rule(leaf: pikepdf.Array, place: int) -> int:
    return int(number(leaf[2 * place]))


def _start_of_kid(kids: pikepdf.Array, place: int) -> int:
    limits = numbers(entry(kids[place], "/Limits"), 1)
    leaf = entry(kids[place], "/Nums")
    if limits is not None:
        return int(limits[0])
    return _start_of_rule(leaf, 0) if isinstance(leaf, pikepdf.Array) and len(leaf) else 0


def _numeral(style: Any, value: int) -> str:
    if not isinstance(style, pikepdf.Name):
        return ""
    if is_name(style, "/D") or not 0 < value < _LARGEST:
        return str(value)
    if is_name(style, "/R", "/r"):
        roman = _to_roman(value)
        return roman.upper() if is_name(style, "/R") else roman
    if is_name(style, "/A", "/a"):
        letters = chr(ord("a") + (value - 1) % 26) * ((value - 1) // 26 + 1)
        return letters.upper() if is_name(style, "/A") else letters
    return str(value)


def _to_roman(value: int) -> str:
    text = ""
    for size, letters in _ROMAN:
        text += letters * (value // size)
        value %= size
    return text
