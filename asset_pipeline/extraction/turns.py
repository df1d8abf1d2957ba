"""Turns: the pages of one document, dealt out to the decoder processes that read it together.

A socket whose other end is closed holds one byte for each part of the document, and who reads a byte has that part to
itself. So all are busy until the last page, whatever a page costs; how many pages there are need not be known before;
and decoders need no word with each other. A socket and no pipe, which any of them could open anew for writing, to put
turns back or to keep the others waiting. One that lies harms its own document alone: what nobody answered for is read
again, and what two answered for counts once (``reading``).
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fcntl import ioctl
from termios import FIONREAD

PARTS = 256
"""As many as one byte tells apart, so that nobody can read half of a number."""

MOST_PAGES = 400
"""After so many a decoder process takes no more turns, as what it keeps of each page adds up."""


@dataclass(frozen=True, slots=True)
class Turns:
    """The end of the socket that turns are taken from."""

    descriptor: int

    def take(self, pages: range) -> Iterator[int]:
        """Those of ``pages`` whose turn falls to the caller, in order, until none is left or it has had its share."""
        size = -(-len(pages) // PARTS)
        read = 0
        while read < MOST_PAGES and (turn := os.read(self.descriptor, 1)):
            part = pages[turn[0] * size : (turn[0] + 1) * size]
            yield from part
            read += len(part)

    def left(self) -> int:
        """How many turns nobody has taken."""
        return int.from_bytes(ioctl(self.descriptor, FIONREAD, bytes(4)), sys.byteorder)

    def withdraw(self) -> None:
        """Take all that are left, so that who reads stops soon."""
        os.read(self.descriptor, PARTS)


@contextmanager
def deal() -> Iterator[Turns]:
    """Turns for the pages of one document, as long as the context lasts."""
    taken, dealt = socket.socketpair()
    with taken:
        # All of them fit into the socket, and its end is closed: nobody who takes one ever waits.
        with dealt:
            dealt.sendall(bytes(range(PARTS)))
        yield Turns(taken.fileno())
