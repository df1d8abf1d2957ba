"""The default engine: rows, accounts and files of whole documents; faults stay where they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

import asset_pipeline
from asset_pipeline import account
from asset_pipeline.extraction.engine import Request, extractor_version, load_engine
from asset_pipeline.extraction.pdf.engine import REVISION
from asset_pipeline.model import Extraction, Status
from asset_pipeline.policy import Decorative, Limits, Policy
from asset_pipeline.reasons import Reason

Build = Callable[[pikepdf.Pdf], None]
Read = Callable[..., Extraction]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Build a document, read it with the engine and return the answer; files are in ``tmp_path / "out"``."""

    def run(
        build: Build, policy: Policy | None = None, damage: tuple[bytes, bytes] = (b"", b""), **changes: object
    ) -> Extraction:
        document, out = tmp_path / "source.pdf", tmp_path / "out"
        with pikepdf.new() as pdf:
            build(pdf)
            pdf.save(document)
        out.mkdir()
        content = document.read_bytes().replace(*damage)
        document.write_bytes(content)
        body = {
            "document": document, "out": out, "policy": policy or Policy(),
            "source_sha256": hashlib.sha256(content).hexdigest(), "source_bytes": len(content),
        }  # fmt: skip
        return load_engine("pdf").extract(Request(**(body | changes)))

    return run


def _picture(pdf: pikepdf.Pdf, colour: int = 10, data: bytes | None = None, **keys: object) -> pikepdf.Object:
    stream = pdf.make_stream(bytes([colour, 99, 200]) * 24 if data is None else data)
    defaults = {
        "Type": Name.XObject, "Subtype": Name.Image, "Width": 6, "Height": 4,
        "ColorSpace": Name.DeviceRGB, "BitsPerComponent": 8,
    }  # fmt: skip
    for key, value in (defaults | keys).items():
        stream[f"/{key}"] = value
    return pdf.make_indirect(stream)


def _page(pdf: pikepdf.Pdf, content: bytes, **pictures: pikepdf.Object) -> pikepdf.Page:
    page = pdf.add_blank_page(page_size=(300, 300))
    page.Resources = Dictionary(XObject=Dictionary({f"/{name}": picture for name, picture in pictures.items()}))
    page.Contents = pdf.make_stream(content)
    return page


def _draw(name: str, width: float = 60, height: float = 40, at: int = 20) -> bytes:
    return b"q %g 0 0 %g %d %d cm /%s Do Q\n" % (width, height, at, at, name.encode())


