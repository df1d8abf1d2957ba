"""What the first bytes say, and what the name says."""

from __future__ import annotations

import io
import zipfile

import pytest

from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import EXTENSIONS, OFFICE, PDF, Signature, declared_type, judge, read_signature


def archive(*names: str) -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as file:
        for name in names:
            file.writestr(name, "x")
    return body.getvalue()


@pytest.mark.parametrize("offset", [0, 1, 9, 1_000, 1_023])
def test_a_pdf_may_begin_anywhere_in_the_first_1024_bytes(offset):
    head = (b"x" * offset + b"%PDF-1.7")[:1_028]
    assert read_signature(head, None) == Signature(PDF, offset)


def test_a_pdf_that_begins_later_is_none():
    assert read_signature((b"x" * 1_024 + b"%PDF-1.7")[:1_028], PDF) == Signature(None, None)


@pytest.mark.parametrize("extension", OFFICE)
def test_an_office_package_is_what_its_name_says(extension):
    head = archive("[Content_Types].xml", "_rels/.rels")
    assert read_signature(head, declared_type(f"a.{extension}")).media_type == OFFICE[extension]


def test_another_archive_is_no_office_package():
    assert read_signature(archive("evil.exe"), OFFICE["docx"]).media_type == "application/zip"


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"MZ\x90\x00", "application/x-dosexec"),
        (b"<!DOCTYPE html>", "text/html"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
        (b"plain words", None),
        (b"", None),
    ],
)
def test_other_files_are_told_apart(head, media_type):
    assert read_signature(head, None).media_type == media_type


@pytest.mark.parametrize(
    ("name", "found", "reason"),
    [
        ("a.pdf", PDF, None),
        ("a.PDF", PDF, None),
        ("a", PDF, None),
        ("a.v2", PDF, None),
        ("a.pdf", "image/png", Reason.SIGNATURE_MISMATCH),
        ("a.pdf", None, Reason.SIGNATURE_MISMATCH),
        ("a.png", PDF, Reason.SIGNATURE_MISMATCH),
        ("a.png", "image/png", Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("a.docx", OFFICE["docx"], Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("a.txt", None, Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("a", None, Reason.MEDIA_TYPE_NOT_ALLOWED),
    ],
)
def test_name_and_bytes_must_agree_on_an_accepted_type(name, found, reason):
    assert judge(1, Signature(found, 0), declared_type(name), (PDF,)) is reason


def test_an_empty_file_is_told_as_empty():
    assert judge(0, Signature(None, None), PDF, (PDF,)) is Reason.EMPTY_DOCUMENT


@pytest.mark.parametrize(
    ("name", "reason"), [("a.pdf", Reason.SIGNATURE_MISMATCH), ("a.ps", Reason.MEDIA_TYPE_NOT_ALLOWED)]
)
def test_a_postscript_program_that_mentions_a_pdf_is_none(name, reason):
    signature = read_signature(b"%!PS-Adobe-3.0\n(%PDF-1.4) print\n", declared_type(name))
    assert signature == Signature("application/postscript", 0)
    assert judge(100, signature, declared_type(name), (PDF,)) is reason


def test_extensions_are_written_small():
    assert all(extension == extension.lower() for extension in EXTENSIONS)
