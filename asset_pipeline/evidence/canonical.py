"""JSON in exactly one form (RFC 8785), so that equal values are equal bytes and a signature has one thing to cover.

Reading is strict: a key that occurs twice, a number beyond the range or anything that would be written in
another way is refused, because two readers could take it for two different things.

``rfc8785`` defines the form and writes what is unusual. What events are made of, text in ASCII and whole numbers, the
standard library writes in the same bytes, several times faster; a test holds the two against each other.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import rfc8785

_LARGEST_WHOLE = 2**53 - 1
"""Beyond, RFC 8785 has no form for a whole number."""

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode


class NotCanonical(ValueError):
    """The bytes are not the one form of any value."""


def dumps(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The canonical bytes of ``value``. ValueError for what JSON cannot hold."""
    if _is_plain(value):
        text = _encode(value)
        if text.isascii():  # so all keys are, and sort by characters as they do by UTF-16
            return text.encode("ascii")
    return rfc8785.dumps(value)


def loads(body: bytes) -> Any:
    """The value of canonical ``body``; raises NotCanonical when ``dumps`` would not give these bytes again."""
    value = parse(body)
    try:
        if dumps(value) == body:
            return value
    except (ValueError, RecursionError):
        pass
    raise NotCanonical


def parse(body: bytes) -> Any:
    """The value of ``body``, for who compares the bytes themselves. Raises NotCanonical for no JSON or a key twice."""
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotCanonical from None


def _is_plain(value: Any) -> bool:
    """Whether ``value`` holds nothing but lists, objects, text, whole numbers in range, booleans and null."""
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return bool(-_LARGEST_WHOLE <= value <= _LARGEST_WHOLE)
    if kind is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    return kind in (list, tuple) and all(map(_is_plain, value))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotCanonical
    return found


def _refuse(_constant: str) -> NoReturn:
    raise NotCanonical
