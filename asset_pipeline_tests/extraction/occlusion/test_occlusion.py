"""The flag ``occluded``: at least a hundredth of the box lies under something opaque that is painted later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name

from asset_pipeline.extraction.pdf.occlusion import covered_share
from asset_pipeline.model import Page
from asset_pipeline_tests.extraction.occlusion.conftest import PICTURE, Occluded, form, gray

BAR = "60 60 20 20 re f\n"


def test_a_picture_with_nothing_over_it_is_not_occluded(occluded: Occluded) -> None:
    assert occluded(PICTURE) == [False]


def test_a_filled_box_over_a_picture_occludes_it(occluded: Occluded) -> None:
    assert occluded(PICTURE + BAR) == [True]


def test_what_is_painted_before_the_picture_does_not_count(occluded: Occluded) -> None:
    assert occluded(BAR + PICTURE) == [False]


@pytest.mark.parametrize(("side", "hidden"), [(9.9, False), (10.0, True), (10.1, True)])
def test_a_hundredth_of_the_box_is_the_threshold(occluded: Occluded, side: float, hidden: bool) -> None:
    assert occluded(f"{PICTURE} 60 60 {side} {side} re f") == [hidden]


def test_small_marks_add_up_and_marks_over_each_other_count_once(occluded: Occluded) -> None:
    apart = "".join(f"{60 + 12 * number} 60 6 6 re f\n" for number in range(3))
    assert occluded(PICTURE + apart) == [True]
    assert occluded(PICTURE + "60 60 6 6 re f\n" * 9) == [False]


def test_visible_ignores_what_lies_over_the_picture(page_of: Callable[..., Page]) -> None:
    (row,) = page_of(PICTURE + "40 40 200 200 re f").placements
    assert row.visible == 1 and row.status == "archived"


def test_a_later_picture_occludes_an_earlier_one(occluded: Occluded) -> None:
    assert occluded(PICTURE + "q 60 0 0 60 120 120 cm /Im1 Do Q") == [True, False]
    assert occluded(PICTURE + "q 60 0 0 60 151 50 cm /Im1 Do Q") == [False, False]


def test_a_picture_with_transparent_pixels_does_not_count(occluded: Occluded) -> None:
    def masked(pdf: pikepdf.Pdf, page: Any) -> None:
        page.Resources.XObject.Im1 = gray(pdf, 200, SMask=gray(pdf, 128))

    assert occluded(PICTURE + "q 60 0 0 60 60 60 cm /Im1 Do Q", masked) == [False, False]


@pytest.mark.parametrize("state", ["/Half", "/Multiply"])
def test_what_lets_something_through_does_not_count(occluded: Occluded, state: str) -> None:
    assert occluded(f"{PICTURE} q {state} gs {BAR} Q") == [False]
    assert occluded(f"{PICTURE} q {state} gs q 60 0 0 60 60 60 cm /Im1 Do Q Q") == [False, False]
    assert occluded(f"{PICTURE} q {state} gs /Full gs {BAR} Q") == [True]
    assert occluded(f"{PICTURE} q {state} gs Q {BAR}") == [True]


def test_a_group_drawn_half_transparent_does_not_count_whatever_it_sets_itself(occluded: Occluded) -> None:
    def group(pdf: pikepdf.Pdf, page: Any) -> None:
        page.Resources.XObject.F = form(pdf, f"/Full gs {BAR}", Group=Dictionary(S=Name.Transparency))

    assert occluded(PICTURE + "/Half gs /F Do", group) == [False]


def test_fills_in_forms_and_annotations_count(occluded: Occluded) -> None:
    def with_form(pdf: pikepdf.Pdf, page: Any) -> None:
        page.Resources.XObject.F = form(pdf, BAR)

    def with_annotation(pdf: pikepdf.Pdf, page: Any) -> None:
        look = form(pdf, "0 0 40 40 re f", BBox=Array([0, 0, 40, 40]))
        stamp = Dictionary(Type=Name.Annot, Subtype=Name.Stamp, Rect=[60, 60, 100, 100], AP=Dictionary(N=look))
        page.Annots = Array([pdf.make_indirect(stamp)])

    assert occluded(PICTURE + "/F Do", with_form) == [True]
    assert occluded("/F Do " + PICTURE, with_form) == [False]
    assert occluded("/F Do " + PICTURE + "/F Do", with_form) == [True]
    assert occluded(PICTURE, with_annotation) == [True]


def test_only_what_the_clip_lets_through_counts(occluded: Occluded) -> None:
    assert occluded(f"{PICTURE} q 200 200 20 20 re W n 50 50 100 100 re f Q") == [False]
    assert occluded(f"{PICTURE} q 60 60 20 20 re W n 0 0 300 300 re f Q") == [True]
    assert occluded(f"{PICTURE} q 60 60 5 5 re W n 0 0 300 300 re f Q") == [False]


def test_a_hole_in_a_frame_shows_the_picture(occluded: Occluded) -> None:
    frame = "40 40 120 120 re 50.2 50.2 99.6 99.6 re"
    assert occluded(f"{PICTURE} {frame} f*") == [False]
    assert occluded(f"{PICTURE} {frame} f") == [True]
    backwards = "40 40 120 120 re 50.2 50.2 m 50.2 149.8 l 149.8 149.8 l 149.8 50.2 l h"
    assert occluded(f"{PICTURE} {backwards} f") == [False]


def test_round_and_slanted_fills_count_by_their_own_outline(occluded: Occluded) -> None:
    assert occluded(f"{PICTURE} 60 60 m 80 60 l 60 80 l f") == [True]  # 200 square points of 10000
    assert occluded(f"{PICTURE} 60 60 m 72 60 l 60 72 l f") == [False]  # 72, though its box has 144
    round_spot = "60 66 m 60 62 63 60 66 60 c 69 60 72 62 72 66 c 72 69 69 72 66 72 c 63 72 60 69 60 66 c f"
    assert occluded(PICTURE + round_spot) == [True]


def test_strokes_hidden_layers_and_soft_masks_do_not_count(occluded: Occluded) -> None:
    def layered(pdf: pikepdf.Pdf, page: Any) -> None:
        layer = pdf.make_indirect(Dictionary(Type=Name.OCG, Name="off"))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary(OFF=Array([layer])))
        page.Resources.Properties = Dictionary({"/L": layer})

    assert occluded(f"{PICTURE} 60 60 20 20 re S") == [False]
    assert occluded(f"{PICTURE} /OC /L BDC {BAR} EMC", layered) == [False]


def test_turned_pictures_and_turned_pages_are_measured_where_they_lie(occluded: Occluded) -> None:
    turned = "q 70.7 70.7 -70.7 70.7 150 50 cm /Im0 Do Q "

    def rotate(pdf: pikepdf.Pdf, page: Any) -> None:
        page.Rotate = 90

    assert occluded(turned + "80 50 20 20 re f") == [False]  # inside its box, beside the picture
    assert occluded(turned + "140 110 20 20 re f") == [True]
    assert occluded(PICTURE + BAR, rotate) == [True]


def test_the_covered_share_of_overlapping_shapes_is_exact_for_boxes() -> None:
    def box(left: float, bottom: float, right: float, top: float) -> list[tuple[tuple[float, float], ...]]:
        return [((left, bottom), (right, bottom), (right, top), (left, top))]

    assert covered_share([(box(0, 0, 0.5, 0.5), False), (box(0.25, 0.25, 0.75, 0.75), False)]) == pytest.approx(0.4375)
    assert covered_share([(box(-1, 0.2, 2, 0.3), False), (box(0.4, -5, 0.5, 5), True)]) == pytest.approx(0.19)
    assert covered_share([([((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))], False)]) == pytest.approx(0.5, abs=1e-3)
    assert covered_share([]) == 0


def test_a_page_full_of_marks_over_a_picture_is_read_in_bounded_time(occluded: Occluded) -> None:
    dots = "".join(f"{50 + number % 100} {50 + number // 100 % 100} .05 .05 re f\n" for number in range(20_000))
    assert occluded(PICTURE + dots) == [False]
