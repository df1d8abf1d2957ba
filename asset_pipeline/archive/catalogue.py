"""The catalogue of a month as Parquet: one file of pictures and one of pages, for analysts.

Read from the ledger alone, with no time and no random id in it. Made when something that it is made from is new or a
file is not as it was, and written only when it says something else than before. A column is declared once, here, with
its unit and meaning; ``docs/catalogue.md`` is held against that. Columns are added at the end and never change their
meaning. Names are there only where the policy shows names. How questions are asked belongs in ``catalogue_query``.
"""

from __future__ import annotations

import hashlib
import io
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from asset_pipeline.archive.made_from import Note, made_from, read_note, write_note
from asset_pipeline.archive.page_states import PageAnswer, answer_for_page, name_of_upload
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow
from asset_pipeline.ledger.uploads import Upload
from asset_pipeline.model import Page
from asset_pipeline.storage.store import holds_digest

if TYPE_CHECKING:
    # A sixth of a second: paid where a table is made, not by everything that only names one.
    import pyarrow as pa  # type: ignore[import-untyped]

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its Arrow type by name, its unit ("" for none) and what it means."""

    name: str
    type: str
    unit: str
    meaning: str


_TEXT, _INT, _FLOAT, _TEXTS = "string", "int64", "double", "list<item: string>"

_DOCUMENT = (
    Column("month", _TEXT, "YYYY-MM", "month of the report"),
    Column("report_id", _TEXT, "", "identity of the report: the same for every revision of it"),
    Column("collection", _TEXT, "", "collection of the inbox; null where names are not shown"),
    Column("document", _TEXT, "", "name of the document; null where names are not shown"),
    Column("revision", _INT, "", "revision of the report, from 1"),
    Column("source_sha256", _TEXT, "hex", "digest of the document's bytes"),
    Column("extractor_version", _TEXT, "", "engine, libraries and policy that read it"),
)

PICTURES = (
    *_DOCUMENT,
    Column("page", _INT, "", "page, from 1"),
    Column("page_label", _TEXT, "", "page number as printed, where the document says"),
    Column("paint_order", _INT, "", "position on the page, from 1"),
    Column("name", _TEXT, "", "stable name, as page-042-image-003"),
    Column("kind", _TEXT, "", "raster, inline, stencil, pattern, composite or vector_figure"),
    Column("status", _TEXT, "", "archived, collapsed, decorative, consumed, not_shown or quarantined"),
    Column("reason", _TEXT, "", "why it is quarantined; else null"),
    Column("original_sha256", _TEXT, "hex", "digest and key of the file with the true bytes; null when quarantined"),
    Column("original_media_type", _TEXT, "", "media type of that file"),
    Column("original_bytes", _INT, "bytes", "size of that file"),
    Column("display_sha256", _TEXT, "hex", "digest and key of the file as the page shows it"),
    Column("display_media_type", _TEXT, "", "media type of that file"),
    Column("display_bytes", _INT, "bytes", "size of that file"),
    Column("display_width", _INT, "pixels", "width of that file"),
    Column("display_height", _INT, "pixels", "height of that file"),
    Column("width", _INT, "pixels", "width that the document declares"),
    Column("height", _INT, "pixels", "height that the document declares"),
    Column("ppi_x", _FLOAT, "pixels per inch", "resolution across, as placed"),
    Column("ppi_y", _FLOAT, "pixels per inch", "resolution down, as placed"),
    Column("print_width", _FLOAT, "mm", "width on paper"),
    Column("print_height", _FLOAT, "mm", "height on paper"),
    Column("box_left", _FLOAT, "points", "left edge on the page as displayed"),
    Column("box_top", _FLOAT, "points", "upper edge on the page as displayed"),
    Column("box_right", _FLOAT, "points", "right edge on the page as displayed"),
    Column("box_bottom", _FLOAT, "points", "lower edge on the page as displayed"),
    Column("visible", _FLOAT, "0 to 1", "share of it that the page shows"),
    Column("colour_space", _TEXT, "", "colour space that the document declares"),
    Column("bits", _INT, "bits", "bits a sample that the document declares"),
    Column("filters", _TEXTS, "", "filters of the stream, outermost first"),
    Column("flags", _TEXTS, "", "facts that are no status, as repeat or clipped"),
    Column("parts", _TEXTS, "", "names of the pictures that a composite joins"),
    Column("caption", _TEXT, "", "caption found beside it"),
    Column("alt", _TEXT, "", "alternative text that the document gives"),
    Column("perceptual_hash", _TEXT, "hex", "hash of the look; near means similar, no more"),
    Column("used_on_pages", _INT, "pages", "pages of the document that show this picture"),
)

PAGES = (
    *_DOCUMENT,
    Column("page", _INT, "", "page, from 1; null where no page was counted: the document waits, or was refused before"),
    Column("page_label", _TEXT, "", "page number as printed, where the document says"),
    Column("state", _TEXT, "", "pictures, no_picture, late, quarantined, decorative, not_shown or not_read"),
    Column("meaning", _TEXT, "", "the state in words"),
    Column("remedy", _TEXT, "", "what to do about it; empty when nothing"),
    Column("reasons", _TEXTS, "", "reason codes behind the state"),
    Column("drawn", _INT, "pictures", "pictures that the page draws; null when they were not counted"),
    Column("archived", _INT, "pictures", "of these: archived"),
    Column("collapsed", _INT, "pictures", "of these: repeats of an earlier one"),
    Column("decorative", _INT, "pictures", "of these: decoration"),
    Column("consumed", _INT, "pictures", "of these: parts of a joined picture"),
    Column("not_shown", _INT, "pictures", "of these: outside the visible page or on a hidden layer"),
    Column("quarantined", _INT, "pictures", "of these: held back"),
    Column("derived_archived", _INT, "pictures", "joined pictures and charts made of lines, archived; not in drawn"),
    Column("derived_quarantined", _INT, "pictures", "joined pictures and charts, held back; not in drawn"),
)

TABLES = {"pictures": PICTURES, "pages": PAGES}


@dataclass(frozen=True, slots=True)
class PublishedCatalogue:
    """The files of a month. ``digest`` is over both; ``written`` counts those that this call wrote."""

    keys: tuple[str, ...]
    digest: str
    pictures: int
    pages: int
    bytes: int
    written: int


def catalogue_key(table: str, month: str) -> str:
    """Key of a month's file of ``pictures`` or ``pages``."""
    return f"catalogue/{table}/{month}.parquet"


