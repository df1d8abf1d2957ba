"""Packages that lie, expand, loop or are locked: each is refused for its own reason, nothing is published."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Callable

import pytest

from asset_pipeline.model import Status
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.extraction.ooxml.conftest import Reader
from asset_pipeline_tests.extraction.ooxml.making import (
    NAMESPACES,
    content_types,
    docx,
    inline,
    package,
    paragraph,
    pic,
    picture,
    pptx,
)

PLAIN = paragraph(inline(pic()))


def with_entries(*names: str, body: bytes = b"x") -> bytes:
    """A sound document with further entries, under names that are not checked while writing."""
    out = io.BytesIO(docx(PLAIN))
    with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            info = zipfile.ZipInfo("n" * len(name))
            info.filename, info.compress_type = name, zipfile.ZIP_DEFLATED
            archive.writestr(info, body)
    return out.getvalue()


def patched(data: bytes, change: Callable[[zipfile.ZipInfo], tuple[int, str, int]], part: str) -> bytes:
    """``data`` with one field of a part's directory entry changed: (offset in the entry, format, value)."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        at = archive.start_dir
        for info in archive.infolist():
            if info.filename == part:
                offset, kind, value = change(info)
                changed = bytearray(data)
                struct.pack_into(kind, changed, at + offset, value)
                return bytes(changed)
            at += 46 + len(info.filename.encode()) + len(info.extra) + len(info.comment)
    raise AssertionError(part)


def billion_laughs(entity: str = "a") -> str:
    return f'<!DOCTYPE w [<!ENTITY {entity} "lol">]><w:document {NAMESPACES}>&{entity};</w:document>'


@pytest.mark.parametrize("name", ["../../evil.txt", "/etc/passwd", "a\\..\\b", "C:/x", "word//x", "x\ny", "./x"])
def test_a_name_that_leaves_the_package_is_refused(read: Reader, name: str) -> None:
    found = read("docx", with_entries(name))
    assert (found.answer.outcome, found.answer.pages, list(found.folder.iterdir())) == ("malformed_document", [], [])


def test_a_name_that_is_there_twice_is_refused(read: Reader) -> None:
    assert read("docx", with_entries("word/x.bin", "WORD/X.BIN")).answer.outcome is Reason.MALFORMED_DOCUMENT


def test_parts_that_share_bytes_are_refused(read: Reader) -> None:
    data = patched(docx(PLAIN), lambda _: (42, "<I", 0), "word/media/image1.png")
    assert read("docx", data).answer.outcome is Reason.MALFORMED_DOCUMENT


def test_too_many_parts_are_refused_before_the_directory_is_read(read: Reader) -> None:
    policy = Policy(limits=Limits(package_parts=20))
    data = with_entries(*(f"x{number}" for number in range(20)))
    assert read("docx", data, policy=policy).answer.outcome is Reason.OBJECT_BUDGET_EXCEEDED


def test_a_package_that_expands_beyond_the_limit_is_refused(read: Reader) -> None:
    data = with_entries("word/x.bin", body=bytes(2_000_000))
    limited = Policy(limits=Limits(package_bytes=1_000_000))
    assert read("docx", data, policy=limited).answer.outcome is Reason.EXPANDED_SIZE_EXCEEDED


def test_a_package_that_expands_out_of_all_proportion_is_refused(read: Reader) -> None:
    data = with_entries("word/x.bin", body=bytes(70_000_000))
    assert read("docx", data).answer.outcome is Reason.EXPANDED_SIZE_EXCEEDED


def test_encrypted_parts_are_told(read: Reader) -> None:
    data = patched(docx(PLAIN), lambda info: (8, "<H", info.flag_bits | 1), "word/document.xml")
    assert read("docx", data).answer.outcome is Reason.ENCRYPTED


