"""Pages that qpdf does not follow, being nested too deep or not to be parsed: their places in the document are kept.

qpdf leaves such a page out of the tree, or does not list a tree with such a branch at all. Without their places every
page behind would be taken for another, and nobody would be told of a page that viewers count. So the document is
opened again, and an empty page put where each of them is, before qpdf lists the pages. Which pages these are is all
that is known of them. Other objects of that kind are gaps: what is drawn there is missing for that reason.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

import pikepdf

from asset_pipeline.extraction.pdf.resources import Key, entry, key_of
from asset_pipeline.reasons import Reason

_GAPS = {
    "parser-max-nesting": Reason.STRUCTURE_TOO_DEEP,
    "treating object as null because of error": Reason.MALFORMED_DOCUMENT,
}
"""What qpdf's warnings say of an object of which it leaves out what is nested too deep, or takes all for nothing."""

_NO_PAGE = "Pages tree includes non-dictionary"
_OBJECT = re.compile(r"object (\d{1,10}) (\d{1,5})\b")
_REFERENCE = re.compile(rb"(\d{1,10}) (\d{1,5}) R")
_LEVELS = 90
"""Of the page tree; qpdf follows 100."""

_VISITS = 4


def gap(warnings: Iterable[str]) -> Reason | None:
    """Why objects are missing, by qpdf's ``warnings`` once it has read all of them; None where none is."""
    return next((reason for warning in warnings for words, reason in _GAPS.items() if words in warning), None)


def left_out(warnings: Iterable[str]) -> frozenset[Key]:
    """Objects that stand for pages and are gaps, by qpdf's ``warnings`` once it has listed the pages."""
    gaps, missing = set(), set()
    for warning in warnings:
        named = _OBJECT.search(warning)
        if named is not None:
            key = int(named[1]), int(named[2])
            if gap([warning]):
                gaps.add(key)
            if _NO_PAGE in warning:
                missing.add(key)
    return frozenset(gaps & missing)


def keep_places(pdf: pikepdf.Pdf, dropped: Collection[Key], most: int) -> frozenset[Key]:
    """Put an empty page for each of ``dropped`` and for each page below ``_LEVELS``; the objects of these pages.

    Looks at no more than some times ``most`` nodes: a tree may run in a circle, which qpdf will say.
    """
    made: set[Key] = set()
    waiting = [(entry(pdf.Root, "/Pages"), 1)]
    left = _VISITS * most
    while waiting and left > 0:
        node, level = waiting.pop()
        kids = entry(node, "/Kids")
        if not isinstance(kids, pikepdf.Array):
            continue
        left -= len(kids)
        named = [(int(key), int(generation)) for key, generation in _REFERENCE.findall(kids.unparse())]
        for index in range(len(kids)):
            kid = kids[index]
            if kid is None and len(named) == len(kids) and named[index] in dropped:
                kids[index] = _blank(pdf, node, made)
            elif isinstance(entry(kid, "/Kids"), pikepdf.Array):
                if level < _LEVELS:
                    waiting.append((kid, level + 1))
                else:
                    kids[index] = _blanks(pdf, node, _leaves(kid, most), made)
    return frozenset(made)


def _leaves(node: pikepdf.Object, most: int) -> int:
    """Pages below ``node``, of very many some times ``most``."""
    waiting, leaves, left = [node], 0, _VISITS * most
    while waiting and left > 0:
        kids = entry(waiting.pop(), "/Kids")
        for index in range(len(kids)):
            inner = entry(kids[index], "/Kids")
            left -= 1
            if isinstance(inner, pikepdf.Array):
                waiting.append(kids[index])
            else:
                leaves += 1
    return leaves


def _blank(pdf: pikepdf.Pdf, parent: pikepdf.Object, made: set[Key]) -> pikepdf.Object:
    page = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.Page, Parent=parent))
    key = key_of(page)
    if key is not None:
        made.add(key)
    return page


def _blanks(pdf: pikepdf.Pdf, parent: pikepdf.Object, count: int, made: set[Key]) -> pikepdf.Object:
    branch = pdf.make_indirect(pikepdf.Dictionary(Type=pikepdf.Name.Pages, Parent=parent, Count=count))
    branch.Kids = pikepdf.Array([_blank(pdf, branch, made) for _ in range(count)])
    return branch
