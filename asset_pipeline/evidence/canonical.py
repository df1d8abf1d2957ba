"""JSON in exactly one form (RFC 8785), so that equal values are equal bytes and a signature has one thing to cover.

Reading is strict: a key that occurs twice, a number beyond the range or anything that would be written in
another way is refused, because two readers could take it for two different things.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import rfc8785


class NotCanonical(ValueError):
    """The bytes are not the one form of any value."""


def dumps(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    """The canonical bytes of ``value``. ValueError for what JSON cannot hold."""
    return rfc8785.dumps(value)


def loads(body: bytes) -> Any:
    """The value of canonical ``body``; raises NotCanonical when ``dumps`` would not give these bytes again."""
    value = parse(body)
    try:
        if rfc8785.dumps(value) == body:
            return value
    except ValueError:
        pass
    raise NotCanonical


def parse(body: bytes) -> Any:
    """The value of ``body``, for who compares the bytes themselves. Raises NotCanonical for no JSON or a key twice."""
    try:
        return json.loads(body.decode("utf-8"), object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise NotCanonical from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise NotCanonical
    return found


def _refuse(_constant: str) -> NoReturn:
    raise NotCanonical
