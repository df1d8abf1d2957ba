"""Tables for the pages of Dagster: documents, uploads that wait or were rejected, quarantined pictures.

Metadata is kept in Dagster's event log for ever, so tables are cut at ``LONGEST`` rows; the counts beside them are of
all. A document is told by its name where the policy shows names, else by its report id.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

import dagster as dg
from sqlalchemy import Connection

from asset_pipeline.installation import Installation
from asset_pipeline.intake.deferral import Deferral
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow, UnreadPage
from asset_pipeline.ledger.uploads import Upload, UploadState, list_uploads
from asset_pipeline.model import Placement, Status
from asset_pipeline.reasons import Reason, explain

LONGEST = 200

Cell = str | int
Row = TypeVar("Row")
Columns = Sequence[tuple[str, str, Callable[[Row], Cell]]]
"""Name and type of each column, and how a row fills it."""


def table(columns: Columns[Row], rows: Iterable[Row]) -> dg.TableMetadataValue:
    """A table of the first ``LONGEST`` rows."""
    schema = dg.TableSchema(columns=[dg.TableColumn(name, type=kind) for name, kind, _ in columns])
    records = [dg.TableRecord({name: cell(row) for name, _, cell in columns}) for row in islice(rows, LONGEST)]
    return dg.MetadataValue.table(records=records, schema=schema)


def meaning(reason: str | None, *, of_picture: bool = False) -> str:
    """The reason in words; nothing for none."""
    return explain(Reason(reason), of_picture=of_picture).meaning if reason else ""


def remedy(reason: str | None, *, of_picture: bool = False) -> str:
    """What to do about the reason; nothing for none."""
    return explain(Reason(reason), of_picture=of_picture).remedy if reason else ""


def document_name(inst: Installation, row: DocumentRow) -> str:
    """What a document is called in tables."""
    return f"{row.collection}/{row.name}" if inst.policy.show_names and row.name else row.report_id


def incoming(inst: Installation, documents: Sequence[DocumentRow]) -> dg.TableMetadataValue:
    """The documents of a month as they came in."""
    columns: Columns[DocumentRow] = (
        ("document", "string", lambda row: document_name(inst, row)),
        ("revision", "int", lambda row: row.revision),
        ("bytes", "int", lambda row: row.source_bytes),
        ("media_type", "string", lambda row: row.media_type or "unknown"),
        ("refused_because", "string", lambda row: meaning(row.reason)),
        ("what_to_do", "string", lambda row: remedy(row.reason)),
        ("sha256", "string", lambda row: row.source_hash),
    )
    return table(columns, documents)


def accounts(
    inst: Installation, documents: Sequence[DocumentRow], unread: Sequence[UnreadPage] = ()
) -> dg.TableMetadataValue:
    """What became of the pictures of each document of a month. ``unread``: its pages that could not be read."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for page in unread:
        reasons[page.job_id].add(page.reason)
    columns: Columns[DocumentRow] = (
        ("document", "string", lambda row: document_name(inst, row)),
        ("state", "string", lambda row: row.state),
        ("pages", "int", lambda row: row.pages or 0),
        ("pages_not_read", "int", lambda row: row.unread_pages),
        ("drawn", "int", lambda row: row.drawn),
        ("archived", "int", lambda row: row.archived),
        ("collapsed", "int", lambda row: row.collapsed),
        ("decorative", "int", lambda row: row.decorative),
        ("consumed", "int", lambda row: row.consumed),
        ("not_shown", "int", lambda row: row.not_shown),
        ("quarantined", "int", lambda row: row.quarantined + row.derived_quarantined),
        ("what_happened", "string", lambda row: _in_words(meaning, row.reason, reasons[row.job_id])),
        ("what_to_do", "string", lambda row: _in_words(remedy, row.reason, reasons[row.job_id])),
    )
    return table(columns, documents)


def _in_words(told: Callable[[str], str], reason: str | None, of_pages: Collection[str]) -> str:
    return " ".join(dict.fromkeys(told(code) for code in [*([reason] if reason else []), *sorted(of_pages)]))


