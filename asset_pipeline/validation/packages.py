"""What kind of office document a ZIP package is, and whether an OLE file is an encrypted one.

The three office types share their first bytes, so the package's own list of content types decides. Little
is read for it: the end record, the directory, one part, each with a bound. Opening the package for its
pictures belongs to the engine, in a decoder process.
"""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from typing import BinaryIO

_WORD, _SLIDES, _SHEETS = "wordprocessingml", "presentationml", "spreadsheetml"
_OOXML = "application/vnd.openxmlformats-officedocument."
DOCX, PPTX, XLSX = f"{_OOXML}{_WORD}.document", f"{_OOXML}{_SLIDES}.presentation", f"{_OOXML}{_SHEETS}.sheet"
MAIN_PARTS = {
    f"{_OOXML}{_WORD}.document.main+xml": DOCX,
    f"{_OOXML}{_SLIDES}.presentation.main+xml": PPTX,
    f"{_OOXML}{_SHEETS}.sheet.main+xml": XLSX,
    f"{_OOXML}{_WORD}.template.main+xml": f"{_OOXML}{_WORD}.template",
    f"{_OOXML}{_SLIDES}.template.main+xml": f"{_OOXML}{_SLIDES}.template",
    f"{_OOXML}{_SLIDES}.slideshow.main+xml": f"{_OOXML}{_SLIDES}.slideshow",
    f"{_OOXML}{_SHEETS}.template.main+xml": f"{_OOXML}{_SHEETS}.template",
    "application/vnd.ms-word.document.macroenabled.main+xml": "application/vnd.ms-word.document.macroenabled.12",
    "application/vnd.ms-powerpoint.presentation.macroenabled.main+xml": (
        "application/vnd.ms-powerpoint.presentation.macroenabled.12"
    ),
    "application/vnd.ms-excel.sheet.macroenabled.main+xml": "application/vnd.ms-excel.sheet.macroenabled.12",
    "application/vnd.ms-excel.sheet.binary.macroenabled.main": "application/vnd.ms-excel.sheet.binary.macroenabled.12",
}
"""Content type of a package's main part (small letters) and the type of the document."""

CONTENT_TYPES = b"[Content_Types].xml"
_SAID = re.compile(rb"ContentType\s*=\s*[\"']([^\"']{1,200})[\"']", re.IGNORECASE)
_END, _END_64, _LOCATOR, _ENTRY, _LOCAL = b"PK\5\6", b"PK\6\6", b"PK\6\7", b"PK\1\2", b"PK\3\4"
_LONGEST_COMMENT = 65_535
_DIRECTORY_BYTES = 4 * 1024 * 1024
_TYPES_BYTES = 1024 * 1024
_OLE_SECTORS = 64
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")


@dataclass(frozen=True, slots=True)
class EndRecord:
    """What a ZIP file says of its directory: entries, bytes, offset."""

    entries: int
    bytes: int
    offset: int


def read_end_record(file: BinaryIO) -> EndRecord | None:
    """The end record of a ZIP file, also of a large one; None where there is none."""
    size = file.seek(0, 2)
    start = max(0, size - _LONGEST_COMMENT - 22)
    file.seek(start)
    tail = file.read(size - start)
    at = tail.rfind(_END)
    if at < 0 or at + 22 > len(tail):
        return None
    entries, count, offset = struct.unpack_from("<HII", tail, at + 10)
    if at >= 20 and tail[at - 20 : at - 16] == _LOCATOR:
        file.seek(min(struct.unpack_from("<Q", tail, at - 12)[0], size))
        large = file.read(56)
        if len(large) == 56 and large.startswith(_END_64):
            entries, count, offset = struct.unpack_from("<QQQ", large, 32)
    return EndRecord(entries, count, offset)


def office_type(file: BinaryIO) -> str | None:
    """Type of the office document in ``file`` by its main part; None where it is no office package."""
    try:
        body = _content_types(file)
    except (struct.error, zlib.error):
        return None
    said = (match.group(1).decode("latin-1").lower() for match in _SAID.finditer(body or b""))
    return next((MAIN_PARTS[name] for name in said if name in MAIN_PARTS), None)


def is_encrypted_office(file: BinaryIO) -> bool:
    """Whether an OLE file holds an encrypted package, as office programs save with a password."""
    file.seek(0)
    header = file.read(512)
    if len(header) < 512:
        return False
    shift, first = struct.unpack_from("<H", header, 30)[0], struct.unpack_from("<I", header, 48)[0]
    if shift not in (9, 12):
        return False
    file.seek((first + 1) << shift)
    return _ENCRYPTED_STREAM in file.read(_OLE_SECTORS << shift)


def _content_types(file: BinaryIO) -> bytes | None:
    """The list of content types, expanded, wherever in the package it is."""
    end = read_end_record(file)
    if end is None or end.bytes > _DIRECTORY_BYTES:
        return None
    file.seek(end.offset)
    directory = file.read(end.bytes)
    at = 0
    while directory[at : at + 4] == _ENTRY:
        method, _, _, _, packed, _, name, extra, comment = struct.unpack_from("<HHHIIIHHH", directory, at + 10)
        if directory[at + 46 : at + 46 + name].lower() == CONTENT_TYPES.lower():
            return _expand(file, struct.unpack_from("<I", directory, at + 42)[0], method, packed)
        at += 46 + name + extra + comment
    return None


def _expand(file: BinaryIO, offset: int, method: int, packed: int) -> bytes | None:
    file.seek(offset)
    head = file.read(30)
    if not head.startswith(_LOCAL):
        return None
    name, extra = struct.unpack_from("<HH", head, 26)
    file.seek(offset + 30 + name + extra)
    data = file.read(min(packed, _TYPES_BYTES))
    if method == 8:
        return zlib.decompressobj(-15).decompress(data, _TYPES_BYTES)
    return data if method == 0 else None
