"""XML of an office part as a plain tree: no DTD, no entities, bounded in bytes, elements and depth.

Namespaces are dropped, so that the transitional and the strict form of the standard read alike; only two
kinds of attributes keep a prefix, because their plain names mean something else: ``r:`` (relationships)
and ``o:`` (old office drawings).
"""

from __future__ import annotations

from collections.abc import Collection
from xml.etree.ElementTree import Element, ParseError, TreeBuilder

from defusedxml.common import DefusedXmlException  # type: ignore[import-untyped]
from defusedxml.ElementTree import DefusedXMLParser  # type: ignore[import-untyped]

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason

MAX_DEPTH = 200
_PREFIXES = {
    "http://schemas.openxmlformats.org/officeDocument/2006/relationships": "r:",
    "http://purl.oclc.org/ooxml/officeDocument/relationships": "r:",
    "urn:schemas-microsoft-com:office:office": "o:",
}
_NOTHING: frozenset[str] = frozenset()


def read_markup(data: bytes, limits: Limits, *, skip: Collection[str] = _NOTHING, unless: str | None = None) -> Element:
    """The root element of ``data`` without elements named in ``skip``, except those with an attribute ``unless``.

    Raises Refusal: ``malformed_document`` for what is no XML or has a DTD, else the exceeded bound.
    """
    if len(data) > limits.content_bytes:
        raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED)
    try:
        parser = DefusedXMLParser(target=_Target(limits.objects, frozenset(skip), unless), forbid_dtd=True)
        parser.feed(data)
        root: Element = parser.close()
    except (ParseError, DefusedXmlException, LookupError, ValueError):
        raise Refusal(Reason.MALFORMED_DOCUMENT, "XML") from None
    return root


def local(name: str) -> str:
    """``name`` without its namespace."""
    return name.rpartition("}")[2]


class _Target:
    """Builds the tree that ``read_markup`` describes while the parser reads."""

    def __init__(self, most: int, skip: frozenset[str], unless: str | None) -> None:
        self._builder = TreeBuilder()
        self._left = most
        self._skip = skip
        self._unless = unless
        self._depth = 0
        self._skipping = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise Refusal(Reason.STRUCTURE_TOO_DEEP, "XML")
        name = local(tag)
        if self._skipping or (name in self._skip and self._unless not in attributes):
            self._skipping += 1
            return
        self._left -= 1
        if self._left < 0:
            raise Refusal(Reason.OBJECT_BUDGET_EXCEEDED, "XML")
        self._builder.start(name, {_attribute(key): value for key, value in attributes.items()})

    def end(self, tag: str) -> None:
        self._depth -= 1
        if self._skipping:
            self._skipping -= 1
        else:
            self._builder.end(local(tag))

    def data(self, text: str) -> None:
        if not self._skipping:
            self._builder.data(text)

    def close(self) -> Element:
        return self._builder.close()


def _attribute(key: str) -> str:
    space, closed, name = key.rpartition("}")
    return _PREFIXES.get(space[1:], "") + name if closed else name
