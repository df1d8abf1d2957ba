"""A month at a glance on its page in Dagster: some of its pictures, small, as data in Markdown.

A few of each document rather than many of the first, and none twice. Names stand in rows of their own below the
pictures, since in one cell they would hang beside them. The images are those that the gallery has from an earlier run;
others are made as the gallery's are, in decoder processes. Dagster keeps what it is told for ever, so the sheet is held
below ``MOST_CHARACTERS``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from pathlib import Path

import dagster as dg

from asset_pipeline.archive.gallery.publish import stored_thumbnails
from asset_pipeline.defs.tables import document_name
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow, ShownPicture
from asset_pipeline.work.previews import open_previews

MOST_PICTURES = 24
LOOKED_AT = 4 * MOST_PICTURES
"""Pictures of which those are chosen: the same logo may open every document."""
MOST_CHARACTERS = 190_000
COLUMNS = 3

_MARKS = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~])")


def contact_sheet(
    inst: Installation, month: str, documents: Sequence[DocumentRow], workers: int | None = None
) -> dg.MarkdownMetadataValue | None:
    """Pictures of ``month`` that are archived and shown; None when there is none."""
    with inst.ledger.read() as conn:
        found = reading.shown_pictures(conn, month, LOOKED_AT)
    looks: dict[str, ShownPicture] = {}
    for row in found:
        looks.setdefault(row.display, row)
    shown = list(looks.values())[:MOST_PICTURES]
    if not shown:
        return None
    images = _thumbnails(inst, month, shown, workers)
    names = {row.job_id: document_name(inst, row) for row in documents}
    cells, left = [], MOST_CHARACTERS
    for row in shown:
        if (body := images.get(row.display)) is None:
            continue
        told = f"{_escaped(names.get(row.job_id, row.report_id))}, page {row.page}"
        image = f"![{told}](data:image/webp;base64,{base64.b64encode(body).decode('ascii')})"
        left -= len(image) + len(told) + 6
        if left < 0:
            break
        cells.append((image, told))
    return dg.MetadataValue.md(_table(cells)) if cells else None


def _thumbnails(inst: Installation, month: str, shown: Sequence[ShownPicture], workers: int | None) -> dict[str, bytes]:
    """Small images by the digest of the picture; one that cannot be made is left out."""
    made = stored_thumbnails(inst.archive, month, [row.display for row in shown])
    missing = {row.display: row.bytes for row in shown if row.display not in made}
    if not missing:
        return made

    def keep(digest: str, file: Path, _sha256: str) -> None:
        made[digest] = file.read_bytes()

    with open_previews(inst, workers) as previews:
        previews.thumbnails(missing, keep)
    return made


def _table(cells: Sequence[tuple[str, str]]) -> str:
    """Rows of pictures, each with a row of names below it."""
    width = min(COLUMNS, len(cells))
    lines = ["|" + " |" * width, "|" + "---|" * width]
    for at in range(0, len(cells), width):
        part = [*cells[at : at + width], *[("", "")] * (width - len(cells[at : at + width]))]
        lines += [f"|{'|'.join(row)}|" for row in zip(*part, strict=True)]
    return "\n".join(lines)


def _escaped(name: str) -> str:
    """A name as text: none of it is read as Markdown, and it stays on its line."""
    return _MARKS.sub(r"\\\1", "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in name))
