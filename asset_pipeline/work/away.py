"""Is it the store, or this one object? Tells a store that is away from a document that cannot be stored.

A store, database or disk that is away is nobody's document's fault: the work is given back at no cost and
the run ends. A failure while all of them answer is about the object at hand, and is charged to its
document, because one that always fails must end some day. The stores are asked after the failure: asking
costs a few requests, and guessing from the error would get either of the two wrong. Only a ledger that somebody
else had locked says so itself: once it answers again, nothing tells what was in the way.
"""

from __future__ import annotations

import shutil

from sqlalchemy import select

from asset_pipeline.errors import LedgerLocked, StorageError
from asset_pipeline.installation import Installation
from asset_pipeline.storage.folder import FolderStore


def is_away(inst: Installation, error: StorageError, needed_bytes: int = 0) -> bool:
    """Whether ``error`` would meet any document. ``needed_bytes`` is what the work folder had to take."""
    if isinstance(error, LedgerLocked) or error.hint is not None:
        return True
    return not _all_answer(inst) or not _has_room(inst, needed_bytes)


def check_mounted(inst: Installation) -> None:
    """Raise StorageError when the sources store is a folder without anything in it: the mount point of a disk that is
    away looks like that. Deleting every source leaves folders, and a bucket cannot be unmounted.
    """
    if isinstance(inst.sources, FolderStore) and not any(inst.sources.folders()):
        raise StorageError(
            "The sources store holds nothing, although the ledger names sources in it.",
            "Check that its disk is mounted and that ASSET_PIPELINE_SOURCES names it.",
        )


def _all_answer(inst: Installation) -> bool:
    try:
        with inst.ledger.read() as conn:
            conn.execute(select(1))
        for store in (inst.sources, inst.archive, inst.quarantine):
            store.check()
    except StorageError:
        return False
    return True


def _has_room(inst: Installation, needed_bytes: int) -> bool:
    try:
        return shutil.disk_usage(inst.settings.work_folder).free > needed_bytes
    except OSError:
        return False
