"""Bytes by key: what every store can do, and how one is opened from its address.

Keys are relative POSIX paths made by this program (``objects/ab/<sha256>``), never by a caller's
file name, except in an inbox, where they are only read. ``put_once`` is the way in for content: it never
overwrites. ``repair`` alone replaces content, and only content that is not what its name says.
``put_current`` replaces and is for documents that have editions.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Protocol

from asset_pipeline.errors import ConfigurationError, IntegrityError, StorageError
from asset_pipeline.settings import Settings, is_folder

CHUNK = 1024 * 1024
SPECIAL = "not-a-regular-file"
"""Tag of a listed link, device or pipe: it is named so that nobody misses it, but never opened or followed."""

TEMPORARY = ".incoming-"
"""Start of the names of files that are being written or tried out: never listed."""

PRIVATE = frozenset({"sources", "quarantine"})
"""Stores whose folders only their owner may enter: they hold bytes that nobody has judged yet."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed key. ``tag`` changes when the content does (ETag, or modification time in ns and inode)."""

    key: str
    bytes: int
    tag: str
    modified: datetime


@dataclass(frozen=True, slots=True)
class Swept:
    """How many leftovers were removed, and their bytes."""

    files: int = 0
    bytes: int = 0

    def plus(self, size: int) -> Swept:
        """One more, of ``size`` bytes."""
        return Swept(self.files + 1, self.bytes + size)


class Store(Protocol):
    """A folder or a bucket. Every method raises StorageError when the place is away."""

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Entries whose key starts with ``prefix``, in key order, streamed. A missing root is a StorageError."""
        ...

    def folders(self) -> Iterator[str]:
        """Names of the first level that have something below them, in order: the first part of longer keys."""
        ...

    def entry(self, key: str) -> Entry:
        """The entry of one key as ``list`` shows it now. Raises KeyError when there is no such file."""
        ...

    def open(self, key: str) -> AbstractContextManager[BinaryIO]:
        """A stream of the bytes. Raises KeyError when there is no such key."""
        ...

    def fetch(self, key: str, target: Path, sha256: str) -> int:
        """Copy to ``target``, checking the digest on the way; returns bytes. IntegrityError on a mismatch."""
        ...

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        ...

    def put_once(self, key: str, source: Path, sha256: str) -> bool:
        """Write a file durably unless the key exists; True when this call wrote it.

        Atomic: a reader sees all or nothing, and of two writers one wins. IntegrityError when ``source`` does
        not have the digest ``sha256``.
        """
        ...

    def repair(self, key: str, source: Path, sha256: str) -> bool:
        """Replace what lies under ``key`` when it does not hash to ``sha256``, or is gone; True when it was replaced.

        Allowed only where ``key`` names content by this very digest (``object_key(sha256)``) and by someone who holds
        the right bytes, as when a document is sent again or a picture is read again: then nothing that anybody may
        rely on is overwritten. Reads the stored bytes once; atomic and durable. The caller records an event.
        IntegrityError when ``source`` does not have the digest either.
        """
        ...

    def sweep_temporary(self, before: datetime) -> Swept:
        """Remove files of writes that were begun and never ended, last touched earlier than ``before``."""
        ...

    def put_current(self, key: str, body: bytes) -> None:
        """Replace the value of ``key`` atomically and durably."""
        ...

    def delete(self, key: str) -> None:
        """Remove the key; one that is already gone is success."""
        ...

    def check(self) -> None:
        """Prove that the place can be written and read back; leaves nothing. Raises StorageError otherwise."""
        ...


def object_key(sha256: str) -> str:
    """Key of a content-addressed object."""
    return f"objects/{sha256[:2]}/{sha256}"


def open_store(address: str, settings: Settings, name: str = "store") -> Store:
    """The store at ``address``: ``s3://bucket/prefix`` or a folder. Contacts nothing. ``name`` is for messages.

    Raises ConfigurationError for an address of any other kind, which would pass for a relative folder.
    """
    if address.startswith("s3://"):
        from asset_pipeline.storage.s3 import S3Store

        return S3Store(address, endpoint=settings.s3_endpoint, region=settings.s3_region, name=name)
    if not is_folder(address):
        raise ConfigurationError(
            f"The address of the {name} store is of an unknown kind.", "Name a folder, or s3://bucket/prefix."
        )
    from asset_pipeline.storage.folder import FolderStore

    return FolderStore(Path(address), name=name, private=name in PRIVATE)


def write_all(target: int, body: bytes) -> None:
    """Write the whole of ``body`` to a descriptor, which may take it in parts."""
    view = memoryview(body)
    while view:
        view = view[os.write(target, view) :]


def copy_hashed(source: BinaryIO, target: int) -> tuple[str, int]:
    """Copy ``source`` to the descriptor ``target``; the SHA-256 and number of the bytes copied."""
    digest, count = hashlib.sha256(), 0
    while chunk := source.read(CHUNK):
        digest.update(chunk)
        count += len(chunk)
        try:
            write_all(target, chunk)
        except OSError as error:
            what = os.strerror(error.errno or errno.EIO)
            raise StorageError(f"A file cannot be written: {what}.", "Check the free space.") from None
    return digest.hexdigest(), count


def holds_digest(store: Store, key: str, sha256: str) -> bool:
    """Whether the stored bytes of ``key`` are there and have this digest."""
    digest = hashlib.sha256()
    try:
        with store.open(key) as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    except KeyError:
        return False
    return digest.hexdigest() == sha256


def open_regular(path: Path) -> BinaryIO:
    """Open a file of ours that is about to be stored; OSError when it has become a link."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")


def fetch_checked(store: Store, key: str, target: Path, sha256: str) -> int:
    """What every store does for ``fetch``. Leaves no ``target`` behind unless its bytes are the right ones."""
    with store.open(key) as source:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        try:
            found, count = copy_hashed(source, descriptor)
            if found != sha256:
                raise IntegrityError("Stored bytes do not match their digest.", "Restore them from a backup.")
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
    return count


def prove(store: Store, name: str) -> None:
    """What every store does for ``check``: write, be refused a second write, read back, delete."""
    key, body = f"{TEMPORARY}check-{secrets.token_hex(8)}", secrets.token_bytes(64)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "body")
        source.write_bytes(body)
        try:
            first, second = (store.put_once(key, source, hashlib.sha256(body).hexdigest()) for _ in range(2))
            if (first, second) != (True, False):
                raise StorageError(f"The {name} store lets a second writer replace the first.", "Use another store.")
            with store.open(key) as stream:
                if stream.read() != body:
                    raise StorageError(f"The {name} store returns other bytes than were written.", "Use another store.")
        finally:
            store.delete(key)