def test_a_document_that_is_cut_ends_too_early(read: Reader) -> None:
    data = docx(PLAIN)
    assert read("docx", data[: len(data) * 2 // 3]).answer.outcome is Reason.TRUNCATED_DOCUMENT


@pytest.mark.parametrize("document", [billion_laughs(), "<w:document", "", '<?xml version="1.0" encoding="no"?><a/>'])
def test_markup_that_is_unsound_or_has_entities_is_refused(read: Reader, document: str) -> None:
    assert read("docx", docx("", extra={"word/document.xml": document})).answer.outcome is Reason.MALFORMED_DOCUMENT


def test_markup_that_is_nested_too_deeply_is_refused(read: Reader) -> None:
    body = "<w:p>" * 5_000 + "</w:p>" * 5_000
    assert read("docx", docx(body)).answer.outcome is Reason.STRUCTURE_TOO_DEEP


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({"content_bytes": 3_000}, Reason.CONTENT_BUDGET_EXCEEDED),
        ({"objects": 50}, Reason.OBJECT_BUDGET_EXCEEDED),
        ({"placements": 3}, Reason.PLACEMENT_BUDGET_EXCEEDED),
    ],
)
def test_a_slide_beyond_a_budget_has_the_reason_and_no_count(read: Reader, limits, reason) -> None:
    found = read("pptx", pptx([pic("p", described="x" * 1_000) * 4]), policy=Policy(limits=Limits(**limits)))
    assert [(page.drawn, page.reason) for page in found.answer.pages] == [(None, reason)]


def test_too_many_slides_are_refused(read: Reader) -> None:
    found = read("pptx", pptx(["", "", ""]), policy=Policy(limits=Limits(pages=2)))
    assert found.answer.outcome is Reason.PAGE_BUDGET_EXCEEDED


def test_a_document_of_another_kind_than_its_name_says_is_refused(read: Reader) -> None:
    assert read("docx", docx(PLAIN), declared="pptx").answer.outcome is Reason.SIGNATURE_MISMATCH


def test_a_document_with_macros_is_of_another_kind(read: Reader) -> None:
    macro = content_types("docx").replace(
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml",
        "application/vnd.ms-word.document.macroEnabled.main+xml",
    )
    assert read("docx", docx(PLAIN, extra={"[Content_Types].xml": macro})).answer.outcome is Reason.SIGNATURE_MISMATCH


def test_the_strict_form_of_the_standard_reads_alike(read: Reader) -> None:
    strict = {
        name: body.replace(b"http://schemas.openxmlformats.org/officeDocument/2006", b"http://purl.oclc.org/ooxml/officeDocument")
        .replace(b"http://schemas.openxmlformats.org/wordprocessingml/2006/main", b"http://purl.oclc.org/ooxml/wordprocessingml/main")
        for name, body in _parts(docx(PLAIN)).items()
    }  # fmt: skip
    assert [row.status for row in read("docx", package("docx", strict)).rows] == [Status.ARCHIVED]


def test_names_of_parts_are_the_same_in_any_case(read: Reader) -> None:
    parts = _parts(docx(PLAIN))
    parts["word/Media/Image1.PNG"] = parts.pop("word/media/image1.png")
    assert [row.status for row in read("docx", package("docx", parts)).rows] == [Status.ARCHIVED]


def test_one_damaged_picture_loses_no_other(read: Reader) -> None:
    media = {"image1.png": picture(), "image2.png": picture(seed=2)}
    data = docx(PLAIN + paragraph(inline(pic(id_="rId2"))), media)
    at = data.index(b"IDAT") if b"IDAT" in data else data.index(b"word/media/image1.png") + 60
    damaged = data[:at] + bytes(8) + data[at + 8 :]
    one, two = read("docx", damaged).rows
    assert (one.status, one.reason) == (Status.QUARANTINED, Reason.MALFORMED_STREAM)
    assert two.status is Status.ARCHIVED


def test_reading_a_part_of_the_slides_gives_those_rows_and_no_others(read: Reader) -> None:
    from dataclasses import replace

    from asset_pipeline.extraction.engine import Request, load_engine
    from asset_pipeline.validation.packages import PPTX

    data = pptx([pic("p"), pic("p"), pic("p")])
    whole = read("pptx", data)
    request = Request(
        whole.folder.parent / "document", whole.folder, Policy(), whole.answer.source.sha256, len(data), PPTX
    )
    part = load_engine("ooxml").extract(replace(request, first=2, last=2))
    assert part.pages == whole.answer.pages[1:2]
    assert part.source.pages == 3


def _parts(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}
