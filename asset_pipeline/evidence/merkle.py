"""Merkle trees of RFC 6962 over the links of a log: one hash for all of it, and proofs that some of it is in there.

A leaf is the 32-byte link of an event (``dsse.Envelope.link``). A checkpoint keeps the ``Frontier``, so that the
next one hashes only what is new. A range proof holds the hashes of all that lies left and right of a range, in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

EMPTY_ROOT = hashlib.sha256(b"").digest()


def leaf_hash(link: bytes) -> bytes:
    """Hash of one leaf."""
    return hashlib.sha256(b"\x00" + link).digest()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


@dataclass(slots=True)
class Frontier:
    """A tree that grows at its right edge: the hashes of its perfect subtrees, largest first."""

    size: int = 0
    hashes: list[bytes] = field(default_factory=list)

    def add(self, link: bytes) -> None:
        """Add a leaf."""
        self.hashes.append(leaf_hash(link))
        self.size += 1
        rest = self.size
        while rest % 2 == 0:
            right = self.hashes.pop()
            self.hashes.append(_node(self.hashes.pop(), right))
            rest //= 2

    def root(self) -> bytes:
        """Root of the tree as it is now."""
        if not self.hashes:
            return EMPTY_ROOT
        *others, root = self.hashes
        for left in reversed(others):
            root = _node(left, root)
        return root


def range_proof(leaves: Sequence[bytes], start: int, end: int) -> list[bytes]:
    """Hashes that, with the leaves ``start`` to ``end`` (half open, not empty), give the root over all ``leaves``.

    ``leaves`` are leaf hashes.
    """
    return list(_outside(leaves, 0, len(leaves), start, end))


def root_of_range(size: int, start: int, inside: Sequence[bytes], proof: Iterable[bytes]) -> bytes | None:
    """Root of a tree of ``size`` of which the leaf hashes from ``start`` on are ``inside``; None for an unfit proof."""
    if not 0 <= start < start + len(inside) <= size:
        return None
    rest = iter(proof)
    try:
        root = _folded(0, size, start, inside, rest)
    except StopIteration:
        return None
    return root if next(rest, None) is None else None


def _outside(leaves: Sequence[bytes], low: int, high: int, start: int, end: int) -> Iterator[bytes]:
    if end <= low or high <= start:
        yield _root(leaves, low, high)
    elif not (start <= low and high <= end):
        middle = low + _split(high - low)
        yield from _outside(leaves, low, middle, start, end)
        yield from _outside(leaves, middle, high, start, end)


def _folded(low: int, high: int, start: int, inside: Sequence[bytes], rest: Iterator[bytes]) -> bytes:
    if start + len(inside) <= low or high <= start:
        return next(rest)
    if high - low == 1:
        return inside[low - start]
    middle = low + _split(high - low)
    left = _folded(low, middle, start, inside, rest)
    return _node(left, _folded(middle, high, start, inside, rest))


def _root(leaves: Sequence[bytes], low: int, high: int) -> bytes:
    if high - low == 1:
        return leaves[low]
    middle = low + _split(high - low)
    return _node(_root(leaves, low, middle), _root(leaves, middle, high))


def _split(size: int) -> int:
    """The largest power of two below ``size``."""
    return 1 << ((size - 1).bit_length() - 1)
