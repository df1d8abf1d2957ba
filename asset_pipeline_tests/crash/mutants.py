"""Five faults, patched into the workers of a campaign: a harness that does not notice them proves nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text, update

from asset_pipeline.archive import sweep
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import publication, units
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline.storage.store import object_key
from asset_pipeline_tests.crash import worker


def no_fence() -> None:
    """A late worker writes as if it still held the unit."""

    def unfenced(tx: Connection, claim: units.Claim, **values: Any) -> None:
        tx.execute(update(units_table).where(units_table.c.unit_id == claim.unit_id).values(**values))

    units.change_held = publication.change_held = unfenced


def outside_the_transaction() -> None:
    """The unit's end is committed by itself, what it delivered comes after."""
    fenced = units.change_held

    def committed(tx: Connection, claim: units.Claim, **values: Any) -> None:
        fenced(tx, claim, **values)
        connection = tx.connection.dbapi_connection
        connection.commit()
        connection.execute("BEGIN IMMEDIATE")

    publication.change_held = committed


def no_unique_receipt() -> None:
    """Receipts are written without a look at those that are there; ``alter`` takes the key off the table."""
    publication._recorded_receipts = lambda tx, claim, names: {}  # type: ignore[assignment]


def alter(name: str, inst: Installation) -> None:
    """Change the new database of a campaign as the fault has it."""
    if name != "no_unique_receipt":
        return
    with inst.ledger.begin() as tx:
        for statement in (
            "ALTER TABLE receipts RENAME TO receipts_with_key",
            "CREATE TABLE receipts AS SELECT * FROM receipts_with_key",
        ):
            tx.execute(text(statement))


def overwrite() -> None:
    """Files are put in place whatever is there."""
    once = FolderStore.put_once

    def put(self: FolderStore, key: str, source: Path, sha256: str) -> bool:
        if not key.startswith("objects/"):
            return once(self, key, source, sha256)
        target = self._target(key)
        self._make_folder(target.parent)
        with self._copied(source, sha256, target.parent) as temporary:
            worker.failpoints.reached(worker.Failpoint.ONCE_WRITTEN)
            temporary.rename(target)
        return True

    FolderStore.put_once = put  # type: ignore[method-assign]


def sweep_without_lock() -> None:
    """Files that nothing names are deleted as they are found."""

    def careless(inst: Installation, _now: datetime, _grace: timedelta) -> None:
        for row in sweep.unnamed_files(inst):
            inst.archive.delete(object_key(row.sha256))

    worker.sweep_objects = careless  # type: ignore[assignment]


MUTANTS: dict[str, Callable[[], None]] = {
    "": lambda: None,
    "no_fence": no_fence,
    "no_unique_receipt": no_unique_receipt,
    "overwrite": overwrite,
    "outside_the_transaction": outside_the_transaction,
    "sweep_without_lock": sweep_without_lock,
}


def apply(name: str) -> None:
    MUTANTS[name]()
