"""Opens a PDF: limits of qpdf, encryption, recovery, and the bounds on pages and objects.

Says either that the document opens, with its page count, or why it does not: a ``Refusal`` with a
document-level reason. Recovery is qpdf's own; a document that it can only recover in part because its
end is missing is refused, since pages would be missing without a word.
"""

from __future__ import annotations

import io
import mmap
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pikepdf
from pikepdf.settings import set_qpdf_limits

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.pdf.lost_pages import gap, keep_places, left_out
from asset_pipeline.extraction.pdf.resources import Key, entry, is_name
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import HEAD, PDF, judge, read_signature

Encrypted = Literal["none", "owner_only", "user"]

_TAIL_BYTES = 1024
# The offset of the index stands behind all the rest, and a writer that leaves the last marker out has written it.
_END = re.compile(rb"%%EOF|startxref\s+\d{1,18}\s")
_START = re.compile(rb"startxref\s+(\d{1,18})\s")
_INDEX = re.compile(rb"\s*(?:xref\b|\d{1,10}\s+\d{1,5}\s+obj\b)")
_FROM_ONE = re.compile(rb"\s*xref\s+0*[1-9]\d{0,9}\s+\d{1,10}\s+0{10}\s+65535\s+f")
_REBUILT = "reconstruct"
"""What qpdf's warnings say where it had to guess the index."""

_LINEAR_LENGTH = re.compile(rb"/Linearized.{0,200}?/L\s+(\d{1,18})", re.DOTALL)
# One damaged object should not end a content stream that viewers go on reading (qpdf's default is 15).
_PARSER_ERRORS = 10_000
_VISITS = 4
# Openers one in the other, more than qpdf follows (499): what it leaves out then is missing for no stated reason.
_TOO_DEEP = re.compile(rb"(?:(?:\[|<<)\s*+(?:/[^\s\[\]<>()/%{}]*+\s*+)?+){500}")
# Else all pages are built when the document is opened, before anybody has counted them.
_AS_IT_IS: dict[str, Any] = {"inherit_page_attributes": False}


_DEEP_TREE = "structure too deeply nested"


@dataclass(frozen=True, slots=True)
class OpenDocument:
    """An open PDF. Valid inside the ``with`` block of ``open_document`` only.

    ``lost`` are numbers of pages that could not be followed: of these is known that they are there. ``gap`` is why, or
    why any object could not, of which then nothing is known.
    """

    pdf: pikepdf.Pdf
    pages: int
    encrypted: Encrypted
    lost: frozenset[int] = frozenset()
    gap: Reason | None = None


_PAGE_TREE_FAULTS = {
    "Loop detected in /Pages": Reason.STRUCTURE_LOOP,
    _DEEP_TREE: Reason.STRUCTURE_TOO_DEEP,
}


class NeedsPassword(Refusal):
    """Without the user's password nothing of the document can be read."""

    def __init__(self) -> None:
        super().__init__(Reason.ENCRYPTED)


class _PagesLeftOutError(Exception):
    """qpdf lists the pages without some that are nested too deep: their objects, none where the tree itself is."""

    def __init__(self, objects: frozenset[Key]) -> None:
        super().__init__()
        self.objects = objects


@contextmanager
def open_document(request: Request) -> Iterator[OpenDocument]:
    """Open ``request.document``, closed on every way out. Raises Refusal with the reason for the document."""
    limit_qpdf(request.policy.limits)
    _check_signature(request)
    dropped: frozenset[Key] | None = None
    pdf, encrypted, warnings = _open(request)
    with pdf:
        try:
            pages, why = _count_pages(pdf, request, warnings)
        except _PagesLeftOutError as left_out:
            dropped = left_out.objects
        else:
            yield OpenDocument(pdf=pdf, pages=pages, encrypted=encrypted, gap=why)
    if dropped is not None:
        with _open(request)[0] as pdf:
            places = keep_places(pdf, dropped, request.policy.limits.pages)
            pages, why = _count_pages(pdf, request, warnings, whole=False)
            lost = frozenset(number for number, page in enumerate(pdf.pages, start=1) if page.objgen in places)
            why = why or Reason.STRUCTURE_TOO_DEEP  # of a branch of the tree qpdf says it in other words
            if len(lost) == pages:
                raise Refusal(why)
            yield OpenDocument(pdf=pdf, pages=pages, encrypted=encrypted, lost=lost, gap=why)


