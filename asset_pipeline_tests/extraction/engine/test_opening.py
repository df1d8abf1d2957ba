"""Which documents open, and why others do not."""

from __future__ import annotations

import hashlib
import re
import resource
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.pdf.document import open_document
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

MakeRequest = Callable[..., Request]


@pytest.fixture
def make_request(tmp_path: Path) -> MakeRequest:
    def make(content: bytes, password: str | None = None, **limits: int) -> Request:
        document = tmp_path / "source"
        document.write_bytes(content)
        return Request(
            document=document,
            out=tmp_path,
            policy=Policy(limits=Limits.model_validate(limits)),
            source_sha256=hashlib.sha256(content).hexdigest(),
            source_bytes=len(content),
            password=password,
        )

    return make


def _document(tmp_path: Path, pages: int = 3, encryption: pikepdf.Encryption | bool = False) -> bytes:
    with pikepdf.new() as pdf:
        for _ in range(pages):
            pdf.add_blank_page()
        pdf.save(tmp_path / "made.pdf", encryption=encryption)
    return (tmp_path / "made.pdf").read_bytes()


def _refusal(request: Request) -> Reason:
    with pytest.raises(Refusal) as refused, open_document(request):
        pass
    return refused.value.reason


@pytest.mark.parametrize(
    ("user", "owner", "password", "encrypted"),
    [("", "owner", None, "owner_only"), ("secret", "owner", "secret", "user"), ("secret", "owner", "owner", "user")],
)
def test_a_protected_document_opens_with_what_its_reader_has(
    make_request: MakeRequest, tmp_path: Path, user: str, owner: str, password: str | None, encrypted: str
) -> None:
    content = _document(tmp_path, encryption=pikepdf.Encryption(user=user, owner=owner))
    with open_document(make_request(content, password)) as document:
        assert (document.pages, document.encrypted) == (3, encrypted)


@pytest.mark.parametrize("password", [None, "wrong", ""])
def test_a_document_without_its_password_is_encrypted(
    make_request: MakeRequest, tmp_path: Path, password: str | None
) -> None:
    content = _document(tmp_path, encryption=pikepdf.Encryption(user="secret", owner="owner"))
    assert _refusal(make_request(content, password)) is Reason.ENCRYPTED


def test_a_header_may_start_anywhere_in_the_first_1024_bytes(make_request: MakeRequest, tmp_path: Path) -> None:
    with open_document(make_request(b"x" * 1000 + _document(tmp_path))) as document:
        assert document.pages == 3
    assert _refusal(make_request(b"x" * 2000 + _document(tmp_path))) is Reason.SIGNATURE_MISMATCH


def test_a_document_that_lost_its_index_is_recovered(make_request: MakeRequest, tmp_path: Path) -> None:
    content = _document(tmp_path).replace(b"startxref", b"startxxxx")
    with open_document(make_request(content)) as document:
        assert document.pages == 3


INDEXED = (
    b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
    b"2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n"
    b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]/Contents 4 0 R>>\nendobj\n"
    b"4 0 obj\n<</Length 1>>\nstream\nn\nendstream\nendobj\n"
)


def _with_index(first: int, skipped: int) -> bytes:
    """A document whose index numbers its entries from ``first``, the leading ``skipped`` ones left out."""
    entries = [b"0000000000 65535 f \n"]
    entries += [b"%010d 00000 n \n" % INDEXED.index(b"%d 0 obj" % number) for number in range(1, 5)]
    kept = entries[skipped:]
    return (
        INDEXED
        + b"xref\n%d %d\n" % (first, len(kept))
        + b"".join(kept)
        + b"trailer\n<</Size 5/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(INDEXED)
    )


@pytest.mark.parametrize(("first", "skipped"), [(0, 0), (1, 0), (2, 0), (0, 1)])
def test_an_index_that_counts_from_the_wrong_number_hides_no_object(
    make_request: MakeRequest, first: int, skipped: int
) -> None:
    with open_document(make_request(_with_index(first, skipped))) as document:
        assert document.pages == 1
        assert document.pdf.pages[0].obj.Contents.read_raw_bytes() == b"n"


