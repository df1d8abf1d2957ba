"""Puts a unit's pictures into the archive store, each once, before the ledger names them.

Order is the guarantee: bytes are durable first, then ``ledger.publication`` records them in one
transaction. A crash in between leaves objects that nothing refers to, never a record without bytes.
Keys are digests, so that the same picture of two documents is one object. That the ledger knows an object
is not believed: it is looked for before a second document relies on it, and put again where it is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

from asset_pipeline.archive.audit import stored_size
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.objects import lock_object, mark_stored, object_states
from asset_pipeline.model import Extraction, Picture, Withheld
from asset_pipeline.storage.store import object_key

PARALLEL_PUTS = 8
"""Writes at a time: a bucket's (or a disk's) latency is waited for once, not once a picture."""


def store_pictures(inst: Installation, folder: Path, extraction: Extraction) -> int:
    """Write the pictures of ``extraction`` that lie in ``folder``; returns the bytes that were new.

    What the ledger says is stored, and is there in its size, is not sent again. Raises StorageError or IntegrityError.
    """
    _withhold(inst, folder, extraction)
    pictures = {picture.sha256: picture for picture in extraction.pictures}
    with inst.ledger.read() as conn:
        states = object_states(conn, list(pictures))
    return sum(_put_all(inst, folder, [picture for _, picture in sorted(pictures.items())], states))


def _withhold(inst: Installation, folder: Path, extraction: Extraction) -> None:
    """Put the bytes of quarantined pictures into their own store, where the working clock finds them by listing it."""
    for sha256 in sorted({row.sha256 for row in extraction.withheld}):
        inst.quarantine.put_once(withheld_key(sha256), folder / Withheld.file_of(sha256), sha256)


def withheld_key(sha256: str) -> str:
    """Key in the quarantine store."""
    return f"{sha256[:2]}/{sha256}"


def _put_all(inst: Installation, folder: Path, pictures: list[Picture], states: dict[str, str]) -> Iterator[int]:
    def put(picture: Picture) -> int:
        state = states.get(picture.sha256)
        if state in ("deleting", "deleted"):
            return _put_again(inst, folder, picture)
        if state is None and inst.archive.put_once(object_key(picture.sha256), folder / picture.file, picture.sha256):
            reached(Failpoint.OBJECT_LINKED)
            return picture.bytes
        return _heal(inst, folder, picture)

    if len(pictures) < 2:
        yield from map(put, pictures)
        return
    with ThreadPoolExecutor(min(PARALLEL_PUTS, len(pictures)), thread_name_prefix="put") as threads:
        yield from threads.map(put, pictures)


def _put_again(inst: Installation, folder: Path, picture: Picture) -> int:
    """Put what was swept, while its row is held: a deletion that is under way ends first, or finds it stored."""
    with inst.ledger.begin() as tx:
        if lock_object(tx, picture.sha256) == "stored":
            return 0  # another publication did it meanwhile
        written = inst.archive.repair(object_key(picture.sha256), folder / picture.file, picture.sha256)
        mark_stored(tx, picture, datetime.now(UTC))
    return picture.bytes if written else 0


def _heal(inst: Installation, folder: Path, picture: Picture) -> int:
    """Put a known object again that is gone or cut, with an event."""
    key = object_key(picture.sha256)
    size = stored_size(inst.archive, key)
    if size == picture.bytes or not inst.archive.repair(key, folder / picture.file, picture.sha256):
        return 0
    payload = {"sha256": picture.sha256, "bytes": picture.bytes, "found_bytes": size}
    with inst.ledger.begin() as tx:
        record_event(tx, "object_repaired", payload=payload, now=datetime.now(UTC))
    return picture.bytes
