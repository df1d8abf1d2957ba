"""Puts a unit's pictures into the archive store, each once, before the ledger names them.

Order is the guarantee: bytes are durable first, then ``ledger.publication`` records them in one
transaction. A crash in between leaves objects that nothing refers to, never a record without bytes.
Keys are digests, so that the same picture of two documents is one object.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from asset_pipeline.installation import Installation
from asset_pipeline.ledger import publication
from asset_pipeline.model import Extraction, Picture
from asset_pipeline.storage.store import object_key

PARALLEL_PUTS = 8
"""Writes at a time: a bucket's (or a disk's) latency is waited for once, not once a picture."""


def store_pictures(inst: Installation, folder: Path, extraction: Extraction) -> int:
    """Write the pictures of ``extraction`` that lie in ``folder``; returns the bytes that were new.

    What the ledger says is stored is not sent again. Raises StorageError or IntegrityError.
    """
    pictures = {picture.sha256: picture for picture in extraction.pictures}
    with inst.ledger.read() as conn:
        known = publication.stored_objects(conn, list(pictures))
    missing = [picture for digest, picture in sorted(pictures.items()) if digest not in known]
    return sum(_put_all(inst, folder, missing))


def _put_all(inst: Installation, folder: Path, pictures: list[Picture]) -> Iterator[int]:
    def put(picture: Picture) -> int:
        written = inst.archive.put_once(object_key(picture.sha256), folder / picture.file, picture.sha256)
        return picture.bytes if written else 0

    if len(pictures) < 2:
        yield from map(put, pictures)
        return
    with ThreadPoolExecutor(min(PARALLEL_PUTS, len(pictures)), thread_name_prefix="put") as threads:
        yield from threads.map(put, pictures)
