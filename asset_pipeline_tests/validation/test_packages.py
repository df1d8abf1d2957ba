"""Which office document a package is, and whether an OLE file is a locked one, from as little as possible."""

from __future__ import annotations

import io
import struct

import pytest

from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import OFFICE, OLE, PDF, ZIP, Signature, declared_type, judge, recognise
from asset_pipeline.validation.packages import is_encrypted_office, office_type, read_end_record
from asset_pipeline_tests.extraction.ooxml.making import content_types, docx, package, pptx, xlsx

DOCUMENTS = {"docx": docx(""), "pptx": pptx([""]), "xlsx": xlsx([""])}


def ole(*streams: str) -> bytes:
    """The header and the directory of an OLE file with 512-byte sectors."""
    header = bytearray(512)
    header[:8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
    struct.pack_into("<H", header, 30, 9)
    struct.pack_into("<I", header, 48, 1)
    entries = b"".join(name.encode("utf-16-le").ljust(128, b"\0") for name in ("Root Entry", *streams))
    return bytes(header) + bytes(512) + entries.ljust(1024, b"\0")


def last_first(data: bytes) -> bytes:
    """The same package with its parts in the reverse order."""
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as new:
        for info in reversed(old.infolist()):
            new.writestr(info.filename, old.read(info))
    return out.getvalue()


@pytest.mark.parametrize("extension", OFFICE)
@pytest.mark.parametrize("arrange", [bytes, last_first])
def test_a_package_is_what_its_main_part_is_wherever_the_list_of_types_lies(extension: str, arrange) -> None:
    file = io.BytesIO(arrange(DOCUMENTS[extension]))
    assert office_type(file) == OFFICE[extension]
    assert recognise(file, OFFICE[extension]) == Signature(OFFICE[extension], 0)


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", DOCUMENTS["docx"], None),
        ("a.pptx", DOCUMENTS["docx"], Reason.SIGNATURE_MISMATCH),
        ("a.pdf", DOCUMENTS["docx"], Reason.SIGNATURE_MISMATCH),
        ("a", DOCUMENTS["xlsx"], None),
        ("a.docx", ole("EncryptionInfo", "EncryptedPackage"), Reason.ENCRYPTED),
        ("a.docx", ole("WordDocument"), Reason.SIGNATURE_MISMATCH),
        ("a.doc", ole("WordDocument"), Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("a.docx", DOCUMENTS["docx"][:400], None),
        ("a.docx", b"%PDF-1.7", Reason.SIGNATURE_MISMATCH),
    ],
)
def test_name_and_package_must_agree(name: str, data: bytes, reason: Reason | None) -> None:
    signature = recognise(io.BytesIO(data), declared_type(name))
    assert judge(len(data), signature, declared_type(name), (PDF, *OFFICE.values())) is reason


def test_a_document_with_macros_is_a_type_of_its_own() -> None:
    macro = content_types("docx").replace(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        "application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    data = package("docx", {"[Content_Types].xml": macro})
    found = recognise(io.BytesIO(data), None)
    assert found.media_type == "application/vnd.ms-word.document.macroenabled.12"
    assert judge(len(data), found, None, (PDF, *OFFICE.values())) is Reason.MEDIA_TYPE_NOT_ALLOWED


def test_an_archive_of_something_else_is_a_zip() -> None:
    import zipfile

    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("word/evil.exe", "x")
    assert recognise(out, OFFICE["docx"]) == Signature(ZIP, 0)


@pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"PK\x03\x04" + bytes(100), b"\xd0\xcf\x11\xe0" + bytes(600)])
def test_rubbish_is_no_package_and_raises_nothing(data: bytes) -> None:
    file = io.BytesIO(data)
    assert office_type(file) is None
    assert is_encrypted_office(file) is False
    assert recognise(file, OFFICE["docx"]).media_type in (None, OLE, ZIP, OFFICE["docx"])


def test_the_directory_of_a_large_archive_is_found() -> None:
    record = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 70_000, 70_000, 5_000_000, 123)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, 4, 1)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    found = read_end_record(io.BytesIO(b"data" + record + locator + end))
    assert found is not None
    assert (found.entries, found.bytes, found.offset) == (70_000, 5_000_000, 123)
