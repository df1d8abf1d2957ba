"""Notes beside what is made of a month with every run: made from what, so that it is left alone while that is the same.

A note vouches for nothing: whoever reads one also looks whether the files are there as it says, and makes them again
otherwise, as where there is no note. The program counts as one of the things that a file is made from, all of it: a
version that somebody has to raise would be forgotten. What is in a gallery or catalogue belongs in their modules.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError
from sqlalchemy import Connection

import asset_pipeline
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.measures import told_digest
from asset_pipeline.storage.store import Store


class Note(BaseModel):
    """What files were made from, the SHA-256 of those that keep their names, and what was told of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    made_from: str
    sha256: dict[str, str]
    listing: str = ""
    """Digest over names and sizes of a whole folder."""
    figures: dict[str, int]


def made_from(inst: Installation, conn: Connection, month: str, *libraries: str) -> str:
    """Digest over all that decides what is said of ``month``: the ledger's rows, the program and ``libraries``."""
    names = inst.policy.show_names
    parts = [told_digest(conn, month, names=names), str(names), program_digest(), *libraries]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@cache
def program_digest() -> str:
    """Digest over the program's own files."""
    root = Path(asset_pipeline.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def read_note(store: Store, key: str) -> Note | None:
    """The note at ``key``; None when there is none, or something else."""
    try:
        with store.open(key) as stream:
            return Note.model_validate_json(stream.read())
    except (KeyError, ValidationError):
        return None


def write_note(store: Store, key: str, note: Note) -> None:
    """Put ``note`` at ``key``: after everything that it tells of."""
    store.put_current(key, (json.dumps(note.model_dump(), indent=0) + "\n").encode("ascii"))
