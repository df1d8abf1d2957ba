"""What a document is by its first bytes, compared with what its name says. Neither is trusted alone.

A head of ``HEAD`` bytes tells most; the three office types are told apart by their list of content types, which
``packages`` looks up. What turns up inside documents is told apart in ``signatures``. Used by the intake and by
the small path that reads one file.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import BinaryIO

from asset_pipeline.reasons import Reason
from asset_pipeline.validation.packages import DOCX, PPTX, XLSX, is_encrypted_office, office_type, read_end_record
from asset_pipeline.validation.signatures import sniff

PDF = "application/pdf"
ZIP = "application/zip"
OLE = "application/x-ole-storage"

PDF_WINDOW = 1_024
"""``%PDF-`` may start at any of these first bytes (REQUIREMENTS R1.3)."""

HEAD = PDF_WINDOW + 4

OFFICE = {"docx": DOCX, "pptx": PPTX, "xlsx": XLSX}
_FIRST_PARTS = (b"[Content_Types].xml", b"_rels/.rels", b"docProps/", b"word/", b"ppt/", b"xl/")
_POSTSCRIPT = b"%!PS"
"""A PostScript program that makes a PDF has the mark of one among its first lines."""

_ZIP_NAME = 30
"""Where the first file name begins in a ZIP archive."""

EXTENSIONS = {
    "pdf": PDF,
    **OFFICE,
    "zip": ZIP,
    **dict.fromkeys(("doc", "xls", "ppt", "msg"), OLE),
    "png": "image/png",
    **dict.fromkeys(("jpg", "jpeg", "jpe"), "image/jpeg"),
    **dict.fromkeys(("tif", "tiff"), "image/tiff"),
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "jp2": "image/jp2",
    "psd": "image/vnd.adobe.photoshop",
    **dict.fromkeys(("ps", "eps"), "application/postscript"),
    **dict.fromkeys(("htm", "html"), "text/html"),
    "svg": "image/svg+xml",
    "txt": "text/plain",
    "exe": "application/x-dosexec",
    "gz": "application/gzip",
    "7z": "application/x-7z-compressed",
    "rar": "application/vnd.rar",
}


@dataclass(frozen=True, slots=True)
class Signature:
    """The type that the bytes show (None: unknown), where its mark begins, and whether it is a locked office file."""

    media_type: str | None
    offset: int | None
    encrypted: bool = False


def declared_type(name: str) -> str | None:
    """The type that the extension of ``name`` stands for, or None when it says nothing."""
    _, dot, extension = name.rpartition(".")
    return EXTENSIONS.get(extension.lower()) if dot else None


def read_signature(head: bytes, declared: str | None) -> Signature:
    """Type of bytes that begin with ``head``.

    The three office types share their first bytes: which of them a package is, is taken from the name here;
    ``recognise`` finds out.
    """
    offset = head.find(b"%PDF-", 0, HEAD)
    if offset >= 0 and not head.startswith(_POSTSCRIPT):
        return Signature(PDF, offset)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return Signature(OLE, 0)
    found = sniff(head)
    if found == ZIP and declared in OFFICE.values() and head[_ZIP_NAME:].startswith(_FIRST_PARTS):
        return Signature(declared, 0)
    return Signature(found, None if found is None else 0)


def recognise(file: BinaryIO, declared: str | None) -> Signature:
    """Type of a whole file: what its first bytes leave open is looked up inside. ``file`` can be sought."""
    file.seek(0)
    signature = read_signature(file.read(HEAD), declared)
    if signature.media_type == ZIP or signature.media_type in OFFICE.values():
        # Without an end nothing can be looked up: the name stands, and whoever opens it says that it is cut.
        return Signature(office_type(file) or ZIP, 0) if read_end_record(file) else signature
    if signature.media_type == OLE and declared in OFFICE.values():
        return Signature(OLE, 0, encrypted=is_encrypted_office(file))
    return signature


def judge(size: int, signature: Signature, declared: str | None, accepted: Collection[str]) -> Reason | None:
    """Why an upload of these facts is refused, or None. Size limits are the caller's."""
    if size == 0:
        return Reason.EMPTY_DOCUMENT
    if signature.encrypted and declared in accepted:
        return Reason.ENCRYPTED
    if signature.media_type not in accepted:
        return Reason.SIGNATURE_MISMATCH if declared in accepted else Reason.MEDIA_TYPE_NOT_ALLOWED
    if declared is not None and declared != signature.media_type:
        return Reason.SIGNATURE_MISMATCH
    return None
