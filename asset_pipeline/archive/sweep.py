"""Deletes files of the archive that nothing names: what a crash left between storing and recording.

Only what has lain there longer than the grace time, and only under the lock that publication takes too (see
``ledger.objects``), so that nothing is deleted which somebody is about to name. An event before, the deletion, an
event after; a sweep that was stopped in between is ended by the next. What a record names is for ``retention``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

from asset_pipeline.installation import Installation
from asset_pipeline.ledger.holds import deleting, keeps_unowned
from asset_pipeline.ledger.objects import begin_deletion, end_deletion, half_deleted, still_deleting, unnamed_of
from asset_pipeline.ledger.statements import portions
from asset_pipeline.storage.store import Entry, object_key

GRACE = timedelta(hours=24)
"""Longer than any unit takes from its first stored picture to its record."""

PAGE = 500
PARALLEL_DELETES = 8

_OBJECT = re.compile(r"objects/[0-9a-f]{2}/([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Unnamed:
    """A file of the archive that no record names."""

    sha256: str
    bytes: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class SweptObjects:
    """How many files were deleted, and their bytes. ``held``: a legal hold keeps them all."""

    files: int = 0
    bytes: int = 0
    held: bool = False


def unnamed_files(inst: Installation) -> Iterator[Unnamed]:
    """Files of the archive that no record names, in order of their digests; a page of the listing in memory."""
    entries = inst.archive.list("objects/")
    while page := list(islice(entries, PAGE)):
        found = {digest: entry for entry in page if (digest := _digest(entry))}
        with inst.ledger.read() as conn:
            unnamed = unnamed_of(conn, list(found))
        yield from (Unnamed(digest, found[digest].bytes, found[digest].modified) for digest in unnamed)


def sweep_objects(inst: Installation, now: datetime, grace: timedelta = GRACE) -> SweptObjects:
    """Delete the files that no record names and that are older than ``grace``. Raises StorageError.

    Such a file may be of a report under a legal hold, so none goes while there is one.
    """
    with inst.ledger.read() as conn:
        if keeps_unowned(conn):
            return SweptObjects(held=True)
    old = {row.sha256: row.bytes for row in unnamed_files(inst) if row.modified < now - grace}
    with inst.ledger.read() as conn:
        marked = set(half_deleted(conn))
    for some in portions(sorted(old)):
        with inst.ledger.begin() as tx:
            deleting(tx)
            if keeps_unowned(tx):
                return SweptObjects(held=True)
            marked.update(begin_deletion(tx, {digest: old[digest] for digest in some}, now - grace, now))
    deleted: list[str] = []
    for some in portions(sorted(marked), PAGE // 10):
        deleted += _delete(inst, list(some), now)
    return SweptObjects(len(deleted), sum(old.get(digest, 0) for digest in deleted))


def _delete(inst: Installation, digests: list[str], now: datetime) -> list[str]:
    """Delete marked files while their rows are held; those that somebody put again meanwhile stay."""
    with inst.ledger.begin() as tx:
        deleting(tx)
        due = [] if keeps_unowned(tx) else still_deleting(tx, digests)
        with ThreadPoolExecutor(PARALLEL_DELETES, thread_name_prefix="sweep") as threads:
            list(threads.map(inst.archive.delete, map(object_key, due)))
        end_deletion(tx, due, now)
    return due


def _digest(entry: Entry) -> str | None:
    matched = _OBJECT.fullmatch(entry.key)
    return matched.group(1) if matched else None
