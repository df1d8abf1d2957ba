"""Spreadsheets: pictures by sheet, sized as the drawing or the grid says."""

from __future__ import annotations

import pytest

from asset_pipeline.model import Kind, Status
from asset_pipeline_tests.extraction.ooxml.conftest import Reader
from asset_pipeline_tests.extraction.ooxml.making import NAMESPACES, anchor, pic, picture, relations, xlsx

GRID = (
    '<sheetFormatPr defaultRowHeight="20"/><cols><col min="2" max="2" width="20"/></cols>'
    '<sheetData><row r="3" ht="60"><c r="A3"><v>1</v></c></row></sheetData>'
)
NO_SIZE = "<a:xfrm/>"


def test_pictures_come_by_sheet_in_the_order_of_the_tabs(read: Reader) -> None:
    found = read("xlsx", xlsx([anchor(pic("xdr")), "", anchor(pic("xdr"))]))
    assert [(page.unit, page.label, page.drawn) for page in found.answer.pages] == [
        ("sheet", "Tab 1", 1),
        ("sheet", "Tab 2", 0),
        ("sheet", "Tab 3", 1),
    ]
    assert found.rows[0].print_mm == (40.0, 30.0)


@pytest.mark.parametrize("state", ["hidden", "veryHidden"])
def test_a_hidden_sheet_is_read_and_not_shown(read: Reader, state: str) -> None:
    assert read("xlsx", xlsx([anchor(pic("xdr"))], states={1: state})).rows[0].status is Status.NOT_SHOWN


def test_an_anchor_of_cells_alone_is_measured_with_the_grid(read: Reader) -> None:
    (row,) = read("xlsx", xlsx([anchor(pic("xdr", at=NO_SIZE))], sheet=GRID)).rows
    left, top, right, bottom = row.display_bbox
    assert (top, bottom - top) == (20.0, 3 * 20 + 60)
    assert right - left == pytest.approx(20 * 5.25 + 8.43 * 5.25 + 3.75)


@pytest.mark.parametrize("kind", ["oneCellAnchor", "absoluteAnchor"])
def test_an_anchor_with_a_size_gives_it_to_a_picture_without(read: Reader, kind: str) -> None:
    place = '<xdr:pos x="0" y="0"/><xdr:ext cx="1270000" cy="635000"/>'
    (row,) = read("xlsx", xlsx([anchor(pic("xdr", at=NO_SIZE), kind=kind, place=place)])).rows
    assert row.print_mm == (35.28, 17.64)


def test_the_background_of_a_sheet_is_one_pattern(read: Reader) -> None:
    found = read("xlsx", xlsx([""], sheet='<picture r:id="rId1"/>'))
    assert [row.kind for row in found.rows] == [Kind.PATTERN]


def test_an_embedded_objects_preview_is_told_once(read: Reader) -> None:
    entry = (
        '<oleObjects><mc:AlternateContent><mc:Choice Requires="x14"><oleObject r:id="rId70"><objectPr r:id="rId1">'
        "<anchor><from><xdr:col>1</xdr:col><xdr:row>1</xdr:row></from><to><xdr:col>2</xdr:col><xdr:row>2</xdr:row></to>"
        '</anchor></objectPr></oleObject></mc:Choice><mc:Fallback><oleObject r:id="rId70"/></mc:Fallback>'
        '</mc:AlternateContent></oleObjects><legacyDrawing r:id="rId80"/>'
    )
    old = f'<xml {NAMESPACES}><v:shape style="width:9pt;height:9pt"><v:imagedata o:relid="rId1"/></v:shape></xml>'
    extra = {
        "xl/drawings/vml1.vml": old,
        "xl/drawings/_rels/vml1.vml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    named = {"rId80": ("vmlDrawing", "../drawings/vml1.vml")}
    assert len(read("xlsx", xlsx([""], sheet=entry, extra=extra, named=named)).rows) == 1


def test_a_picture_in_the_page_header_is_found(read: Reader) -> None:
    old = f'<xml {NAMESPACES}><v:shape style="width:72pt;height:36pt"><v:imagedata o:relid="rId1"/></v:shape></xml>'
    extra = {
        "xl/drawings/vml1.vml": old,
        "xl/drawings/_rels/vml1.vml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    named = {"rId80": ("vmlDrawing", "../drawings/vml1.vml")}
    found = read("xlsx", xlsx([""], sheet='<legacyDrawingHF r:id="rId80"/>', extra=extra, named=named))
    assert [row.print_mm for row in found.rows] == [(25.4, 12.7)]


def test_anchors_written_twice_for_older_programs_are_drawn_once(read: Reader) -> None:
    media = {"image1.png": picture(), "image2.png": picture(seed=2)}
    drawing = (
        f'<mc:AlternateContent><mc:Choice Requires="a14">{anchor(pic("xdr"))}</mc:Choice>'
        f"<mc:Fallback>{anchor(pic('xdr', 'rId2'))}</mc:Fallback></mc:AlternateContent>"
    )
    assert len(read("xlsx", xlsx([drawing], media=media)).rows) == 1
