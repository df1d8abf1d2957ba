"""What changed between two editions of a report's manifest: the pictures that came, went, or are told otherwise.

Read from the manifests in the archive, which say what was published then; the ledger says what holds now. Whether
they are genuine belongs in ``archive`` and ``evidence``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from asset_pipeline.archive.envelope import open_manifest
from asset_pipeline.archive.manifest import edition_key, manifest_key
from asset_pipeline.errors import UsageError
from asset_pipeline.history.columns import Column
from asset_pipeline.history.frames import typed
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.schema import manifests
from asset_pipeline.settings import load_settings

if TYPE_CHECKING:
    import pandas as pd

CHANGES = (
    Column("page", "integer", "page, from 1"),
    Column("name", "text", "name of the placement"),
    Column("change", "text", "appeared, gone or changed"),
    Column("status_before", "text", "status in the earlier edition"),
    Column("status_after", "text", "status in the later edition"),
    Column("picture_before", "text", "SHA-256 of the original file in the earlier edition"),
    Column("picture_after", "text", "SHA-256 of the original file in the later edition"),
)

_Placements = dict[tuple[int, str], tuple[str, str | None]]


def changes(report_id: str, before: int, after: int, inst: Installation | None = None) -> pd.DataFrame:
    """Placements that differ between the editions ``before`` and ``after`` of a report, by page and name.

    ``inst`` None opens the installation of the environment. Raises UsageError when there is no such edition,
    IntegrityError when the archive does not hold it.
    """
    if inst is None:
        with open_installation(load_settings()) as opened:
            return changes(report_id, before, after, opened)
    old, new = (_placements(inst, report_id, edition) for edition in (before, after))
    rows = [
        _row(key, old.get(key), new.get(key)) for key in sorted(old.keys() | new.keys()) if old.get(key) != new.get(key)
    ]
    return typed(CHANGES, rows)


def _row(
    key: tuple[int, str], old: tuple[str, str | None] | None, new: tuple[str, str | None] | None
) -> dict[str, Any]:
    kind = "appeared" if old is None else "gone" if new is None else "changed"
    (status_before, picture_before), (status_after, picture_after) = old or (None, None), new or (None, None)
    return {
        "page": key[0],
        "name": key[1],
        "change": kind,
        "status_before": status_before,
        "status_after": status_after,
        "picture_before": picture_before,
        "picture_after": picture_after,
    }


def _placements(inst: Installation, report_id: str, edition: int) -> _Placements:
    query = select(manifests.c.month, manifests.c.edition).where(manifests.c.report_id == report_id)
    with inst.ledger.read() as conn:
        months = {known: month for month, known in conn.execute(query)}
    if edition not in months:
        raise UsageError(f"There is no edition {edition} of that report.", f"There are {sorted(months)}.")
    newest = edition == max(months)
    key = manifest_key(months[edition], report_id) if newest else edition_key(months[edition], report_id, edition)
    with inst.archive.open(key) as stream:
        body = open_manifest(stream.read()).body
    return {
        (page["page"], row["name"]): (row["status"], row["picture"])
        for page in body["content"]["pages"]
        for row in page["placements"]
    }
