"""A door to a server that cuts its connections: what comes through is forwarded, until all of it is reset at once."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

RESET = struct.pack("ii", 1, 0)
"""With this linger, closing a socket sends RST and drops what is on its way."""


class Door:
    """Listens on ``port`` for the server on ``target`` of this machine."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def reset(self) -> int:
        """Cut every connection that is open; how many there were."""
        with self._lock:
            cut, self._pairs = self._pairs, set()
        for pair in cut:
            for end in pair:
                with suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    end.shutdown(socket.SHUT_RD)  # wakes the thread that reads it, which closes it
                with suppress(OSError):
                    end.close()
        return len(cut)

    def close(self) -> None:
        """Listen no more, and cut what is open."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    near.close()
                    continue
                pair = near, far
                with self._lock:
                    self._pairs.add(pair)
                for source, sink in (pair, pair[::-1]):
                    threading.Thread(target=self._pump, args=(pair, source, sink), daemon=True).start()

    def _pump(self, pair: tuple[socket.socket, socket.socket], source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
            return
        with self._lock:
            self._pairs.discard(pair)
        for end in pair:
            end.close()


@contextmanager
def door(target: int) -> Iterator[Door]:
    """A ``Door``, open until the block ends."""
    made = Door(target)
    try:
        yield made
    finally:
        made.close()
