"""Checkpoints as signed notes: https://c2sp.org/tlog-checkpoint in https://c2sp.org/signed-note.

Text of a note: origin (the name of the log), number of events covered, root in base64, then, as an extension, the
link of the last event covered. No time: the same log, size and key give the same bytes, so that two writers
of one checkpoint write one file. Lines of signatures name the log too; key and name make the four bytes before each.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from asset_pipeline.evidence.keys import Signer, is_signed

_SIGNATURE = "— "
_ED25519 = b"\x01"
_ORIGIN = re.compile(r"[a-z0-9./-]{1,128}")


class NoteError(ValueError):
    """The note is not one, or none of the keys signed it."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A claim about a log: its first ``size`` events have this Merkle root, and the last of them this link."""

    origin: str
    size: int
    root: bytes
    head: bytes

    def text(self) -> str:
        """What is signed; ends with a line break."""
        return f"{self.origin}\n{self.size}\n{_encode(self.root)}\nhead {self.head.hex()}\n"


def origin_of(first_key_id: str) -> str:
    """Name of the log whose first event is signed by this key."""
    return f"asset-pipeline/{first_key_id}"


def sign_note(checkpoint: Checkpoint, signer: Signer) -> str:
    """The signed note of ``checkpoint``."""
    text = checkpoint.text()
    signature = _mark(checkpoint.origin, signer.public_key) + signer.sign(text.encode())
    return f"{text}\n{_SIGNATURE}{checkpoint.origin} {_encode(signature)}\n"


def open_note(note: str, keys: Mapping[str, bytes]) -> tuple[Checkpoint, str]:
    """The checkpoint in ``note``, and the id of the key that signed it: one of ``keys`` (id to public key).

    Raises NoteError.
    """
    text, gap, tail = note.partition("\n\n")
    text += "\n"
    checkpoint = _parse(text)
    lines = tail.splitlines()
    if not gap or not tail.endswith("\n") or not lines or checkpoint.text() != text:
        raise NoteError("it is not a signed note of a checkpoint")
    for line in lines:
        mark, signature = _signature(line, checkpoint.origin)
        for key_id, public_key in keys.items():
            if mark == _mark(checkpoint.origin, public_key) and is_signed(public_key, signature, text.encode()):
                return checkpoint, key_id
    raise NoteError("no trusted key signed it")


def _parse(text: str) -> Checkpoint:
    try:
        origin, size, root, head = text.splitlines()
        word, _, link = head.partition(" ")
        checkpoint = Checkpoint(origin, int(size), base64.b64decode(root, validate=True), bytes.fromhex(link))
    except (ValueError, binascii.Error):
        raise NoteError("it is not a checkpoint") from None
    if word != "head" or len(checkpoint.root) != 32 or len(checkpoint.head) != 32 or not _ORIGIN.fullmatch(origin):
        raise NoteError("it is not a checkpoint")
    return checkpoint


def _signature(line: str, name: str) -> tuple[bytes, bytes]:
    start = f"{_SIGNATURE}{name} "
    try:
        body = base64.b64decode(line.removeprefix(start), validate=True)
    except (ValueError, binascii.Error):
        body = b""
    if not line.startswith(start) or len(body) != 68:
        raise NoteError("a line of a signature is not one")
    return body[:4], body[4:]


def _mark(name: str, public_key: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ED25519 + public_key).digest()[:4]


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")
