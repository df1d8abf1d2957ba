"""Pages made to hang, swell or mislead: the walk ends soon and keeps what it found."""

from __future__ import annotations

import math
import time
import zlib

import pikepdf
import pytest
from pages import boxes, form, page, picture, walk, xobjects
from pikepdf import Array, Dictionary, Name

from asset_pipeline.model import Flag
from asset_pipeline.reasons import Reason

_DRAW = "q 9 0 0 9 0 0 cm /A Do Q "


def test_forms_that_double_at_every_level_take_no_time_when_they_draw_nothing(pdf: pikepdf.Pdf) -> None:
    inner = form(pdf, "0 0 9 9 re f")
    for _ in range(22):
        inner = form(pdf, "/F Do /F Do", {"XObject": xobjects(F=inner)})
    page(pdf, "/F Do " + _DRAW, {"XObject": xobjects(F=inner, A=picture(pdf))})
    began = time.process_time()
    found = walk(pdf)
    assert (len(found.draws), found.reason) == (1, None)
    assert time.process_time() - began < 2


def test_forms_that_double_at_every_level_and_draw_end_at_the_budget(pdf: pikepdf.Pdf) -> None:
    inner = form(pdf, _DRAW, {"XObject": xobjects(A=picture(pdf))})
    for _ in range(22):
        inner = form(pdf, "/F Do /F Do", {"XObject": xobjects(F=inner)})
    page(pdf, "/F Do", {"XObject": xobjects(F=inner)})
    found = walk(pdf, placements=50)
    assert (len(found.draws), found.reason, found.counted) == (50, Reason.PLACEMENT_BUDGET_EXCEEDED, False)


def test_a_form_that_loops_first_still_draws_when_drawn_alone(pdf: pikepdf.Pdf) -> None:
    one = form(pdf, "/B Do", {})
    other = form(pdf, "/A Do", {"XObject": xobjects(A=one)})
    one.Resources.XObject = xobjects(B=other)
    late = form(pdf, _DRAW + "/L Do", {})
    late.Resources.XObject = xobjects(A=picture(pdf), L=late)
    page(pdf, "/O Do /L Do /L Do", {"XObject": xobjects(O=one, L=late)})
    assert len(walk(pdf).draws) == 2


