"""Where pictures are: scopes, forms, clips, rotation, crop box."""

from __future__ import annotations

import pikepdf
import pytest
from pages import boxes, form, page, picture, stencil, walk, xobjects
from pikepdf import Array, Dictionary, Name, Stream

from asset_pipeline.model import Flag, Kind
from asset_pipeline.reasons import Reason


def test_a_picture_drawn_three_times_is_three_placements_in_paint_order(pdf: pikepdf.Pdf) -> None:
    image = picture(pdf)
    page(pdf, "q 60 0 0 40 10 20 cm /A Do Q q 30 0 0 20 100 20 cm /A Do Q q 6 0 0 4 0 0 cm /A Do Q",
         {"XObject": xobjects(A=image)})  # fmt: skip
    found = walk(pdf)
    assert boxes(found) == [(10, 20, 70, 60), (100, 20, 130, 40), (0, 0, 6, 4)]
    assert [draw.order for draw in found.draws] == [1, 2, 3]
    assert {draw.object_id for draw in found.draws} == {image.objgen[0]}


def test_a_nested_form_places_its_picture_through_both_matrices(pdf: pikepdf.Pdf) -> None:
    inner = form(pdf, "q 120 0 0 80 20 20 cm /A Do Q", {"XObject": xobjects(A=picture(pdf))},
                 Matrix=Array([0.5, 0, 0, 0.5, 30, 70]))  # fmt: skip
    outer = form(pdf, "/F Do", {"XObject": xobjects(F=inner)})
    page(pdf, "/F Do", {"XObject": xobjects(F=outer)})
    assert boxes(walk(pdf)) == [(40, 80, 100, 120)]


def test_the_same_name_in_two_scopes_means_two_pictures(pdf: pikepdf.Pdf) -> None:
    one, other = picture(pdf), picture(pdf, 9, 9)
    nested = form(pdf, "10 0 0 10 0 0 cm /A Do", {"XObject": xobjects(A=other)})
    page(pdf, "q 10 0 0 10 50 50 cm /A Do Q /F Do", {"XObject": xobjects(A=one, F=nested)})
    assert [draw.object_id for draw in walk(pdf).draws] == [one.objgen[0], other.objgen[0]]


def test_a_form_without_resources_uses_those_of_its_caller(pdf: pikepdf.Pdf) -> None:
    bare = form(pdf, "10 0 0 10 0 0 cm /A Do")
    page(pdf, "/F Do", {"XObject": xobjects(A=picture(pdf), F=bare)})
    assert boxes(walk(pdf)) == [(0, 0, 10, 10)]


def test_resources_media_box_and_rotation_are_inherited_from_the_page_tree(pdf: pikepdf.Pdf) -> None:
    made = page(pdf, "60 0 0 40 20 10 cm /A Do")
    del made.MediaBox
    made.Parent.Resources = Dictionary(XObject=xobjects(A=picture(pdf)))
    made.Parent.MediaBox, made.Parent.Rotate = Array([0, 0, 400, 100]), 90
    draw = walk(pdf).draws[0]
    assert draw.display_bbox == pytest.approx((10, 20, 50, 80))
    assert (draw.turn, draw.mirrored) == (1, False)


def test_circular_forms_end_at_once_and_are_noted(pdf: pikepdf.Pdf) -> None:
    one = form(pdf, "q 10 0 0 10 0 0 cm /A Do Q /B Do", {})
    other = form(pdf, "/A Do", {"XObject": xobjects(A=one)})
    one.Resources.XObject = xobjects(A=picture(pdf), B=other)
    page(pdf, "/F Do", {"XObject": xobjects(F=one)})
    found = walk(pdf)
    assert len(found.draws) == 1
    assert found.reason is None
    assert found.notes == {Reason.STRUCTURE_LOOP}