def published(inst: Installation, documents: Sequence[DocumentRow]) -> dg.TableMetadataValue:
    """The manifests of a month."""
    columns: Columns[DocumentRow] = (
        ("document", "string", lambda row: document_name(inst, row)),
        ("outcome", "string", lambda row: meaning(row.reason) or "ok"),
        ("edition", "int", lambda row: row.edition or 0),
        ("report_id", "string", lambda row: row.report_id),
        ("manifest_sha256", "string", lambda row: row.manifest_digest or ""),
        ("content_sha256", "string", lambda row: row.content_digest or ""),
    )
    return table(columns, documents)


def unread(inst: Installation, documents: Iterable[DocumentRow]) -> dg.TableMetadataValue:
    """Documents that were refused or given up, with what to do."""
    columns: Columns[DocumentRow] = (
        ("document", "string", lambda row: document_name(inst, row)),
        ("what_happened", "string", lambda row: meaning(row.reason)),
        ("what_to_do", "string", lambda row: remedy(row.reason)),
        ("reason", "string", lambda row: row.reason or ""),
    )
    return table(columns, documents)


def unread_pages(
    inst: Installation, documents: Iterable[DocumentRow], pages: Iterable[UnreadPage]
) -> dg.TableMetadataValue:
    """Pages of documents that were read of which nothing is archived, with reasons in words."""
    names = {row.job_id: document_name(inst, row) for row in documents}
    columns: Columns[UnreadPage] = (
        ("document", "string", lambda row: names[row.job_id]),
        ("page", "int", lambda row: row.page),
        ("printed_page", "string", lambda row: (row.label or "") if inst.policy.show_names else ""),
        ("what_happened", "string", lambda row: meaning(row.reason)),
        ("what_to_do", "string", lambda row: remedy(row.reason)),
        ("reason", "string", lambda row: row.reason),
    )
    return table(columns, pages)


def quarantined(inst: Installation, conn: Connection, documents: Iterable[DocumentRow]) -> dg.TableMetadataValue:
    """Quarantined pictures of a month, with reasons in words."""
    columns: Columns[tuple[DocumentRow, Placement, int]] = (
        ("document", "string", lambda row: document_name(inst, row[0])),
        ("page", "int", lambda row: row[2]),
        ("picture", "string", lambda row: row[1].name),
        ("what_happened", "string", lambda row: meaning(row[1].reason, of_picture=True)),
        ("what_to_do", "string", lambda row: remedy(row[1].reason, of_picture=True)),
        ("reason", "string", lambda row: row[1].reason.value if row[1].reason else ""),
    )
    return table(columns, _quarantined(conn, documents))


def _quarantined(conn: Connection, documents: Iterable[DocumentRow]) -> Iterator[tuple[DocumentRow, Placement, int]]:
    for document in documents:
        if document.quarantined + document.derived_quarantined == 0:
            continue
        for page in reading.pages_of(conn, document.job_id):
            for placement in page.placements:
                if placement.status is Status.QUARANTINED:
                    yield document, placement, page.page


_UNSETTLED = (
    "It is still being written, or was seen only once.",
    "Nothing: it is taken as soon as it stays unchanged.",
)


def open_uploads(conn: Connection, month: str) -> list[Upload]:
    """Uploads of ``month`` that wait, and every one whose place makes no sense: that one has no month."""
    waiting = list_uploads(conn, month=month, states=[UploadState.WAITING])
    return waiting + list_uploads(conn, states=[UploadState.REJECTED])


def uploads(inst: Installation, found: Sequence[Upload], deferred: Mapping[str, Deferral]) -> dg.TableMetadataValue:
    """What lies in the inbox and was not taken, with what to rename or wait for, and until when."""
    words = {upload_id: (held.meaning, held.remedy) for upload_id, held in deferred.items()}
    columns: Columns[Upload] = (
        ("upload", "string", lambda row: row.key if inst.policy.show_names else row.upload_id),
        # The page is narrow: what to rename comes before why.
        ("what_to_do", "string", lambda row: remedy(row.reason) or words.get(row.upload_id, _UNSETTLED)[1]),
        ("what_happened", "string", lambda row: meaning(row.reason) or words.get(row.upload_id, _UNSETTLED)[0]),
        ("state", "string", lambda row: row.state.value),
    )
    return table(columns, found)
