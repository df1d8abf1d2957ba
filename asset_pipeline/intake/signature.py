"""What an upload is by its first bytes, compared with what its name says. Neither is trusted alone.

Reads a head of ``HEAD`` bytes only: nothing is unpacked here. What turns up inside documents is told apart in
``validation.signatures``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from asset_pipeline.reasons import Reason
from asset_pipeline.validation.signatures import sniff

PDF = "application/pdf"
ZIP = "application/zip"
OLE = "application/x-ole-storage"

PDF_WINDOW = 1_024
"""``%PDF-`` may start at any of these first bytes (REQUIREMENTS R1.3)."""

HEAD = PDF_WINDOW + 4

_OOXML = "application/vnd.openxmlformats-officedocument."
OFFICE = {
    "docx": f"{_OOXML}wordprocessingml.document",
    "pptx": f"{_OOXML}presentationml.presentation",
    "xlsx": f"{_OOXML}spreadsheetml.sheet",
}
_FIRST_PARTS = (b"[Content_Types].xml", b"_rels/.rels", b"docProps/", b"word/", b"ppt/", b"xl/")
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
    """The type that the bytes show (None: unknown) and where its mark begins."""

    media_type: str | None
    offset: int | None


def declared_type(name: str) -> str | None:
    """The type that the extension of ``name`` stands for, or None when it says nothing."""
    _, dot, extension = name.rpartition(".")
    return EXTENSIONS.get(extension.lower()) if dot else None


def read_signature(head: bytes, declared: str | None) -> Signature:
    """Type of bytes that begin with ``head``.

    The three office types share their first bytes: which of them a package is, is taken from the name, and
    whoever opens it finds out.
    """
    offset = head.find(b"%PDF-", 0, HEAD)
    if offset >= 0:
        return Signature(PDF, offset)
    if head.startswith(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"):
        return Signature(OLE, 0)
    found = sniff(head)
    if found == ZIP and declared in OFFICE.values() and head[_ZIP_NAME:].startswith(_FIRST_PARTS):
        return Signature(declared, 0)
    return Signature(found, None if found is None else 0)


def judge(size: int, signature: Signature, declared: str | None, accepted: Collection[str]) -> Reason | None:
    """Why an upload of these facts is refused, or None. Size limits are the caller's."""
    if size == 0:
        return Reason.TRUNCATED_DOCUMENT
    if signature.media_type not in accepted:
        return Reason.SIGNATURE_MISMATCH if declared in accepted else Reason.MEDIA_TYPE_NOT_ALLOWED
    if declared is not None and declared != signature.media_type:
        return Reason.SIGNATURE_MISMATCH
    return None
