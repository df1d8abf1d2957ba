"""Copies of an installation in which ``gate`` tries things: how they are called, and what removes those left behind.

A rehearsal removes its copy on every way out but one: when it is killed. Parts of a copy lie in every store, beside
the ledger and in the working folder, on machines that see no lock of each other; so its name holds the second in which
it was made, and whatever is older than an hour, far longer than any rehearsal, is nobody's. Making one: ``cli``.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import make_url, text

from asset_pipeline.errors import StorageError
from asset_pipeline.installation import Installation

AGE = timedelta(hours=1)

PREFIX = "gate-"
_NAME = re.compile(PREFIX + r"(?P<second>[0-9a-f]{8})-[0-9a-f]{12}")
_INBOX = "-inbox"


def new_rehearsal(now: datetime) -> str:
    """Name of a copy that is made at ``now``, and of each of its parts."""
    return f"{PREFIX}{int(now.timestamp()):08x}-{secrets.token_hex(6)}"


def inbox_of(name: str) -> str:
    """Name of the copy's inbox, which lies in the archive store."""
    return name + _INBOX


def schema_of(name: str) -> str:
    """Name of the copy's schema in PostgreSQL."""
    return name.replace("-", "_")


def sweep_rehearsals(inst: Installation, now: datetime) -> int:
    """Remove copies older than an hour, all their parts; how many. Raises StorageError when a store is away."""
    before = now - AGE
    found: set[str] = set()
    away: StorageError | None = None
    for name in ("sources", "archive", "quarantine"):
        try:
            found |= _sweep_store(inst, name, before)
        except StorageError as error:
            away = error
    for folder in _folders(inst):
        found |= _sweep_folder(folder, before)
    found |= _sweep_schemas(inst, before)
    if away is not None:
        raise away
    return len(found)


def _folders(inst: Installation) -> Iterator[Path]:
    yield inst.settings.home
    yield inst.settings.work_folder
    url = make_url(inst.settings.ledger_url)
    if url.get_backend_name() == "sqlite":
        yield Path(str(url.database)).absolute().parent


def _sweep_store(inst: Installation, name: str, before: datetime) -> set[str]:
    address = inst.settings.store_address(name)
    if not address.startswith("s3://"):
        return _sweep_folder(Path(address), before)
    found = set()
    store = {"sources": inst.sources, "archive": inst.archive, "quarantine": inst.quarantine}[name]
    for entry in list(store.list(PREFIX)):
        if copy := _left(entry.key.partition("/")[0], before):
            store.delete(entry.key)
            found.add(copy)
    return found


def _sweep_folder(folder: Path, before: datetime) -> set[str]:
    try:
        with os.scandir(folder) as children:
            places = {
                child.path: _left(child.name, before) for child in children if child.is_dir(follow_symlinks=False)
            }
    except OSError:
        return set()
    left = {place: copy for place, copy in places.items() if copy}
    for place in left:
        shutil.rmtree(place, ignore_errors=True)
    return {copy for place, copy in left.items() if not Path(place).exists()}


def _sweep_schemas(inst: Installation, before: datetime) -> set[str]:
    if make_url(inst.settings.ledger_url).get_backend_name() != "postgresql":
        return set()
    with inst.ledger.read() as conn:
        names = list(
            conn.execute(text("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'gate!_%' ESCAPE '!'")).scalars()
        )
    found = set()
    for schema in names:
        if copy := _left(schema.replace("_", "-"), before):
            with inst.ledger.begin() as tx:
                tx.execute(text(f"DROP SCHEMA IF EXISTS {schema_of(copy)} CASCADE"))
            found.add(copy)
    return found


def _left(part: str, before: datetime) -> str | None:
    """The copy that a part of this name belongs to, where it was made before ``before``."""
    named = _NAME.fullmatch(part.removesuffix(_INBOX))
    if named is None or datetime.fromtimestamp(int(named["second"], 16), UTC) >= before:
        return None
    return named[0]
