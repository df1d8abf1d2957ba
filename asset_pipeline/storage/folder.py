"""A store that is a local folder.

A write is a temporary file beside its target (``.incoming-…``, never listed), synced, then *linked* to its name:
a link, unlike a rename, refuses to replace, so of two writers one wins and a reader sees all or nothing. Every path
is opened part by part without following links, because an inbox is written by strangers; a link, device or pipe is
listed with the tag ``SPECIAL`` and cannot be opened. Messages name the store, never a path.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, NoReturn

from asset_pipeline.errors import IntegrityError, StorageError
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import (
    SPECIAL,
    TEMPORARY,
    Entry,
    Swept,
    copy_hashed,
    fetch_checked,
    holds_digest,
    open_regular,
    prove,
)

LOCK = f"{TEMPORARY}lock"
"""What writers hold where there are no links; never swept, or two could hold it at once."""

_LINKS_UNSUPPORTED = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


class FolderStore:
    """Bytes in files under ``root``. ``private`` folders can be entered by their owner only."""

    def __init__(self, root: Path, *, name: str = "store", private: bool = False) -> None:
        self.root = root.absolute()
        self.name = name
        self._folder_mode, self._file_mode = (0o700, 0o600) if private else (0o777, 0o666)
        self._durable: set[Path] = set()

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Entries in key order, one folder in memory at a time. Files that appear meanwhile may be missing."""
        self._require_root()
        yield from self._list_folder("", prefix)

    def folders(self) -> Iterator[str]:
        """Names of the folders right below the root."""
        self._require_root()
        try:
            with os.scandir(self.root) as found:
                names = sorted(child.name for child in found if child.is_dir(follow_symlinks=False))
        except OSError as error:
            self._away("read", error)
        yield from names

    def _require_root(self) -> None:
        try:
            self.root.stat()
        except FileNotFoundError:
            raise StorageError(
                f"The {self.name} folder does not exist.",
                f"Create it or correct ASSET_PIPELINE_{self.name.upper()}.",
            ) from None
        except OSError as error:
            self._away("read", error)

    def _list_folder(self, parent: str, prefix: str) -> Iterator[Entry]:
        try:
            with os.scandir(self.root / parent) as found:
                children = [(child, child.is_dir(follow_symlinks=False)) for child in found]
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._away("read", error)
        # A folder sorts as "name/": so keys come in the order of whole keys, as S3 has it.
        for key, child, folder in sorted(
            ((f"{parent}{child.name}{'/' * folder}", child, folder) for child, folder in children),
            key=lambda row: row[0],
        ):
            if folder:
                if key.startswith(prefix) or prefix.startswith(key):
                    yield from self._list_folder(key, prefix)
            elif key.startswith(prefix) and not child.name.startswith(TEMPORARY):
                with suppress(FileNotFoundError):
                    yield _entry(key, child.stat(follow_symlinks=False))

    def entry(self, key: str) -> Entry:
        """The entry of a regular file; KeyError for anything else."""
        try:
            descriptor = self._descriptor(key)
            try:
                return _entry(key, os.fstat(descriptor))
            finally:
                os.close(descriptor)
        except OSError as error:
            self._away("read", error)

    @contextmanager
    def open(self, key: str) -> Iterator[BinaryIO]:
        """A stream of the bytes; KeyError when there is no regular file of that key."""
        try:
            with os.fdopen(self._descriptor(key), "rb") as stream:
                yield stream
        except OSError as error:
            self._away("read", error)

    def _descriptor(self, key: str) -> int:
        """Open ``key`` for reading, from the root down, through real folders only."""
        *folders, last = _parts(key)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        opened: list[int] = []
        try:
            opened.append(self._root_descriptor())
            for folder in folders:
                opened.append(os.open(folder, flags | os.O_DIRECTORY, dir_fd=opened[-1]))
            # Without O_NONBLOCK a pipe would wait for its writer for ever.
            descriptor = os.open(last, flags | os.O_NONBLOCK, dir_fd=opened[-1])
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                os.close(descriptor)
                raise KeyError(key)
            return descriptor
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO):
                raise KeyError(key) from None
            raise
        finally:
            for folder_descriptor in opened:
                os.close(folder_descriptor)

    def _root_descriptor(self) -> int:
        """The root opened. A new store has none yet, so that one has no keys; one that is no folder is away."""
        try:
            return os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except NotADirectoryError as error:
            self._away("read", error)

    def fetch(self, key: str, target: Path, sha256: str) -> int:
        """Copy to the new file ``target``, checking the digest on the way."""
        return fetch_checked(self, key, target, sha256)

    def exists(self, key: str) -> bool:
        """Whether there is a regular file of that key."""
        try:
            self.entry(key)
        except KeyError:
            return False
        return True

    def put_once(self, key: str, source: Path, sha256: str) -> bool:
        """Link a synced copy of ``source`` to its name, unless the name is taken."""
        target = self._target(key)
        try:
            self._make_folder(target.parent)
            if target.exists():
                _sync_folder(target.parent)
                return False
            with self._copied(source, sha256, target.parent) as temporary:
                reached(Failpoint.ONCE_WRITTEN)
                written = self._claim(temporary, target)
            # Also after losing: the winner may not have synced yet, and our caller is about to record the key.
            _sync_folder(target.parent)
        except OSError as error:
            self._away("written", error)
        return written

    def repair(self, key: str, source: Path, sha256: str) -> bool:
        """Rename a synced copy over bytes that are not the right ones."""
        if holds_digest(self, key, sha256):
            return False
        target = self._target(key)
        try:
            self._make_folder(target.parent)
            with self._copied(source, sha256, target.parent) as temporary:
                temporary.rename(target)
            _sync_folder(target.parent)
        except OSError as error:
            self._away("written", error)
        return True

    @contextmanager
    def _copied(self, source: Path, sha256: str, folder: Path) -> Iterator[Path]:
        """A synced copy of ``source`` in ``folder``, under a temporary name; it must have the digest ``sha256``."""
        with self._temporary(folder) as (temporary, descriptor):
            with open_regular(source) as stream:
                digest, _ = copy_hashed(stream, descriptor)
            if digest != sha256:
                raise IntegrityError("The bytes to store do not have the expected digest.")
            os.fsync(descriptor)
            yield temporary

    def _claim(self, temporary: Path, target: Path) -> bool:
        """Give ``temporary`` the name ``target`` unless it is taken; True when this call did."""
        try:
            os.link(temporary, target)
        except FileExistsError:
            # On a network file system the answer to a link that worked can get lost and be asked for again.
            return temporary.stat().st_nlink > 1
        except OSError as error:
            if error.errno not in _LINKS_UNSUPPORTED:
                raise
            return self._claim_without_links(temporary, target)
        return True

    def _claim_without_links(self, temporary: Path, target: Path) -> bool:
        """Rename under a lock: for file systems that have no links."""
        with (self.root / LOCK).open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.exists():
                return False
            temporary.rename(target)
            return True

    def put_current(self, key: str, body: bytes) -> None:
        """Rename a synced file to its name, whatever was there."""
        target = self._target(key)
        try:
            self._make_folder(target.parent)
            with self._temporary(target.parent) as (temporary, descriptor):
                with os.fdopen(descriptor, "wb", closefd=False) as stream:
                    stream.write(body)
                os.fsync(descriptor)
                reached(Failpoint.CURRENT_WRITTEN)
                temporary.rename(target)
            _sync_folder(target.parent)
        except OSError as error:
            self._away("written", error)

    def delete(self, key: str) -> None:
        """Unlink the file; one that is already gone is success. Folders stay."""
        target = self._target(key)
        try:
            target.unlink()
            _sync_folder(target.parent)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self._away("written", error)

    def sweep_temporary(self, before: datetime) -> Swept:
        """Unlink temporary files of writers that were ended in the middle. A folder that is not there has none."""
        swept = Swept()
        for parent, _, names in os.walk(self.root):
            for name in names:
                if name.startswith(TEMPORARY) and name != LOCK:
                    swept = self._sweep_one(Path(parent, name), before, swept)
        return swept

    def _sweep_one(self, path: Path, before: datetime, swept: Swept) -> Swept:
        try:
            found = path.stat(follow_symlinks=False)
            if found.st_mtime >= before.timestamp():
                return swept
            path.unlink()
        except FileNotFoundError:
            return swept
        except OSError as error:
            self._away("written", error)
        return swept.plus(found.st_size)

    def check(self) -> None:
        """Write, read back and delete a small file."""
        prove(self, self.name)

    def _target(self, key: str) -> Path:
        return self.root.joinpath(*_parts(key))

    @contextmanager
    def _temporary(self, folder: Path) -> Iterator[tuple[Path, int]]:
        """A new file in ``folder`` and its descriptor; its first name is gone afterwards, whatever happened."""
        path = folder / f"{TEMPORARY}{secrets.token_hex(16)}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, self._file_mode)
        try:
            yield path, descriptor
        finally:
            os.close(descriptor)
            path.unlink(missing_ok=True)

    def _make_folder(self, folder: Path) -> None:
        """Make ``folder`` and what is above it, durably: a synced file in a lost folder is lost."""
        if folder in self._durable and folder.is_dir():
            return
        if folder == self.root:
            folder.mkdir(mode=self._folder_mode, parents=True, exist_ok=True)
        else:
            self._make_folder(folder.parent)
            folder.mkdir(mode=self._folder_mode, exist_ok=True)
        _sync_folder(folder.parent)
        self._durable.add(folder)

    def _away(self, verb: str, error: OSError) -> NoReturn:
        """Say that the store failed, in the system's words and without a path."""
        raise StorageError(
            f"The {self.name} store cannot be {verb}: {os.strerror(error.errno or errno.EIO)}.",
            f"Check the folder that ASSET_PIPELINE_{self.name.upper()} names, its permissions and free space.",
            Reason.STORAGE_UNAVAILABLE,
        ) from None


def _parts(key: str) -> list[str]:
    parts = key.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError("a store key is a relative path without empty, '.' or '..' parts")
    return parts


def _entry(key: str, found: os.stat_result) -> Entry:
    tag = f"{found.st_mtime_ns}-{found.st_ino}" if stat.S_ISREG(found.st_mode) else SPECIAL
    modified = datetime.fromtimestamp(found.st_mtime, UTC)
    return Entry(key=key, bytes=found.st_size, tag=tag, modified=modified)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
