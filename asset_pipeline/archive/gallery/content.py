"""What a gallery says about a month, read from the ledger alone: plain values that become its data files.

Deterministic: no time, no random id, everything in order. Pictures are cut into blocks of a document, so that a
browser loads and draws what is looked at; the month's own file has just a code for each picture, which is enough to
filter. How it is written belongs in ``publish``, how it looks in ``static``. Names of documents are text that a
stranger wrote: they are data here and are only ever set as text there.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from asset_pipeline.archive.page_states import PageAnswer, PageState, answer_for_page, name_of_upload
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow, PictureRow
from asset_pipeline.ledger.uploads import OPEN, Upload, UploadState, list_uploads
from asset_pipeline.model import Kind, Page, Placement, Status
from asset_pipeline.reasons import Reason, explain

PICTURES_IN_A_BLOCK = 96

KINDS = tuple(Kind)
STATUSES = tuple(Status)
CODES = "0123456789abcdefghijklmnopqrstuvwxyz"
"""One character for a kind and a status: kind * 6 + status. Both have six members."""

STATE_LETTERS = {
    PageState.PICTURES: "p",
    PageState.NO_PICTURE: "n",
    PageState.LATE: "l",
    PageState.QUARANTINED: "q",
    PageState.DECORATIVE: "d",
    PageState.NOT_SHOWN: "s",
    PageState.NOT_READ: "x",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive placements of one document, with what is searched and filtered by."""

    first_page: int
    last_page: int
    codes: str
    texts: list[str]
    items: list[list[Any]]


@dataclass(frozen=True, slots=True)
class GalleryDocument:
    """One document: its head for the month's file, its blocks, its pages, and the previews that it wants."""

    head: dict[str, Any]
    blocks: list[Block]
    answers: dict[int, PageAnswer]
    """Of each page that has more to say than that it draws nothing."""
    reasons: frozenset[str]
    source_hash: str
    drawable: bool
    displays: dict[str, int] = field(default_factory=dict)
    """Display renditions to make thumbnails of: digest to bytes."""

    def pages_with_pictures(self) -> Iterator[tuple[int, bool]]:
        """Each page that has something to look at, and whether it may be drawn: not with a quarantined picture."""
        if self.drawable:
            for number, answer in self.answers.items():
                if answer.state is not PageState.NOT_READ:
                    yield number, answer.state is not PageState.QUARANTINED


@dataclass(frozen=True, slots=True)
class GalleryMonth:
    """All of a month's gallery but its previews."""

    month: str
    totals: dict[str, int]
    reasons: dict[str, list[str]]
    documents: list[GalleryDocument]


def read_month(inst: Installation, month: str) -> GalleryMonth:
    """What the gallery of ``month`` says now; of expired reports nothing."""
    with inst.ledger.read() as conn:
        rows = [row for row in reading.documents_of_month(conn, month) if row.expired_at is None]
        documents = [_document(conn, row, inst.policy.show_names) for row in rows]
        uploads = list_uploads(conn, month=month, states=OPEN)
    documents += [_not_taken_in(row, inst.policy.show_names) for row in uploads]
    found = Counter(row.state for row in uploads)
    totals = {"waiting": found[UploadState.WAITING], "rejected": found[UploadState.REJECTED]}
    return GalleryMonth(month, _totals(rows) | totals, _reasons(documents), documents)


def _totals(rows: Sequence[DocumentRow]) -> dict[str, int]:
    counted = ("drawn", "archived", "collapsed", "decorative", "consumed", "not_shown", "unread_pages")
    states = Counter(row.state for row in rows)
    return {name: sum(getattr(row, name) for row in rows) for name in counted} | {
        "documents": len(rows),
        "pages": sum(row.pages or 0 for row in rows if row.state == "succeeded"),
        "quarantined": sum(row.quarantined + row.derived_quarantined for row in rows),
        "derived": sum(row.derived_archived for row in rows),
        "refused": states["failed_permanently"] + states["dead_lettered"],
        "unfinished": states["queued"] + states["running"],
    }


