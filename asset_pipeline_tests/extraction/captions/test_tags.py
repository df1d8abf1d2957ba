"""What tags say about pictures: alternative texts and captions of tagged documents, broken ones too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

import asset_pipeline
from asset_pipeline.model import Placement
from asset_pipeline_tests.extraction.captions.conftest import ReadMade

MARKED = b"/Figure <</MCID 0>> BDC q 100 0 0 80 50 100 cm /Im0 Do Q EMC\n"


class Tagged:
    """A tagged document of one page with one picture, on its way."""

    def __init__(self, pdf: pikepdf.Pdf, content: bytes = MARKED) -> None:
        self.pdf = pdf
        self.page = pdf.add_blank_page(page_size=(300, 300)).obj
        self.picture = pdf.make_stream(bytes(64))
        keys = {"Type": Name.XObject, "Subtype": Name.Image, "Width": 8, "Height": 8, "BitsPerComponent": 8}
        for key, value in (keys | {"ColorSpace": Name.DeviceGray}).items():
            self.picture["/" + key] = value
        font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
        self.page.Resources = Dictionary(XObject=Dictionary(Im0=self.picture), Font=Dictionary(F=font))
        self.page.Contents = pdf.make_stream(content)
        self.page.StructParents = 0
        self.root = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
        self.nums: list[Any] = []
        pdf.Root.StructTreeRoot = self.root
        pdf.Root.MarkInfo = Dictionary(Marked=True)

    def element(self, role: str, parent: Any = None, **keys: Any) -> Any:
        made = Dictionary(Type=Name.StructElem, S=Name("/" + role), P=self.root if parent is None else parent)
        for key, value in keys.items():
            made["/" + key] = value
        return self.pdf.make_indirect(made)

    def parents(self, *entries: tuple[int, Any]) -> None:
        """The parent tree: key and what is under it."""
        nums = [part for entry in entries for part in entry]
        self.root.ParentTree = self.pdf.make_indirect(Dictionary(Nums=Array(nums)))


def only(read_made: ReadMade, write: Callable[[pikepdf.Pdf], None]) -> Placement:
    (row,) = read_made(write).pages[0].placements
    assert row.status == "archived"
    return row


@pytest.mark.parametrize("key", ["Alt", "ActualText"])
def test_the_figure_around_a_picture_gives_its_text(read_made: ReadMade, key: str) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf)
        made.parents((0, Array([made.element("Figure", **{key: "A tern over the bar"})])))

    assert only(read_made, write).alt == "A tern over the bar"


def test_alt_comes_before_actual_text(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf)
        figure = made.element("Figure", Alt="A tern", ActualText="T")
        made.parents((0, Array([made.element("Span", figure)])))

    assert only(read_made, write).alt == "A tern"


def test_the_text_of_what_lies_around_the_figure_is_not_its_own(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf)
        made.parents((0, Array([made.element("Figure", made.element("Sect", Alt="A whole section"))])))

    assert only(read_made, write).alt is None


def test_a_role_map_tells_what_a_figure_is(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf)
        made.root.RoleMap = Dictionary(Bild=Name.Abbildung, Abbildung=Name.Figure, Absatz=Name.Sect)
        figure = made.element("Bild", made.element("P", Alt="not this"), ActualText="The plan")
        made.parents((0, Array([figure])))

    assert only(read_made, write).alt == "The plan"


def test_a_picture_that_is_an_object_of_the_tree_is_found(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, b"q 100 0 0 80 50 100 cm /Im0 Do Q")
        made.picture.StructParent = 3
        made.parents((0, Array([])), (3, made.element("Figure", Alt="By reference")))

    assert only(read_made, write).alt == "By reference"


def test_a_form_with_its_own_marks_and_a_form_that_is_an_object_are_found(read_made: ReadMade) -> None:
    def write(own_marks: bool) -> Callable[[pikepdf.Pdf], None]:
        def run(pdf: pikepdf.Pdf) -> None:
            made = Tagged(pdf, b"/F Do")
            form = pdf.make_stream(MARKED if own_marks else b"q 100 0 0 80 50 100 cm /Im0 Do Q")
            form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 300, 300])
            figure = made.element("Figure", Alt="In a form")
            if own_marks:
                form.StructParents = 1
                made.parents((0, Array([])), (1, Array([figure])))
            else:
                form.StructParent = 1
                made.parents((0, Array([])), (1, figure))
            made.page.Resources.XObject.F = form

        return run

    assert only(read_made, write(True)).alt == "In a form"
    assert only(read_made, write(False)).alt == "In a form"


def test_an_annotation_gives_its_text_to_what_it_draws(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, b"")
        look = pdf.make_stream(b"q 40 0 0 40 0 0 cm /Im0 Do Q")
        look.Type, look.Subtype, look.BBox = Name.XObject, Name.Form, Array([0, 0, 40, 40])
        look.Resources = made.page.Resources
        stamp = Dictionary(Type=Name.Annot, Subtype=Name.Stamp, Rect=[50, 50, 90, 90], AP=Dictionary(N=look))
        stamp.StructParent = 2
        made.page.Annots = Array([pdf.make_indirect(stamp)])
        made.parents((2, made.element("Figure", Alt="Stamped")))

    assert only(read_made, write).alt == "Stamped"


def test_marked_content_may_say_it_itself(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        page = Tagged(pdf, b"/Span <</Alt (Said in passing)>> BDC q 100 0 0 80 50 100 cm /Im0 Do Q EMC")
        del pdf.Root.StructTreeRoot
        assert page.page is not None

    assert only(read_made, write).alt == "Said in passing"


def test_the_caption_of_the_same_figure_is_taken_from_its_marked_content(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        text = (
            b"/P <</MCID 1>> BDC BT /F 9 Tf 50 250 Td (Terns at the bar,) Tj 0 -11 Td (seen in May.) Tj ET EMC\n"
            b"BT /F 9 Tf 50 88 Td (Figure 3. Not this one) Tj ET\n"
        )
        made = Tagged(pdf, MARKED + text)
        figure = made.element("Figure", Alt="Terns")
        caption = made.element("Caption", figure, K=Array([1]), Pg=made.page)
        figure.K = Array([0, caption])
        made.parents((0, Array([figure, caption])))

    row = only(read_made, write)
    assert (row.alt, row.caption) == ("Terns", "Terns at the bar, seen in May.")


def test_the_tagged_caption_of_another_page_is_not_read_from_this_one(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, MARKED + b"/P <</MCID 1>> BDC BT /F 9 Tf 50 250 Td (Other words) Tj ET EMC\n")
        other = pdf.add_blank_page(page_size=(300, 300)).obj
        figure = made.element("Figure")
        caption = made.element("Caption", figure, K=1, Pg=other)
        figure.K = Array([0, caption])
        made.parents((0, Array([figure, caption])))

    row = read_made(write).pages[0].placements[0]
    assert row.caption is None


@pytest.mark.parametrize(
    ("box", "alt"),
    [((50, 100, 150, 180), "The weir"), ((49.6, 100, 150.4, 180), "The weir"), ((50, 100, 150, 190), None)],
)
def test_a_figure_without_content_is_found_by_page_and_box(
    read_made: ReadMade, box: tuple[float, ...], alt: str | None
) -> None:
    """As word processors describe a picture that they paint as an artifact."""

    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, MARKED.replace(b"/Figure <</MCID 0>> BDC", b"/Artifact BMC"))
        other = pdf.add_blank_page(page_size=(300, 300)).obj
        places = [(made.page, box, "The weir"), (other, (50, 100, 150, 180), "Another page's")]
        section = made.element("Sect")
        section.K = Array([
            made.element("Bild", section, Alt=text, Pg=page, A=Dictionary(O=Name.Layout, BBox=Array(list(place))))
            for page, place, text in places
        ])  # fmt: skip
        made.root.K, made.root.RoleMap = section, Dictionary(Bild=Name.Figure)
        made.parents((0, Array([])))

    (row,) = read_made(write).pages[0].placements
    assert row.alt == alt


def test_two_figures_in_one_place_that_differ_are_nobodys(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, MARKED.replace(b"/Figure <</MCID 0>> BDC", b"/Artifact BMC"))
        place = Dictionary(O=Name.Layout, BBox=Array([50, 100, 150, 180]))
        made.root.K = Array([made.element("Figure", Alt=text, Pg=made.page, A=place) for text in ("One", "Two")])
        made.root.K.append(made.root)
        made.parents((0, Array([])))

    assert only(read_made, write).alt is None


def write_tagged_chart(pdf: pikepdf.Pdf) -> None:
    bars = b"".join(b"%d 60 14 %d re f\n" % (60 + 20 * number, 30 + 13 * number) for number in range(8))
    line = b"60 70 m 80 95 l 100 90 l 120 130 l 140 120 l 160 170 l 200 160 l S\n50 50 m 250 50 l 50 50 m 50 200 l S\n"
    made = Tagged(pdf, b"/Figure <</MCID 0>> BDC 0.2 0.4 0.6 rg " + bars + line + b"EMC\n")
    made.parents((0, Array([made.element("Figure", Alt="Eight bars that rise")])))


def test_a_vector_figure_gets_the_text_of_its_marked_content(read_made: ReadMade) -> None:
    rows = read_made(write_tagged_chart).pages[0].placements
    assert [(row.kind.value, row.alt) for row in rows] == [("vector_figure", "Eight bars that rise")]


@pytest.mark.usefixtures("started_zygotes")
def test_a_vector_figure_gets_its_text_in_the_cage_as_well(tmp_path: Path) -> None:
    with pikepdf.new() as pdf:
        write_tagged_chart(pdf)
        pdf.save(tmp_path / "chart.pdf")
    rows = asset_pipeline.extract(tmp_path / "chart.pdf", tmp_path / "out").pages[0].placements
    assert [(row.kind.value, row.alt) for row in rows] == [("vector_figure", "Eight bars that rise")]


@pytest.mark.parametrize("fault", ["loop", "parents", "kids", "roles", "mcid", "tree loop", "deep"])
def test_broken_tags_cost_a_text_and_nothing_else(read_made: ReadMade, fault: str) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        made = Tagged(pdf, MARKED.replace(b"MCID 0", b"MCID 99999999") if fault == "mcid" else MARKED)
        figure = made.element("P")
        made.parents((0, Array([figure])))
        if fault == "loop":
            figure.P = figure
        elif fault == "parents":
            made.root.ParentTree = Dictionary(Nums=Array([Name.No, 3, Dictionary()]))
        elif fault == "kids":
            figure.S, figure.K = Name.Figure, figure
        elif fault == "roles":
            made.root.RoleMap = Dictionary(P=Name.Q, Q=Name.P)
        elif fault == "tree loop":
            tree = pdf.make_indirect(Dictionary(Limits=Array([0, 9])))
            tree.Kids = Array([tree])
            made.root.ParentTree = tree
        elif fault == "deep":
            caption = figure
            for _ in range(300):
                caption = made.element("Caption", caption, K=caption)
            figure.S, figure.K = Name.Figure, caption

    row = only(read_made, write)
    assert (row.alt, row.caption) == (None, None)


def test_texts_are_short_and_printable(read_made: ReadMade) -> None:
    def write(pdf: pikepdf.Pdf) -> None:
        long = b"Figure 1. " + b"much to say " * 4
        lines = b"".join(
            b"BT /F 4 Tf 50 %d Td (%s) Tj ET\n" % (94 - 5 * row, long if not row else long[10:]) for row in range(12)
        )
        made = Tagged(pdf, MARKED + lines)
        made.parents((0, Array([made.element("Figure", Alt="a\x00b\x1b[31m\nc" + "x" * 5000)])))

    row = only(read_made, write)
    assert row.alt is not None and row.alt.isprintable() and len(row.alt) <= 2000
    assert row.caption is not None and row.caption.startswith("Figure 1.") and 400 < len(row.caption) <= 500
