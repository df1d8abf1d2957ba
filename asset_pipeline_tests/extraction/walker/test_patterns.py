"""Tiling patterns: one placement a picture, where it is seen."""

from __future__ import annotations

from typing import Any

import pikepdf
import pytest
from pages import boxes, form, page, picture, stencil, walk, xobjects
from pikepdf import Array, Dictionary, Name, Stream

from asset_pipeline.model import Flag, Kind
from asset_pipeline.reasons import Reason


def _pattern(pdf: pikepdf.Pdf, content: str, resources: Dictionary, size: int = 8, **entries: Any) -> pikepdf.Object:
    tile = Stream(pdf, content.encode())
    tile.PatternType, tile.PaintType, tile.XStep, tile.YStep = 1, 1, size, size
    tile.BBox, tile.Resources = Array([0, 0, size, size]), resources
    for key, value in entries.items():
        tile["/" + key] = value
    return pdf.make_indirect(tile)


def _of_one(pdf: pikepdf.Pdf, size: int = 8, **entries: Any) -> pikepdf.Object:
    return _pattern(
        pdf, f"{size} 0 0 {size} 0 0 cm /A Do", Dictionary(XObject=xobjects(A=picture(pdf))), size, **entries
    )


def test_a_picture_used_as_a_fill_lies_where_it_is_painted_and_is_cropped_there(pdf: pikepdf.Pdf) -> None:
    made = _of_one(pdf, 100, Matrix=Array([1, 0, 0, 1, 50, 20]))
    page(pdf, "/Pattern cs /P scn 50 20 50 100 re f", {"Pattern": Dictionary(P=made)})
    draw = walk(pdf).draws[0]
    assert draw.bbox == (50, 20, 150, 120)
    assert draw.visible == pytest.approx(0.5)
    assert draw.crop == pytest.approx((0, 0, 0.5, 1))
    assert draw.flags == {Flag.CLIPPED}


def test_the_tile_that_is_seen_stands_for_all(pdf: pikepdf.Pdf) -> None:
    made = _of_one(pdf, 100)
    page(pdf, "/Pattern cs /P scn 100 100 100 100 re f", {"Pattern": Dictionary(P=made)})
    draw = walk(pdf).draws[0]
    assert (draw.bbox, draw.visible) == ((100, 100, 200, 200), 1.0)


def test_a_pattern_painted_often_counts_once(pdf: pikepdf.Pdf) -> None:
    made = _of_one(pdf)
    page(pdf, "/Pattern cs /P scn " + "10 20 30 40 re f " * 5 + "BT /F 9 Tf (a) Tj ET",
         {"Pattern": Dictionary(P=made)})  # fmt: skip
    assert boxes(walk(pdf)) == [(10, 20, 40, 60)]


@pytest.mark.parametrize(
    "paint",
    ["/Pattern CS /P SCN 10 w 0 50 m 100 50 l S", "/Pattern cs /P scn BT (a) Tj ET",
     "/Pattern CS /P SCN BT 1 Tr (a) Tj ET", "/Pattern cs /P scn 9 9 9 9 re B*"],
)  # fmt: skip
def test_strokes_and_text_use_patterns_too(pdf: pikepdf.Pdf, paint: str) -> None:
    page(pdf, paint, {"Pattern": Dictionary(P=_of_one(pdf))})
    found = walk(pdf)
    assert [(draw.kind, draw.shown) for draw in found.draws] == [(Kind.PATTERN, True)]


def test_a_stencil_painted_with_a_pattern_brings_the_patterns_pictures(pdf: pikepdf.Pdf) -> None:
    page(pdf, "/Pattern cs /P scn 40 0 0 40 10 10 cm /S Do",
         {"Pattern": Dictionary(P=_of_one(pdf)), "XObject": xobjects(S=stencil(pdf))})  # fmt: skip
    mask, filled = walk(pdf).draws
    assert (mask.kind, mask.paint.pattern) == (Kind.STENCIL, True)
    assert (filled.kind, filled.bbox) == (Kind.PATTERN, (10, 10, 50, 50))


def test_a_pattern_only_painted_out_of_sight_is_listed_as_not_shown(pdf: pikepdf.Pdf) -> None:
    page(pdf, "/Pattern cs /P scn 900 900 9 9 re f", {"Pattern": Dictionary(P=_of_one(pdf))})
    draw = walk(pdf).draws[0]
    assert (draw.shown, draw.flags) == (False, {Flag.NOT_VISIBLE})


def test_a_pattern_painted_out_of_sight_and_in_sight_is_shown(pdf: pikepdf.Pdf) -> None:
    page(pdf, "/Pattern cs /P scn 900 900 9 9 re f 8 8 8 8 re f", {"Pattern": Dictionary(P=_of_one(pdf))})
    assert [(draw.bbox, draw.shown) for draw in walk(pdf).draws] == [((8, 8, 16, 16), True)]


def test_pattern_space_hangs_on_the_form_that_uses_it_not_on_the_current_matrix(pdf: pikepdf.Pdf) -> None:
    inner = form(pdf, "q 3 0 0 3 0 0 cm /Pattern cs /P scn 0 0 30 30 re f Q",
                 {"Pattern": Dictionary(P=_of_one(pdf, 50))}, Matrix=Array([1, 0, 0, 1, 40, 40]))  # fmt: skip
    page(pdf, "2 0 0 2 0 0 cm /F Do", {"XObject": xobjects(F=inner)})
    draw = walk(pdf).draws[0]
    assert draw.matrix == (100, 0, 0, 100, 80, 80)
    assert draw.bbox == (80, 80, 260, 260)


def test_a_pattern_in_a_pattern_and_one_that_paints_itself_end_well(pdf: pikepdf.Pdf) -> None:
    inner = _of_one(pdf)
    outer = _pattern(
        pdf, "/Pattern cs /I scn 0 0 9 9 re f /O scn 0 0 9 9 re f", Dictionary(Pattern=Dictionary(I=inner)), 40
    )
    outer.Resources.Pattern.O = outer
    page(pdf, "/Pattern cs /O scn 0 0 40 40 re f", {"Pattern": Dictionary(O=outer)})
    found = walk(pdf)
    assert [draw.kind for draw in found.draws] == [Kind.PATTERN]
    assert found.notes <= {Reason.STRUCTURE_LOOP}


def test_shadings_are_not_walked(pdf: pikepdf.Pdf) -> None:
    shading = Dictionary(PatternType=2, Shading=Dictionary(ShadingType=2, ColorSpace=Name.DeviceGray))
    page(pdf, "/Pattern cs /P scn 40 0 0 40 0 0 cm /S Do 0 0 9 9 re f",
         {"Pattern": Dictionary(P=pdf.make_indirect(shading)), "XObject": xobjects(S=stencil(pdf))})  # fmt: skip
    assert [(draw.kind, draw.paint.pattern) for draw in walk(pdf).draws] == [(Kind.STENCIL, True)]