def test_too_deep_a_nest_is_told_and_keeps_what_was_found(pdf: pikepdf.Pdf) -> None:
    inner = form(pdf, "10 0 0 10 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    for _ in range(6):
        inner = form(pdf, "/F Do", {"XObject": xobjects(F=inner)})
    page(pdf, "q 5 0 0 5 0 0 cm /A Do Q /F Do", {"XObject": xobjects(A=picture(pdf), F=inner)})
    found = walk(pdf, form_depth=4)
    assert (len(found.draws), found.reason, found.counted) == (1, Reason.STRUCTURE_TOO_DEEP, True)


@pytest.mark.parametrize(
    ("rotate", "expected", "turn"),
    [(0, (30, 40, 80, 110), 0), (90, (50, 30, 120, 80), 1), (180, (160, 50, 210, 120), 2),
     (270, (40, 160, 110, 210), 3), (-90, (40, 160, 110, 210), 3), (450, (50, 30, 120, 80), 1)],
)  # fmt: skip
def test_display_box_follows_crop_box_and_page_rotation(
    pdf: pikepdf.Pdf, rotate: int, expected: tuple[float, ...], turn: int
) -> None:
    page(pdf, "50 0 0 70 50 60 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, Rotate=rotate,
         CropBox=Array([20, 10, 260, 170]))  # fmt: skip
    draw = walk(pdf).draws[0]
    assert draw.display_bbox == pytest.approx(expected)
    assert draw.turn == turn


@pytest.mark.parametrize(
    ("matrix", "turn", "mirrored"),
    [("9 0 0 9", 0, False), ("0 -9 9 0", 1, False), ("-9 0 0 -9", 2, False), ("0 9 -9 0", 3, False),
     ("-9 0 0 9", 0, True), ("9 0 0 -9", 2, True), ("0 9 9 0", 1, True), ("0 -9 -9 0", 3, True)],
)  # fmt: skip
def test_turn_and_mirror_of_all_eight_orientations(pdf: pikepdf.Pdf, matrix: str, turn: int, mirrored: bool) -> None:
    page(pdf, f"{matrix} 100 100 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert (draw.turn, draw.mirrored, Flag.MIRRORED in draw.flags) == (turn, mirrored, mirrored)


def test_a_clip_rectangle_tells_the_visible_part_exactly(pdf: pikepdf.Pdf) -> None:
    page(pdf, "20 30 40 20 re W n 80 0 0 40 0 20 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert draw.visible == pytest.approx(0.25)
    assert draw.crop == pytest.approx((0.25, 0.25, 0.75, 0.75))
    assert draw.flags == {Flag.CLIPPED}


def test_a_turned_clip_rectangle_is_exact_too(pdf: pikepdf.Pdf) -> None:
    page(pdf, "q .70710678 .70710678 -.70710678 .70710678 50 0 cm 0 0 70.710678 70.710678 re W n Q "
              ".70710678 .70710678 -.70710678 .70710678 50 0 cm 0 0 70.710678 70.710678 re W n "
              ".70710678 -.70710678 .70710678 .70710678 -35.355339 35.355339 cm 100 0 0 100 0 0 cm /A Do",
         {"XObject": xobjects(A=picture(pdf))})  # fmt: skip
    draw = walk(pdf).draws[0]
    assert draw.visible == pytest.approx(0.5, abs=1e-6)
    assert Flag.CLIP_APPROXIMATE not in draw.flags


def test_a_round_clip_is_taken_by_its_box_and_said_so(pdf: pikepdf.Pdf) -> None:
    page(pdf, "0 0 m 10 0 20 10 20 20 c 0 20 l h W n 40 0 0 40 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert draw.visible == pytest.approx(0.25)
    assert draw.flags == {Flag.CLIPPED, Flag.CLIP_APPROXIMATE}


def test_a_picture_outside_the_crop_box_is_not_shown(pdf: pikepdf.Pdf) -> None:
    page(pdf, "30 0 0 20 260 5 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, CropBox=Array([50, 50, 200, 150]))
    draw = walk(pdf).draws[0]
    assert (draw.shown, draw.visible, draw.flags) == (False, 0.0, {Flag.NOT_VISIBLE})


def test_restoring_the_state_undoes_clip_and_matrix(pdf: pikepdf.Pdf) -> None:
    page(pdf, "q 0 0 5 5 re W n 2 0 0 2 0 0 cm Q 10 0 0 10 0 0 cm /A Do Q Q", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert (draw.bbox, draw.visible) == ((0, 0, 10, 10), 1.0)


def test_the_box_of_a_form_clips(pdf: pikepdf.Pdf) -> None:
    small = form(pdf, "40 0 0 40 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, BBox=Array([0, 0, 20, 40]))
    page(pdf, "/F Do", {"XObject": xobjects(F=small)})
    assert walk(pdf).draws[0].visible == pytest.approx(0.5)


def test_a_stencil_carries_the_colour_it_is_painted_with(pdf: pikepdf.Pdf) -> None:
    page(pdf, "q 9 0 0 9 0 0 cm /A Do Q 1 0 0 rg 9 0 0 9 20 0 cm /A Do", {"XObject": xobjects(A=stencil(pdf))})
    black, red = walk(pdf).draws
    assert black.kind is red.kind is Kind.STENCIL
    assert (black.paint.space, black.paint.components) == (Name.DeviceGray, (0.0,))
    assert (red.paint.space, red.paint.components) == (Name.DeviceRGB, (1.0, 0.0, 0.0))


def test_an_external_picture_is_refused_not_fetched(pdf: pikepdf.Pdf) -> None:
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, F=pikepdf.String("elsewhere.jpg")))})
    assert walk(pdf).draws[0].refused is Reason.EXTERNAL_REFERENCE


@pytest.mark.parametrize("content", ["/Gone Do", "/N Do", "/S Do", "1 0 cm /A Do", "(unclosed"])
def test_nonsense_draws_nothing_and_loses_nothing(pdf: pikepdf.Pdf, content: str) -> None:
    page(pdf, "q 9 0 0 9 0 0 cm /A Do Q\n" + content, {"XObject": Dictionary({
        "/A": picture(pdf), "/N": pdf.make_indirect(Dictionary()),
        "/S": pdf.make_indirect(Stream(pdf, b""))})})  # fmt: skip
    found = walk(pdf)
    assert boxes(found)[0] == (0, 0, 9, 9)
    assert found.reason is None


def test_a_bad_line_costs_only_itself(pdf: pikepdf.Pdf) -> None:
    page(pdf, b"q 9 0 0 9 0 0 cm /A Do Q\n[(a)-7(b -j\n)]TJ [ m0 ) 5-j ]TJ\nq 9 0 0 9 20 0 cm /A Do Q",
         {"XObject": xobjects(A=picture(pdf))})  # fmt: skip
    assert boxes(walk(pdf)) == [(0, 0, 9, 9), (20, 0, 29, 9)]


def test_content_in_several_streams_is_one(pdf: pikepdf.Pdf) -> None:
    made = page(pdf, "", {"XObject": xobjects(A=picture(pdf))})
    made.Contents = Array([Stream(pdf, b"q 9 0 0 9"), Stream(pdf, b"5 5 cm"), Stream(pdf, b"/A Do Q")])
    assert boxes(walk(pdf)) == [(5, 5, 14, 14)]


def test_page_labels_are_the_printed_ones(pdf: pikepdf.Pdf) -> None:
    for _ in range(6):
        page(pdf, "")
    pdf.Root.PageLabels = Dictionary(Nums=Array([
        0, Dictionary(S=Name.r), 2, Dictionary(S=Name.D, St=7), 4, Dictionary(P="A-", S=Name.A, St=27),
        5, Dictionary()]))  # fmt: skip
    assert [walk(pdf, number).label for number in range(1, 7)] == ["i", "ii", "7", "8", "A-AA", None]


@pytest.mark.parametrize(
    ("limits", "reason"),
    [({"placements": 3}, Reason.PLACEMENT_BUDGET_EXCEEDED), ({"operators": 5}, Reason.CONTENT_BUDGET_EXCEEDED),
     ({"content_bytes": 20}, Reason.CONTENT_BUDGET_EXCEEDED)],
)  # fmt: skip
def test_a_page_over_a_budget_says_which_and_is_not_counted(
    pdf: pikepdf.Pdf, limits: dict[str, int], reason: Reason
) -> None:
    page(pdf, "q 9 0 0 9 0 0 cm /A Do Q\n" * 5, {"XObject": xobjects(A=picture(pdf))})
    found = walk(pdf, **limits)
    assert (found.reason, found.counted) == (reason, False)


def test_a_bomb_as_content_ends_at_the_budget(pdf: pikepdf.Pdf) -> None:
    import tracemalloc
    import zlib

    packer = zlib.compressobj(9)
    bomb = b"".join(packer.compress(b" " * 1_000_000) for _ in range(100)) + packer.flush()
    made = page(pdf, "")
    made.Contents.write(bomb, filter=Name.FlateDecode)
    tracemalloc.start()
    found = walk(pdf, content_bytes=1_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.reason is Reason.CONTENT_BUDGET_EXCEEDED
    assert peak < 10_000_000
