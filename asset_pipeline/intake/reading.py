"""Reading an upload, once: bytes to a private file, digest, size and first bytes on the way.

What changes while it is read is not taken in: its size or tag differ afterwards, and it settles anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from asset_pipeline.errors import StorageError
from asset_pipeline.ledger.uploads import Upload
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import CHUNK, Store, write_all
from asset_pipeline.validation.documents import HEAD, Signature, declared_type, judge, read_signature, recognise


@dataclass(frozen=True, slots=True)
class Facts:
    """What reading found out. ``reason`` says why the document may not come in; None when it may."""

    sha256: str
    bytes: int
    signature: Signature
    reason: Reason | None

    @property
    def stored(self) -> bool:
        """Whether the bytes are kept: all that are not too large, whatever else is wrong with them."""
        return self.reason is not Reason.PAYLOAD_TOO_LARGE


def read_upload(inbox: Store, upload: Upload, document: Path, policy: Policy) -> Facts | None:
    """Read ``upload`` into the new file ``document``; None when it is gone or changed meanwhile.

    One that is too large is hashed, so that its manifest can say what it was, but not written.
    """
    too_large = upload.bytes > policy.limits.source_bytes
    try:
        with inbox.open(upload.key) as stream:
            digest, head, count = _copy(stream, None if too_large else document, upload.bytes)
        after = inbox.entry(upload.key)
    except KeyError:
        return None
    if count != upload.bytes or (after.bytes, after.tag) != (upload.bytes, upload.tag):
        return None
    declared = declared_type(upload.name or "")
    signature = read_signature(head, declared) if too_large else _recognise(document, declared)
    return Facts(digest, count, signature, refusal(upload, signature, policy))


def refusal(upload: Upload, signature: Signature, policy: Policy) -> Reason | None:
    """Why ``policy`` does not let the upload in, or None."""
    if upload.bytes > policy.limits.source_bytes:
        return Reason.PAYLOAD_TOO_LARGE
    return judge(upload.bytes, signature, declared_type(upload.name or ""), policy.media_types.documents)


def _recognise(document: Path, declared: str | None) -> Signature:
    with _told_apart(), document.open("rb") as file:
        return recognise(file, declared)


def _copy(source: BinaryIO, document: Path | None, expected: int) -> tuple[str, bytes, int]:
    """Digest, head and count of ``source``, which is abandoned as soon as it is longer than ``expected``."""
    digest, head, count = hashlib.sha256(), b"", 0
    with ExitStack() as opened:
        with _told_apart():
            target = opened.enter_context(document.open("xb", buffering=0)) if document else None
        while count <= expected and (chunk := source.read(CHUNK)):
            digest.update(chunk)
            count += len(chunk)
            head += chunk[: HEAD - len(head)]
            if target:
                with _told_apart():
                    write_all(target.fileno(), chunk)
    return digest.hexdigest(), head, count


@contextmanager
def _told_apart() -> Iterator[None]:
    """An error of our own file is not one of the inbox."""
    try:
        yield
    except OSError as error:
        what = f"A working file cannot be written: {error.strerror}."
        raise StorageError(what, "Check the free space of the work folder.") from None
