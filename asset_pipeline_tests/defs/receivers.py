"""A web server and a mail server that take what is sent to them: real sockets, in threads of the test."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hook(ThreadingHTTPServer):
    """Answers ``status`` to every POST, and keeps the bodies that it accepted."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Post)
        self.status, self.location, self.bodies, self.asked = 204, "", [], 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/secret-token"


class _Post(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        self.server.asked += 1
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.status < 300:
            self.server.bodies.append(body)
        self.send_response(self.server.status)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


class Post(socketserver.ThreadingTCPServer):
    """A mail server of RFC 5321's least commands; ``refuses`` makes it turn every message down."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Mail)
        self.messages: list[EmailMessage] = []
        self.receivers: list[str] = []
        self.logins: list[str] = []
        self.refuses = False

    @property
    def port(self) -> int:
        return self.server_address[1]


class _Mail(socketserver.StreamRequestHandler):
    server: Post

    def handle(self) -> None:
        self._say("220 here")
        for line in self.rfile:
            word = line.split()[0].upper()
            if word == b"QUIT":
                return self._say("221 bye")
            if word == b"EHLO":
                self._say("250-here\r\n250 AUTH PLAIN")
            elif word == b"AUTH":
                self.server.logins.append(line.split()[2].decode())
                self._say("235 welcome")
            elif word == b"DATA":
                self._take()
            else:
                if word == b"RCPT":
                    self.server.receivers.append(line.decode().strip())
                self._say("550 no" if self.server.refuses and word == b"MAIL" else "250 ok")
        return None

    def _take(self) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line)
        self.server.messages.append(message_from_bytes(b"".join(lines), policy=policy.default))
        self._say("250 taken")

    def _say(self, line: str) -> None:
        self.wfile.write(f"{line}\r\n".encode())


@contextmanager
def running(server: socketserver.BaseServer) -> Iterator[None]:
    """Serve until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