def limit_qpdf(limits: Limits) -> None:
    """Set qpdf's limits, which hold for the whole process; they are unlimited by default."""
    set_qpdf_limits(
        parser_max_errors=_PARSER_ERRORS,
        parser_max_container_size=limits.objects,
        max_stream_filters=limits.filters,
        dct_max_memory=limits.expanded_bytes,
        dct_max_progressive_scans=limits.jpeg_scans,
        flate_max_memory=limits.expanded_bytes,
        png_max_memory=limits.expanded_bytes,
        run_length_max_memory=limits.expanded_bytes,
        tiff_max_memory=limits.expanded_bytes,
    )


def _check_signature(request: Request) -> None:
    with request.document.open("rb") as file:
        signature = read_signature(file.read(HEAD), request.media_type)
    reason = judge(request.source_bytes, signature, request.media_type, {PDF})
    if reason is not None:
        raise Refusal(reason)


def _open(request: Request) -> tuple[pikepdf.Pdf, Encrypted, list[str]]:
    """The document, how it is encrypted, and what qpdf said of it so far."""
    try:
        pdf, encrypted = _open_with_password(request)
    except pikepdf.PikepdfError:
        again = _open_without_index(request) if _counts_from_one(request.document) else None
        if again is not None:
            return again
        too_deep = _nests_too_deep(request.document)
        raise Refusal(Reason.STRUCTURE_TOO_DEEP if too_deep else _unreadable(request.document)) from None
    warnings = [str(warning) for warning in pdf.get_warnings()]
    if any(_REBUILT in warning for warning in warnings) and _INDEX.match(_index_of(request.document)):
        again = _open_without_index(request)
        if again is not None:
            pdf.close()
            return again
    return pdf, encrypted, warnings


def _open_without_index(request: Request) -> tuple[pikepdf.Pdf, Encrypted, list[str]] | None:
    """The document with its index looked for by qpdf from the start; None where it does not open that way.

    An index that reads well and is wrong qpdf finds out on the way, and then knows no object that it leaves out.
    """
    content = io.BytesIO()
    with request.document.open("rb") as file:
        shutil.copyfileobj(file, content)  # piece by piece: never the whole twice
    tail = max(0, content.tell() - 2 * _TAIL_BYTES)
    content.seek(tail)
    end = content.read().replace(b"startxref", b"_" * len(b"startxref"))
    content.seek(tail)
    content.write(end)
    try:
        pdf, encrypted = _open_with_password(request, content)
    except pikepdf.PikepdfError:
        return None
    return pdf, encrypted, [str(warning) for warning in pdf.get_warnings()]


def _counts_from_one(document: Path) -> bool:
    """Whether the index calls its first entry, which is that of object 0, by a higher number: a known fault."""
    return _FROM_ONE.match(_index_of(document)) is not None


def _index_of(document: Path) -> bytes:
    """The beginning of the index, where the end of the file says that it is."""
    with document.open("rb") as file:
        start = max(0, file.read(HEAD).find(b"%PDF-"))
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        said = _START.findall(file.read())
        if not said:
            return b""
        file.seek(start + int(said[-1]))
        return file.read(_TAIL_BYTES)


def _open_with_password(request: Request, content: io.BytesIO | None = None) -> tuple[pikepdf.Pdf, Encrypted]:
    """The empty password first: with it, anybody may read, whatever an owner password forbids to change."""
    try:
        pdf = pikepdf.open(content or request.document, **_AS_IT_IS)
    except pikepdf.PasswordError:
        if request.password is None:
            raise NeedsPassword from None
    else:
        return pdf, "owner_only" if pdf.is_encrypted else "none"
    try:
        return pikepdf.open(content or request.document, password=request.password, **_AS_IT_IS), "user"
    except pikepdf.PasswordError:
        raise NeedsPassword from None