def test_a_cut_content_stream_keeps_what_comes_before_the_cut_and_says_so(pdf: pikepdf.Pdf) -> None:
    whole = zlib.compress(_DRAW.encode() + bytes(i * 7919 % 251 for i in range(5000)))
    made = page(pdf, "", {"XObject": xobjects(A=picture(pdf))})
    made.Contents.write(whole[: len(whole) // 2], filter=Name.FlateDecode)
    found = walk(pdf)
    assert (boxes(found), found.reason, found.counted) == ([(0, 0, 9, 9)], Reason.TRUNCATED_STREAM, True)


@pytest.mark.parametrize("end", ["checksum", "flushed"])
def test_flate_that_only_lacks_its_end_is_no_fault(pdf: pikepdf.Pdf, end: str) -> None:
    packer = zlib.compressobj()
    data = packer.compress(_DRAW.encode())
    data += packer.flush(zlib.Z_SYNC_FLUSH) if end == "flushed" else packer.flush()[:-4] + b"oops"
    made = page(pdf, "", {"XObject": xobjects(A=picture(pdf))})
    made.Contents.write(data, filter=Name.FlateDecode)
    found = walk(pdf)
    assert (boxes(found), found.reason) == ([(0, 0, 9, 9)], None)


def test_content_through_a_chain_of_filters_with_a_predictor_is_read(pdf: pikepdf.Pdf) -> None:
    content = _DRAW.encode().ljust(30)
    rows = b"".join(b"\x00" + content[at : at + 10] for at in range(0, 30, 10))
    made = page(pdf, "", {"XObject": xobjects(A=picture(pdf))})
    made.Contents.write(
        zlib.compress(rows).hex().encode() + b">",
        filter=Array([Name.ASCIIHexDecode, Name.FlateDecode]),
        decode_parms=Array([None, Dictionary(Predictor=15, Columns=10)]),
    )
    assert boxes(walk(pdf)) == [(0, 0, 9, 9)]


@pytest.mark.parametrize("matrix", ["1e9 0 0 1", "99999999999999999999 0 0 1", "0 0 0 0", "1 2 2 4"])
def test_matrices_without_sense_give_finite_numbers(pdf: pikepdf.Pdf, matrix: str) -> None:
    page(pdf, f"{matrix} 0 0 cm " * 40 + "/A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert all(math.isfinite(number) for number in (*draw.matrix, *draw.bbox, *draw.display_bbox, draw.visible))
    assert 0 <= draw.visible <= 1


def test_a_page_tree_that_runs_in_a_circle_is_left(pdf: pikepdf.Pdf) -> None:
    made = page(pdf, _DRAW, {"XObject": xobjects(A=picture(pdf))})
    del made.MediaBox
    made.Parent.Parent = made.Parent
    found = walk(pdf)
    assert (found.crop_box, len(found.draws)) == ((0, 0, 612, 792), 1)


def test_a_label_tree_that_runs_in_a_circle_gives_no_label(pdf: pikepdf.Pdf) -> None:
    page(pdf, "")
    tree = pdf.make_indirect(Dictionary(Limits=Array([0, 9])))
    tree.Kids = Array([tree])
    pdf.Root.PageLabels = tree
    assert walk(pdf).label is None


def test_a_visibility_expression_that_contains_itself_ends(pdf: pikepdf.Pdf) -> None:
    group = pdf.make_indirect(Dictionary(Type=Name.OCG))
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary())
    expression = pdf.make_indirect(Array([Name.And, group]))
    expression.append(expression)
    expression.append(expression)
    member = pdf.make_indirect(Dictionary(Type=Name.OCMD, VE=expression))
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, OC=member))})
    assert walk(pdf).draws[0].shown is True


@pytest.mark.parametrize(
    "unit", [b"q ", b"/A BMC ", b"BI ", b"BI ID x EI\1", b"BI /F /LZW ID x EI q ", b"BI /F /AHx ID x EI q ",
             b"BI /F /Fl ID x EI q ", b"BI /W 9 /H 9 /BPC 8 /CS /G ID xEI q "]
)  # fmt: skip
def test_a_page_of_one_thing_over_and_over_ends_soon(pdf: pikepdf.Pdf, unit: bytes) -> None:
    page(pdf, unit * (200_000 // len(unit)))
    began = time.process_time()
    walk(pdf, placements=100_000)
    assert time.process_time() - began < 6


def test_restores_without_saves_and_deep_saves_keep_the_state_in_step(pdf: pikepdf.Pdf) -> None:
    page(pdf, "Q Q 2 0 0 2 0 0 cm " + "q " * 10_050 + "5 0 0 5 0 0 cm " + "Q " * 10_050 + _DRAW,
         {"XObject": xobjects(A=picture(pdf))})  # fmt: skip
    assert boxes(walk(pdf)) == [(0, 0, 18, 18)]


def test_inline_data_does_not_stay_in_the_document_once_it_is_released(pdf: pikepdf.Pdf) -> None:
    page(pdf, b"BI /W 2 /H 2 /BPC 8 /CS /G ID abcd EI")
    found = walk(pdf)
    assert found.draws[0].image.read_raw_bytes() == b"abcd"
    found.release_inline()
    assert found.draws[0].image.read_raw_bytes() == b""


def test_an_inline_picture_in_a_form_drawn_twice_is_one_stream_with_two_placements(pdf: pikepdf.Pdf) -> None:
    made = form(pdf, "9 0 0 9 0 0 cm BI /W 2 /H 2 /BPC 8 /CS /G ID abcd EI")
    page(pdf, "/F Do 1 0 0 1 20 0 cm /F Do", {"XObject": xobjects(F=made)})
    one, other = walk(pdf).draws
    assert one.image.objgen == other.image.objgen
    assert (one.bbox, other.bbox) == ((0, 0, 9, 9), (20, 0, 29, 9))
    assert one.flags == other.flags == frozenset[Flag]()