def test_rows_come_in_paint_order_with_stable_names(read: Read, tmp_path: Path) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        first, second = _picture(pdf, 1), _picture(pdf, 2)
        _page(pdf, _draw("B") + _draw("A", at=100), A=first, B=second)
        _page(pdf, b"")

    extraction = read(build)
    drawn, blank = extraction.pages
    assert [row.name for row in drawn.placements] == ["page-001-image-001", "page-001-image-002"]
    assert (drawn.drawn, drawn.archived, blank.drawn) == (2, 2, 0)
    assert account.unaccounted(extraction.pages, 2) == []
    for picture in extraction.pictures:
        content = (tmp_path / "out" / picture.file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == picture.sha256


def test_names_have_room_for_every_page_of_the_document(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        picture = _picture(pdf)
        for _ in range(1000):
            _page(pdf, _draw("A"), A=picture)

    extraction = read(build, first=999)
    assert [page.placements[0].name for page in extraction.pages] == ["page-0999-image-001", "page-1000-image-001"]
    assert extraction.source.pages == 1000


def test_one_bad_picture_loses_no_other(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        broken = _picture(pdf, data=b"\xff\xd8 no picture", Filter=Name.DCTDecode)
        pictures = {"A": _picture(pdf, 1), "B": broken, "C": _picture(pdf, 3)}
        _page(pdf, _draw("A") + _draw("B", at=80) + _draw("C", at=140), **pictures)

    page = read(build).pages[0]
    assert [row.status for row in page.placements] == [Status.ARCHIVED, Status.QUARANTINED, Status.ARCHIVED]
    assert [row.name[-3:] for row in page.placements] == ["001", "002", "003"]
    assert (page.drawn, page.archived, page.quarantined) == (3, 2, 1)
    assert page.placements[1].picture is None


def test_one_bad_page_loses_no_document(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        picture = _picture(pdf)
        _page(pdf, _draw("A"), A=picture)
        _page(pdf, b"q " * 100, A=picture)
        _page(pdf, _draw("A"), A=picture)

    first, second, third = read(build, Policy(limits=Limits(operators=50))).pages
    assert (first.archived, third.archived) == (1, 1)
    assert (second.drawn, second.reason) == (None, Reason.CONTENT_BUDGET_EXCEEDED)


def _nested(innermost: pikepdf.Object, levels: int) -> pikepdf.Object:
    """``innermost`` in so many arrays, one in the other."""
    for _ in range(levels):
        innermost = Array([innermost])
    return innermost


def _with_an_entry_too_deep(pdf: pikepdf.Pdf) -> None:
    pdf.pages[1].obj.PieceInfo = _nested(Name.A, 600)


def _with_a_branch_too_deep(pdf: pikepdf.Pdf) -> None:
    root, page = pdf.Root.Pages, pdf.pages[1].obj
    for _ in range(150):
        page = pdf.make_indirect(Dictionary(Type=Name.Pages, Kids=Array([page]), Count=1))
    root.Kids[1] = page


@pytest.mark.parametrize("nest", [_with_an_entry_too_deep, _with_a_branch_too_deep])
def test_a_page_nested_too_deep_keeps_its_number_and_loses_no_other(read: Read, nest: Build) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        for colour in (1, 2, 3):
            _page(pdf, _draw("A"), A=_picture(pdf, colour))
        nest(pdf)

    extraction = read(build)
    assert [(page.page, page.drawn, page.reason) for page in extraction.pages] == [
        (1, 1, None),
        (2, None, Reason.STRUCTURE_TOO_DEEP),
        (3, 1, None),
    ]
    assert (extraction.source.pages, len(extraction.pictures)) == (3, 2)


@pytest.mark.parametrize("nest", [_with_an_entry_too_deep, _with_a_branch_too_deep])
def test_a_document_of_pages_nested_too_deep_alone_is_refused(read: Read, nest: Build) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        for _ in range(2):
            _page(pdf, _draw("A"), A=_picture(pdf))
        nest(pdf)
        del pdf.Root.Pages.Kids[0]

    assert read(build).outcome is Reason.STRUCTURE_TOO_DEEP


def test_a_picture_nested_too_deep_is_told_where_it_is_drawn(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        whole, deep = _picture(pdf, 1), _picture(pdf, 2)
        deep.Metadata = _nested(Name.A, 600)
        _page(pdf, _draw("A"), A=whole)
        _page(pdf, _draw("A") + _draw("B"), A=whole, B=deep)
        _page(pdf, _draw("B"), B=deep)

    pages = read(build).pages
    assert [(page.drawn, page.reason) for page in pages] == [
        (1, None),
        (1, Reason.STRUCTURE_TOO_DEEP),
        (0, Reason.STRUCTURE_TOO_DEEP),
    ]


_FITS, _FITS_NOT = 1234567890123456789, 9999999999999999999
"""A whole number of 64 bits, and one of as many digits that none holds: qpdf takes its object for nothing."""
_OVERFLOW = str(_FITS).encode(), str(_FITS_NOT).encode()


def test_a_picture_that_does_not_parse_is_told_where_it_is_drawn(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        whole, broken = _picture(pdf, 1), _picture(pdf, 2)
        broken.Width = _FITS
        _page(pdf, _draw("A"), A=whole)
        _page(pdf, _draw("A") + _draw("B"), A=whole, B=broken)

    pages = read(build, damage=_OVERFLOW).pages
    assert [(page.drawn, page.reason) for page in pages] == [(1, None), (1, Reason.MALFORMED_DOCUMENT)]


def test_a_page_that_does_not_parse_keeps_its_number_and_loses_no_other(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        for colour in (1, 2, 3):
            _page(pdf, _draw("A"), A=_picture(pdf, colour))
        pdf.pages[1].obj.Rotate = _FITS

    extraction = read(build, damage=_OVERFLOW)
    assert [(page.page, page.drawn, page.reason) for page in extraction.pages] == [
        (1, 1, None),
        (2, None, Reason.MALFORMED_DOCUMENT),
        (3, 1, None),
    ]


def test_of_a_page_that_draws_too_much_nothing_is_decoded_and_its_neighbours_are_whole(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        for pictures in (1, 4, 2):
            drawn = {f"P{index}": _picture(pdf, colour=index) for index in range(pictures)}
            _page(pdf, b" ".join(_draw(name) for name in drawn), **drawn)

    extraction = read(build, Policy(limits=Limits(placements=3)))
    first, second, third = extraction.pages
    assert (first.archived, third.drawn) == (1, 2)
    assert (second.drawn, second.reason, second.placements) == (None, Reason.PLACEMENT_BUDGET_EXCEEDED, [])
    assert account.unaccounted(extraction.pages, 3) == []
    assert len(extraction.pictures) == 2


def test_a_form_that_draws_itself_is_noted_and_its_page_counted(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        form = pdf.make_indirect(pdf.make_stream(_draw("A") + b"/F Do"))
        form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 300, 300])
        form.Resources = Dictionary(XObject=Dictionary(A=_picture(pdf), F=form))
        _page(pdf, b"/F Do", F=form)

    (page,) = read(build).pages
    assert (page.drawn, page.archived, page.reason) == (1, 1, Reason.STRUCTURE_LOOP)


def test_small_pictures_are_decorative_by_their_size_on_paper(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        page = _page(pdf, _draw("A", 2, 40) + _draw("A", 60, 3, at=80) + _draw("A", 4, 4, at=100), A=_picture(pdf))
        page.obj.UserUnit = 2

    policy = Policy(decorative=Decorative(shortest_side_points=6.0))
    rows = read(build, policy).pages[0].placements
    assert [row.status for row in rows] == [Status.DECORATIVE, Status.ARCHIVED, Status.ARCHIVED]
    assert all(row.picture and row.display for row in rows)


def test_alternative_texts_of_a_tagged_document_are_kept(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        content = b"/Figure <</MCID 0>> BDC " + _draw("A") + b"EMC " + _draw("A", at=100)
        page = _page(pdf, content, A=_picture(pdf))
        page.obj.StructParents = 0
        root = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
        figure = Dictionary(Type=Name.StructElem, S=Name.Figure, P=root, Pg=page.obj, K=0, Alt="A quokka eating")
        figure = pdf.make_indirect(figure)
        root.K = Array([figure])
        root.ParentTree = pdf.make_indirect(Dictionary(Nums=Array([0, Array([figure])])))
        pdf.Root.StructTreeRoot = root

    assert [row.alt for row in read(build).pages[0].placements] == ["A quokka eating", None]


def test_broken_tags_cost_nothing_but_the_text(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        page = _page(pdf, b"/Figure <</MCID 7>> BDC " + _draw("A") + b"EMC", A=_picture(pdf))
        page.obj.StructParents = 0
        pdf.Root.StructTreeRoot = Dictionary(ParentTree=Dictionary(Nums=Array([0, 5])))

    (row,) = read(build).pages[0].placements
    assert (row.alt, row.status) == (None, Status.ARCHIVED)


def test_a_range_of_pages_is_read_alone(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        for number in range(6):
            _page(pdf, _draw("A"), A=_picture(pdf, number))

    extraction = read(build, first=3, last=4)
    assert [page.page for page in extraction.pages] == [3, 4]
    assert len(extraction.pictures) == 2


def test_a_refused_document_says_why_and_has_no_page(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"")
        _page(pdf, b"")

    extraction = read(build, Policy(limits=Limits(pages=1)))
    assert (extraction.outcome, extraction.pages) == (Reason.PAGE_BUDGET_EXCEEDED, [])


def test_memory_does_not_grow_with_the_number_of_pages(tmp_path: Path) -> None:
    def peak(pages: int) -> int:
        document = tmp_path / f"{pages}.pdf"
        side = 700
        with pikepdf.new() as pdf:
            for number in range(pages):
                data = bytes([number]) * (side * side * 3)
                _page(pdf, _draw("A"), A=_picture(pdf, data=data, Width=side, Height=side))
            pdf.save(document)
        extraction = asset_pipeline.extract(document, tmp_path / str(pages), workers=1)
        assert len(extraction.pictures) == pages
        return extraction.peak_rss_bytes

    assert peak(40) - peak(5) < 10_000_000


def test_the_version_names_every_library_that_can_change_a_byte() -> None:
    engine = load_engine("pdf")
    assert [part.split("-")[0] for part in engine.version().split("+")] == [
        f"pdf/{REVISION}", "qpdf", "pdfium", "pillow", "pikepdf", "simplejpeg",
    ]  # fmt: skip
    changed = Policy(decorative=Decorative(shortest_side_points=7))
    assert extractor_version(engine, changed) != extractor_version(engine, Policy())