def catalogue_note_key(month: str) -> str:
    """Key of the note of what a month's files were made from."""
    return f"catalogue/made_from/{month}.json"


def schema(table: str) -> pa.Schema:
    """The Arrow schema of a table, each column with its unit and meaning."""
    import pyarrow as pa

    types = {str(each): each for each in (pa.string(), pa.int64(), pa.float64(), pa.list_(pa.string()))}
    return pa.schema(
        [
            pa.field(column.name, types[column.type], metadata={"unit": column.unit, "meaning": column.meaning})
            for column in TABLES[table]
        ]
    )


def read_catalogue(inst: Installation, month: str) -> dict[str, pa.Table]:
    """Both tables of ``month`` as the ledger has them now."""
    import pyarrow as pa

    rows: dict[str, list[Row]] = {"pictures": [], "pages": []}
    with inst.ledger.read() as conn:
        for document in reading.documents_of_month(conn, month):
            if document.expired_at:
                continue
            read = document.state == "succeeded"
            pages = reading.pages_of(conn, document.job_id) if read else []
            files = {found.sha256: found for found in reading.pictures_of(conn, document.job_id)} if read else {}
            rows["pictures"] += _pictures(_head(document, inst.policy.show_names), pages, files)
            rows["pages"] += page_rows(document, pages, inst.policy.show_names)
    return {name: pa.Table.from_pylist(found, schema=schema(name)) for name, found in rows.items()}


def publish_catalogue(inst: Installation, month: str) -> PublishedCatalogue:
    """Bring the files of ``month`` up to date. Raises StorageError when the archive is away."""
    with inst.ledger.read() as conn:
        source = made_from(inst, conn, month, version("pyarrow"))
    note = read_note(inst.archive, catalogue_note_key(month))
    keys = [catalogue_key(table, month) for table in TABLES]
    if note and note.made_from == source and list(note.sha256) == keys and _are_there(inst, note):
        return _published(note, written=0)
    tables = read_catalogue(inst, month)
    bodies = {catalogue_key(name, month): parquet(table) for name, table in tables.items()}
    written = sum(_put_changed(inst, key, body) for key, body in bodies.items())
    counted = {name: table.num_rows for name, table in tables.items()} | {"bytes": sum(map(len, bodies.values()))}
    digests = {key: hashlib.sha256(body).hexdigest() for key, body in bodies.items()}
    note = Note(made_from=source, sha256=digests, figures=counted)
    write_note(inst.archive, catalogue_note_key(month), note)
    return _published(note, written)