def _document(conn: Connection, row: DocumentRow, show_names: bool) -> GalleryDocument:
    read = row.state == "succeeded"
    pages = reading.pages_of(conn, row.job_id) if read else []
    files = {found.sha256: found for found in reading.pictures_of(conn, row.job_id)} if read else {}
    by_number = {page.page: page for page in pages}
    answers = {number: answer_for_page(row, by_number.get(number)) for number in range(1, (row.pages or 0) + 1)}
    labels = {str(page.page): page.label for page in pages if page.label and page.label != str(page.page)}
    head = {
        "id": row.report_id,
        "title": row.name if show_names and row.name else row.report_id,
        "collection": row.collection if show_names else None,
        "revision": row.revision,
        "state": "read" if read else "late" if row.state in ("queued", "running") else "refused",
        "reason": row.reason,
        "pages": row.pages,
        "drawn": row.drawn,
        "archived": row.archived,
        "collapsed": row.collapsed,
        "decorative": row.decorative,
        "consumed": row.consumed,
        "not_shown": row.not_shown,
        "quarantined": row.quarantined + row.derived_quarantined,
        "derived": row.derived_archived,
        "states": "".join(STATE_LETTERS[answer.state] for answer in answers.values()),
        "labels": labels,
    }
    displays = {
        placement.display: files[placement.display].bytes
        for page in pages
        for placement in page.placements
        if placement.display and placement.display in files
    }
    drawable = read and show_names and row.media_type == "application/pdf"
    telling = {
        number: answer for number, answer in answers.items() if read and answer.state is not PageState.NO_PICTURE
    }
    reasons = {row.reason} | {placement.reason for page in pages for placement in page.placements}
    reasons |= {page.reason for page in pages}
    return GalleryDocument(
        head,
        _blocks(pages, files),
        telling,
        frozenset(str(reason) for reason in reasons if reason),
        row.source_hash,
        drawable,
        displays,
    )


def _not_taken_in(upload: Upload, show_names: bool) -> GalleryDocument:
    """A document that is in the inbox still: it waits, or cannot be taken in."""
    counts = dict.fromkeys(
        ("drawn", "archived", "collapsed", "decorative", "consumed", "not_shown", "quarantined", "derived"), 0
    )
    head: dict[str, Any] = {
        "id": upload.upload_id,
        "title": name_of_upload(upload) if show_names else upload.upload_id,
        "collection": upload.collection if show_names else None,
        "revision": None,
        "state": "refused" if upload.reason else "waiting",
        "reason": upload.reason.value if upload.reason else None,
        "pages": None,
        **counts,
        "states": "",
        "labels": {},
    }
    reasons = frozenset({upload.reason.value} if upload.reason else ())
    return GalleryDocument(head, [], {}, reasons, "", drawable=False)


def _blocks(pages: list[Page], files: dict[str, PictureRow]) -> list[Block]:
    used = _pages_by_picture(pages)
    rows = [(page, row) for page in pages for row in page.placements]
    blocks = []
    for at in range(0, len(rows), PICTURES_IN_A_BLOCK):
        part = rows[at : at + PICTURES_IN_A_BLOCK]
        blocks.append(
            Block(
                first_page=part[0][0].page,
                last_page=part[-1][0].page,
                codes="".join(_code(row) for _, row in part),
                texts=["\n".join(filter(None, (row.name, row.caption, row.alt))) for _, row in part],
                items=[_item(page, row, files, used) for page, row in part],
            )
        )
    return blocks


def _code(row: Placement) -> str:
    return CODES[KINDS.index(row.kind) * len(STATUSES) + STATUSES.index(row.status)]


def _pages_by_picture(pages: list[Page]) -> dict[str, int]:
    found: dict[str, set[int]] = defaultdict(set)
    for page in pages:
        for row in page.placements:
            if row.picture:
                found[row.picture].add(page.page)
    return {digest: len(numbers) for digest, numbers in found.items()}


def _item(page: Page, row: Placement, files: dict[str, PictureRow], used: dict[str, int]) -> list[Any]:
    """The fields of a picture, in the order that ``static/shared.js`` names (FIELDS)."""
    original, display = files.get(row.picture or ""), files.get(row.display or "")
    size = display or original
    return [
        page.page,
        row.name,
        size.width if size else row.width,
        size.height if size else row.height,
        [round(value) for value in row.ppi],
        [round(value, 1) for value in row.print_mm],
        [round(value, 1) for value in row.display_bbox],
        row.display,
        row.picture,
        original.media_type if original else None,
        original.bytes if original else None,
        used.get(row.picture or "", 1),
        row.caption,
        row.alt,
        row.reason.value if row.reason else None,
        [flag.value for flag in row.flags],
    ]


def _reasons(documents: list[GalleryDocument]) -> dict[str, list[str]]:
    """Meaning and remedy of each reason that the month has; then those for a picture, where they are others."""
    found = sorted(Reason(code) for code in {code for document in documents for code in document.reasons})
    words = {code.value: [explain(code), explain(code, of_picture=True)] for code in found}
    return {
        code: [word for told in dict.fromkeys(both) for word in (told.meaning, told.remedy)]
        for code, both in words.items()
    }
