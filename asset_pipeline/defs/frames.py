"""What each asset is as a table, read from the ledger: documents, pictures, manifests of some months.

Imported only when somebody loads an asset, since pandas takes long to import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pandas as pd
import pyarrow as pa  # type: ignore[import-untyped]

from asset_pipeline.archive.manifest import manifest_key
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow

PICTURE_COLUMNS = (
    "page",
    "name",
    "kind",
    "status",
    "reason",
    "picture",
    "display",
    "width",
    "height",
    "caption",
    "alt",
)
MANIFEST_COLUMNS = ("report_id", "month", "state", "reason", "edition", "content_digest", "manifest_digest")


def documents(inst: Installation, months: Sequence[str]) -> pd.DataFrame:
    """One row a report."""
    hidden = frozenset() if inst.policy.show_names else frozenset({"name", "collection"})
    columns = [name for name in DocumentRow.__slots__ if name not in hidden]
    rows = ({name: row[name] for name in columns} for row in map(asdict, _documents(inst, months)))
    return pd.DataFrame(rows, columns=columns)


def pictures(inst: Installation, months: Sequence[str]) -> pd.DataFrame:
    """One row a placement of a picture on a page of a document that was read."""
    rows: list[dict[str, Any]] = []
    with inst.ledger.read() as conn:
        for document in _documents(inst, months):
            if document.state != "succeeded":
                continue
            for page in reading.pages_of(conn, document.job_id):
                for row in page.placements:
                    values = row.model_dump(mode="json", include=set(PICTURE_COLUMNS) - {"page"})
                    rows.append({"month": document.month, "report_id": document.report_id, "page": page.page} | values)
    return pd.DataFrame(rows, columns=["month", "report_id", *PICTURE_COLUMNS])


def manifests(inst: Installation, months: Sequence[str]) -> pd.DataFrame:
    """One row a report, with the newest edition of its manifest and where that lies in the archive."""
    rows = [asdict(row) | {"key": manifest_key(row.month, row.report_id)} for row in _documents(inst, months)]
    return pd.DataFrame(rows, columns=[*MANIFEST_COLUMNS, "key"])


def catalogue(inst: Installation, months: Sequence[str]) -> pd.DataFrame:
    """One row a placement, with every column of the catalogue of pictures."""
    from asset_pipeline.archive.catalogue import read_catalogue, schema

    tables = [schema("pictures").empty_table(), *(read_catalogue(inst, month)["pictures"] for month in months)]
    found: pd.DataFrame = pa.concat_tables(tables).to_pandas()
    return found


def _documents(inst: Installation, months: Sequence[str]) -> Iterator[DocumentRow]:
    for month in months:
        with inst.ledger.read() as conn:
            rows = reading.documents_of_month(conn, month)
        yield from rows


FRAMES: dict[str, Callable[[Installation, Sequence[str]], pd.DataFrame]] = {
    "source_documents": documents,
    "validated_images": pictures,
    "manifests": manifests,
    "image_gallery": pictures,
    "image_catalogue": catalogue,
}