def _are_there(inst: Installation, note: Note) -> bool:
    return all(holds_digest(inst.archive, key, sha256) for key, sha256 in note.sha256.items())


def _published(note: Note, written: int) -> PublishedCatalogue:
    digest = hashlib.sha256("".join(note.sha256.values()).encode()).hexdigest()
    return PublishedCatalogue(keys=tuple(note.sha256), digest=digest, written=written, **note.figures)


def parquet(table: pa.Table) -> bytes:
    """``table`` as a Parquet file; the same table gives the same bytes."""
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    body = io.BytesIO()
    pq.write_table(table, body, compression="zstd", version="2.6")
    return body.getvalue()


def _put_changed(inst: Installation, key: str, body: bytes) -> int:
    try:
        with inst.archive.open(key) as stream:
            if stream.read() == body:
                return 0
    except KeyError:
        pass
    inst.archive.put_current(key, body)
    return 1


def _head(document: DocumentRow, show_names: bool) -> Row:
    return {
        "month": document.month,
        "report_id": document.report_id,
        "collection": document.collection if show_names else None,
        "document": document.name if show_names else None,
        "revision": document.revision,
        "source_sha256": document.source_hash,
        "extractor_version": document.extractor_version,
    }


def _pictures(head: Row, pages: list[Page], files: dict[str, reading.PictureRow]) -> Iterator[Row]:
    used: dict[str, set[int]] = defaultdict(set)
    for page in pages:
        for row in page.placements:
            used[row.picture or ""].add(page.page)
    for page in pages:
        for order, row in enumerate(page.placements, start=1):
            original, display = files.get(row.picture or ""), files.get(row.display or "")
            left, top, right, bottom = row.display_bbox
            yield head | {
                "page": page.page,
                "page_label": page.label,
                "paint_order": order,
                "name": row.name,
                "kind": row.kind.value,
                "status": row.status.value,
                "reason": row.reason.value if row.reason else None,
                "original_sha256": row.picture,
                "original_media_type": original.media_type if original else None,
                "original_bytes": original.bytes if original else None,
                "display_sha256": row.display,
                "display_media_type": display.media_type if display else None,
                "display_bytes": display.bytes if display else None,
                "display_width": display.width if display else None,
                "display_height": display.height if display else None,
                "width": row.width,
                "height": row.height,
                "ppi_x": row.ppi[0],
                "ppi_y": row.ppi[1],
                "print_width": row.print_mm[0],
                "print_height": row.print_mm[1],
                "box_left": left,
                "box_top": top,
                "box_right": right,
                "box_bottom": bottom,
                "visible": row.visible,
                "colour_space": row.colour_space,
                "bits": row.bits,
                "filters": row.filter,
                "flags": [flag.value for flag in row.flags],
                "parts": row.parts,
                "caption": row.caption,
                "alt": row.alt,
                "perceptual_hash": (display or original).phash if display or original else None,  # type: ignore[union-attr]
                "used_on_pages": len(used[row.picture]) if row.picture else None,
            }


def page_rows(document: DocumentRow, pages: list[Page], show_names: bool) -> Iterator[Row]:
    """The rows of ``pages`` about a document, of which the ledger has these accounts."""
    head = _head(document, show_names)
    by_number = {page.page: page for page in pages}
    numbers: list[int | None] = [*range(1, document.pages + 1)] if document.pages else [None]
    for number in numbers:
        page = by_number.get(number or 0)
        answer = answer_for_page(document, page)
        counts = page.model_dump(include={column.name for column in PAGES[len(_DOCUMENT) + 6 :]}) if page else {}
        yield head | counts | _told(answer) | {"page": number, "page_label": page.label if page else None}


def upload_row(upload: Upload, answer: PageAnswer, show_names: bool) -> Row:
    """The row of ``pages`` about a document that is in the inbox still."""
    named = {"collection": upload.collection, "document": name_of_upload(upload)} if show_names else {}
    return {"month": upload.month} | named | _told(answer)


def _told(answer: PageAnswer) -> Row:
    return {
        "state": answer.state.value,
        "meaning": answer.meaning,
        "remedy": answer.remedy,
        "reasons": list(answer.reasons),
    }