def test_a_page_that_stands_where_the_page_tree_belongs_is_the_only_one(make_request: MakeRequest) -> None:
    tree, page = b"<</Type/Pages/Kids[3 0 R]/Count 1>>", b"<</Type/Page/MediaBox[0 0 9 9]>>"
    with open_document(make_request(_with_index(0, 0).replace(tree, page.ljust(len(tree))))) as document:
        assert document.pages == 1


@pytest.mark.parametrize("end", [b"", b"%%EO", b"%EOF\n"])
def test_a_document_whose_end_marker_alone_is_missing_is_recovered(
    make_request: MakeRequest, tmp_path: Path, end: bytes
) -> None:
    content = re.sub(rb"startxref\n\d+\n%%EOF\n", b"startxref\n7\n" + end, _document(tmp_path))
    assert b"%%EOF" not in content
    with open_document(make_request(content)) as document:
        assert document.pages == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"%PDF-1.7 and nothing else", Reason.TRUNCATED_DOCUMENT),
        (b"%PDF-1.7\n1 0 obj\n<<>>\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF", Reason.MALFORMED_DOCUMENT),
        (b"MZ\x90\x00 a program", Reason.SIGNATURE_MISMATCH),
        (b"just words", Reason.SIGNATURE_MISMATCH),
        (b"", Reason.EMPTY_DOCUMENT),
    ],
)
def test_what_cannot_be_read_says_why(make_request: MakeRequest, content: bytes, reason: Reason) -> None:
    assert _refusal(make_request(content)) is reason


def test_a_document_cut_off_in_the_middle_is_truncated(make_request: MakeRequest, tmp_path: Path) -> None:
    content = _document(tmp_path, pages=50)
    assert _refusal(make_request(content[: len(content) // 2])) is Reason.TRUNCATED_DOCUMENT


def test_a_page_tree_that_loops_is_malformed(make_request: MakeRequest) -> None:
    content = (
        b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Kids[3 0 R]/Count 1>>\nendobj\n3 0 obj\n<</Type/Pages/Kids[2 0 R]/Count 1>>\nendobj\n"
        b"trailer\n<</Root 1 0 R/Size 4>>\n%%EOF"
    )
    assert _refusal(make_request(content)) is Reason.MALFORMED_DOCUMENT


def test_budgets_of_pages_and_objects_are_kept(make_request: MakeRequest, tmp_path: Path) -> None:
    content = _document(tmp_path)
    assert _refusal(make_request(content, pages=2)) is Reason.PAGE_BUDGET_EXCEEDED
    assert _refusal(make_request(content, objects=3)) is Reason.OBJECT_BUDGET_EXCEEDED
    with open_document(make_request(content, pages=3)) as document:
        assert document.pages == 3


def test_a_page_tree_that_lies_about_its_count_is_counted(make_request: MakeRequest, tmp_path: Path) -> None:
    boasting = re.sub(rb"/Count 3\b", b"/Count 9", _document(tmp_path))
    with open_document(make_request(boasting, pages=5)) as document:
        assert document.pages == 3
    modest = re.sub(rb"/Count 3\b", b"/Count 1", _document(tmp_path))
    assert _refusal(make_request(modest, pages=2)) is Reason.PAGE_BUDGET_EXCEEDED


def test_too_many_pages_are_refused_before_they_are_built(make_request: MakeRequest, tmp_path: Path) -> None:
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.Root.Pages.Kids = pikepdf.Array([pdf.pages[0].obj] * 100_000)
        pdf.Root.Pages.Count = 100_000
        pdf.save(tmp_path / "many.pdf")
    content = (tmp_path / "many.pdf").read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert _refusal(make_request(content)) is Reason.PAGE_BUDGET_EXCEEDED
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # KiB; building them takes 250,000


def test_a_page_tree_without_a_count_that_lacks_a_page_is_malformed(make_request: MakeRequest) -> None:
    content = (
        b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n"
        b"2 0 obj\n<</Type/Pages/Kids[3 0 R 9 0 R]>>\nendobj\n"
        b"3 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>\nendobj\n"
        b"trailer\n<</Root 1 0 R/Size 4>>\n%%EOF"
    )
    assert _refusal(make_request(content)) is Reason.MALFORMED_DOCUMENT
