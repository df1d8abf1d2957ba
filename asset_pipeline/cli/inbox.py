"""What commands do before they tell of documents: look into the inbox, so that a file dropped a moment ago is there.

How an inventory is taken and why an upload is deferred belong in ``intake``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from asset_pipeline.cli import console
from asset_pipeline.errors import StorageError

if TYPE_CHECKING:
    from asset_pipeline.installation import Installation
    from asset_pipeline.intake.deferral import Deferral


def look_into_inbox(inst: Installation, month: str | None = None) -> dict[str, Deferral]:
    """Record what is in the inbox now (of ``month`` alone, when given); the deferred uploads by id.

    What is asked is about the archive too: of an inbox that is away, said, the last look counts.
    """
    from asset_pipeline.intake.deferral import deferrals
    from asset_pipeline.intake.inventory import take_inventory

    now = datetime.now(UTC)
    try:
        take_inventory(inst, now, month)
    except StorageError as error:
        console.say(f"Note: {error.what} What is told of it is from the last look.")
    with inst.ledger.read() as conn:
        return deferrals(inst, conn, now)