def _count_pages(
    pdf: pikepdf.Pdf, request: Request, said: list[str], *, whole: bool = True
) -> tuple[int, Reason | None]:
    """Pages of ``pdf``, and why an object could not be read, if there is one.

    Raises Refusal, and where the document must be ``whole`` _PagesLeftOutError.
    """
    limits = request.policy.limits
    size = pdf.trailer.get("/Size")  # said by the index: asked first, because counting builds them all
    if (isinstance(size, int) and size - 1 > limits.objects) or len(pdf.objects) > limits.objects:
        raise Refusal(Reason.OBJECT_BUDGET_EXCEEDED)
    _wrap_lone_page(pdf)
    if _has_leaves_beyond(pdf, limits.pages):
        raise Refusal(Reason.PAGE_BUDGET_EXCEEDED)
    try:
        pages = len(pdf.pages)
    except pikepdf.PikepdfError as error:
        words = str(error)  # qpdf has no other way to say it, and they hold the path: they go nowhere
        if whole and _DEEP_TREE in words:
            raise _PagesLeftOutError(frozenset()) from None
        known = next((reason for phrase, reason in _PAGE_TREE_FAULTS.items() if phrase in words), None)
        raise Refusal(known or _unreadable(request.document)) from None
    warnings = said + [str(warning) for warning in pdf.get_warnings()]
    if whole and (dropped := left_out(warnings)):
        raise _PagesLeftOutError(dropped)
    why = gap(warnings)  # of all objects, which were counted
    if pages == 0:
        raise Refusal(why if why is Reason.STRUCTURE_TOO_DEEP else _unreadable(request.document))
    if pages > limits.pages:
        raise Refusal(Reason.PAGE_BUDGET_EXCEEDED)
    if _is_cut_off(warnings, request.document):
        raise Refusal(Reason.TRUNCATED_DOCUMENT)
    return pages, why


def _wrap_lone_page(pdf: pikepdf.Pdf) -> None:
    """Give a page that stands where the page tree belongs a tree of its own: viewers show it, qpdf lists none."""
    page = entry(pdf.Root, "/Pages")
    if is_name(entry(page, "/Type"), "/Page") and entry(page, "/Kids") is None:
        tree = pikepdf.Dictionary(Type=pikepdf.Name.Pages, Kids=[page], Count=1)
        pdf.Root["/Pages"] = pdf.make_indirect(tree)


def _has_leaves_beyond(pdf: pikepdf.Pdf, most: int) -> bool:
    """Whether the page tree has more than ``most`` leaves, looked at only where it says so or looks like it."""
    root = entry(pdf.Root, "/Pages")
    said, kids = entry(root, "/Count"), entry(root, "/Kids")
    if not isinstance(kids, pikepdf.Array) or not (len(kids) > most or (isinstance(said, int) and said > most)):
        return False
    waiting, leaves, seen = [kids], 0, 0
    while waiting:
        branch = waiting.pop()
        for index in range(len(branch)):
            inner = entry(branch[index], "/Kids")
            seen += 1
            if isinstance(inner, pikepdf.Array):
                waiting.append(inner)
            else:
                leaves += 1
            if leaves > most:
                return True
            if seen > _VISITS * most:  # a tree that loops, which qpdf will say
                return False
    return False


def _is_cut_off(warnings: list[str], document: Path) -> bool:
    """Whether qpdf had to guess the index of a file whose end is missing.

    What it then finds is a part: later pages and their pictures would be missing without a word. A file
    whose index alone is damaged still has its end, and is read.
    """
    if not any(_REBUILT in warning for warning in warnings) or not _end_is_missing(document):
        return False
    if any("Pages tree includes non-dictionary" in warning for warning in warnings):
        return True
    with document.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        # A linearized file has an end marker near its start too, and says how long the whole is.
        linear = _LINEAR_LENGTH.search(content[:_TAIL_BYTES])
        return content.find(b"%%EOF") < 0 or (linear is not None and int(linear[1]) > len(content))


def _nests_too_deep(document: Path) -> bool:
    with document.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return _TOO_DEEP.search(content) is not None


def _unreadable(document: Path) -> Reason:
    return Reason.TRUNCATED_DOCUMENT if _end_is_missing(document) else Reason.MALFORMED_DOCUMENT


def _end_is_missing(document: Path) -> bool:
    with document.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - _TAIL_BYTES))
        return _END.search(file.read()) is None
