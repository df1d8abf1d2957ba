"""Takes expired reports out of what people look at: gallery and catalogue of a month, or deletes both when all are.

Thumbnails and page previews are pictures too, so this is a deletion with an event before and after. Both are made
again from the ledger, which leaves expired reports out; a gallery or catalogue that was never made is not made here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import datetime

from asset_pipeline.archive.catalogue import TABLES, catalogue_key, catalogue_note_key, publish_catalogue
from asset_pipeline.archive.gallery.content import read_month
from asset_pipeline.archive.gallery.publish import Previews, gallery_prefix, write_gallery
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.expiry import ARCHIVE_DEADLINE
from asset_pipeline.ledger.identity import new_id

OpenPreviews = Callable[[], AbstractContextManager[Previews]]


def take_out_expired(inst: Installation, month: str, open_previews: OpenPreviews, now: datetime) -> int:
    """Bring gallery and catalogue of ``month`` up to date; how many files went. Raises StorageError."""
    gallery = [entry.key for entry in inst.archive.list(gallery_prefix(month))]
    keys = [*[catalogue_key(table, month) for table in TABLES], catalogue_note_key(month)]
    catalogue = [key for key in keys if inst.archive.exists(key)]
    if not gallery and not catalogue:
        return 0
    deletion_id = new_id()
    _tell(inst, "deletion_intended", deletion_id, month, len(gallery) + len(catalogue), now)
    content = read_month(inst, month)
    if not content.documents:
        for key in (*gallery, *catalogue):
            inst.archive.delete(key)
        removed = len(gallery) + len(catalogue)
    else:
        removed = write_gallery(inst.archive, content, open_previews).removed if gallery else 0
        if catalogue:
            publish_catalogue(inst, month)
    _tell(inst, "deleted", deletion_id, month, removed, now)
    return removed


def _tell(inst: Installation, event: str, deletion_id: str, month: str, count: int, now: datetime) -> None:
    facts = {"deletion_id": deletion_id, "kind": "shown", "reason": ARCHIVE_DEADLINE, "count": count}
    with inst.ledger.begin() as tx:
        record_event(tx, event, month=month, payload=facts, now=now)
