"""Writes the pictures of a month or of a document into one ZIP, with names that people can read and a table.

The archive names files by digest; here each archived picture is ``collection/document/page-042-image-003.jpg``, once,
as the page shows it, and ``pictures.csv`` has a row for every placement: repeats (with the file that they repeat),
decoration, quarantined ones. Names that strangers wrote are made safe for any system that unpacks them. Streamed and
deterministic: the same month gives the same bytes.
"""

from __future__ import annotations

import csv
import hashlib
import io
import os
import re
import secrets
import unicodedata
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asset_pipeline.errors import ConfigurationError, IntegrityError, UsageError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow
from asset_pipeline.model import Status
from asset_pipeline.storage.store import CHUNK, object_key

EXTENSIONS = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/webp": "webp",
    "image/tiff": "tif",
    "image/jp2": "jp2",
}
COLUMNS = (
    "document",
    "report_id",
    "page",
    "page_label",
    "name",
    "kind",
    "status",
    "reason",
    "file",
    "media_type",
    "bytes",
    "width",
    "height",
    "ppi",
    "caption",
    "alt",
    "original_sha256",
    "display_sha256",
)
NAME_CHARACTERS = 80
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE)
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Exported:
    """What went into a ZIP."""

    target: Path
    documents: int
    pictures: int
    rows: int
    bytes: int


def export_month(inst: Installation, month: str, target: Path, document: str | None = None) -> Exported:
    """Write ``target``. ``document`` is a report id, or a name or collection/name where the policy shows names.

    Raises UsageError when there is nothing of that kind or ``target`` is taken, IntegrityError when stored bytes are
    not what they should be.
    """
    with inst.ledger.read() as conn:
        documents = [row for row in reading.documents_of_month(conn, month) if row.state == "succeeded"]
    documents = [row for row in documents if row.expired_at is None]
    if document is not None:
        documents = [row for row in documents if is_called(row, document, inst.policy.show_names)]
    if not documents:
        what = "document of that name was read" if document else "document was read"
        raise UsageError(f"In {month} no {what}.", f"`asset-pipeline status {month}` shows what there is.")
    if target.exists():
        raise UsageError("There is a file of that name already.", "Name another target.")
    scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}")
    try:
        with zipfile.ZipFile(scratch, "x") as bundle:
            pictures, rows = _write(inst, month, documents, bundle)
        os.link(scratch, target)
    except FileExistsError:
        raise UsageError("There is a file of that name already.", "Name another target.") from None
    except OSError as error:
        raise ConfigurationError(f"The target cannot be written ({error.strerror}).", "Name another place.") from None
    finally:
        scratch.unlink(missing_ok=True)
    return Exported(target, len(documents), pictures, rows, target.stat().st_size)


def is_called(row: DocumentRow, wanted: str, show_names: bool) -> bool:
    """Whether a person means ``row`` by ``wanted``."""
    return wanted == row.report_id or (show_names and wanted in (row.name, f"{row.collection}/{row.name}"))


def safe_name(text: str) -> str:
    """``text`` as one part of a path on any system: no control, format or special characters, not too long."""
    kept = "".join(
        "_" if mark in '\\/:*?"<>|' or unicodedata.category(mark)[0] == "C" else mark
        for mark in unicodedata.normalize("NFC", text)
    )
    kept = kept[:NAME_CHARACTERS].strip(" .")
    return f"_{kept}" if not kept or _RESERVED.fullmatch(kept) else kept


def _write(inst: Installation, month: str, documents: list[DocumentRow], bundle: zipfile.ZipFile) -> tuple[int, int]:
    stamp = (int(month[:4]), int(month[5:]), 1, 0, 0, 0)
    table = io.StringIO()
    writer = csv.DictWriter(table, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    folders = _folders(documents, inst.policy.show_names)
    pictures = rows = 0
    for document in documents:
        for row, digest in _rows(inst, document, folders[document.report_id]):
            if digest:
                _copy(inst, bundle, row["file"], digest, stamp)
                pictures += 1
            writer.writerow({name: _cell(value) for name, value in row.items()})
            rows += 1
    entry = _entry("pictures.csv", stamp, zipfile.ZIP_DEFLATED)
    # A mark, or spreadsheets take it for another encoding.
    bundle.writestr(entry, "\ufeff" + table.getvalue())
    return pictures, rows


def _folders(documents: list[DocumentRow], show_names: bool) -> dict[str, str]:
    """A folder for each document; two that would be one folder, also where case does not count, are told apart."""
    taken: set[str] = set()
    folders = {}
    for row in documents:
        stem = (row.name or "").rpartition(".")[0] or row.name
        folder = f"{safe_name(row.collection)}/{safe_name(stem)}" if show_names and stem else row.report_id
        if folder.casefold() in taken:
            folder += f"-{row.report_id[:8]}"
        taken.add(folder.casefold())
        folders[row.report_id] = folder
    return folders


def _rows(inst: Installation, document: DocumentRow, folder: str) -> Iterator[tuple[dict[str, Any], str | None]]:
    """A row for each placement, and the digest of its file when this row brings it."""
    with inst.ledger.read() as conn:
        pages = reading.pages_of(conn, document.job_id)
        files = {found.sha256: found for found in reading.pictures_of(conn, document.job_id)}
    brought: dict[str, str] = {}
    for page in pages:
        for row in page.placements:
            digest = row.display or row.picture
            facts = files.get(digest or "")
            file = brought.get(digest or "") if row.status in (Status.ARCHIVED, Status.COLLAPSED) else None
            new = facts is not None and file is None and row.status is Status.ARCHIVED
            if new and digest and facts:
                file = brought[digest] = f"{folder}/{row.name}.{EXTENSIONS.get(facts.media_type, 'bin')}"
            yield (
                {
                    "document": document.name if inst.policy.show_names else None,
                    "report_id": document.report_id,
                    "page": page.page,
                    "page_label": page.label,
                    "name": row.name,
                    "kind": row.kind.value,
                    "status": row.status.value,
                    "reason": row.reason.value if row.reason else None,
                    "file": file,
                    "media_type": facts.media_type if facts else None,
                    "bytes": facts.bytes if facts else None,
                    "width": facts.width if facts else row.width,
                    "height": facts.height if facts else row.height,
                    "ppi": round(min(row.ppi)),
                    "caption": row.caption,
                    "alt": row.alt,
                    "original_sha256": row.picture,
                    "display_sha256": row.display,
                },
                digest if new else None,
            )


def _copy(inst: Installation, bundle: zipfile.ZipFile, name: str, digest: str, stamp: tuple[int, ...]) -> None:
    found = hashlib.sha256()
    try:
        with (
            inst.archive.open(object_key(digest)) as source,
            bundle.open(_entry(name, stamp, zipfile.ZIP_STORED), "w", force_zip64=True) as target,
        ):
            while chunk := source.read(CHUNK):
                found.update(chunk)
                target.write(chunk)
    except KeyError:
        raise IntegrityError("The archive lacks a picture of the month.", "Restore it from a backup.") from None
    if found.hexdigest() != digest:
        raise IntegrityError("Stored bytes do not match their digest.", "Restore them from a backup.")


def _entry(name: str, stamp: tuple[int, ...], compression: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, (stamp[0], stamp[1], stamp[2], 0, 0, 0))
    entry.compress_type = compression
    entry.create_system, entry.external_attr = 3, 0o644 << 16
    return entry


def _cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula is kept a text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
