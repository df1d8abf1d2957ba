"""Spreadsheets: pictures by sheet, sized as the drawing or the grid says."""

from __future__ import annotations

import string
import time

import pytest

from asset_pipeline.model import Kind, Status
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.extraction.ooxml.conftest import Reader
from asset_pipeline_tests.extraction.ooxml.making import (
    NAMESPACES,
    anchor,
    blip,
    cell_values,
    pic,
    picture,
    relations,
    xlsx,
)

GRID = (
    '<sheetFormatPr defaultRowHeight="20"/><cols><col min="2" max="2" width="20"/></cols>'
    '<sheetData><row r="3" ht="60"><c r="A3"><v>1</v></c></row></sheetData>'
)
NO_SIZE = "<a:xfrm/>"
LETTERS = string.ascii_uppercase


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


def test_columns_are_as_wide_as_each_range_says(read: Reader) -> None:
    default = 8.43 * 5.25 + 3.75
    ranges = ((3, 4, "10"), (1, 1, "4"), (9, 5, "99"), (6, 16384, "0"), (20, 20, "1"))
    wide = "".join(f'<col min="{first}" max="{last}" width="{width}"/>' for first, last, width in ranges)
    cells = "".join(f'<c r="{column}1" vm="1"/>' for column in "ABCDEFGZ")
    body = f'<cols>{wide}</cols><sheetData><row r="1">{cells}</row></sheetData>'
    rows = read("xlsx", xlsx([""], sheet=body, extra=cell_values(), named={})).rows
    each = dict(zip("ABCDEFGHIJ", (21.0, default, 52.5, 52.5, default, 0.0, 0.0, 0.0, 0.0, 0.0), strict=True))
    for row, column in zip(rows, "ABCDEF", strict=False):
        left, _, right, _ = row.display_bbox
        before = sum(width for name, width in each.items() if name < column)
        assert (left + right) / 2 == pytest.approx(before + each[column] / 2, abs=1e-3), column


@pytest.mark.parametrize("kind", ["oneCellAnchor", "absoluteAnchor"])
def test_an_anchor_with_a_size_gives_it_to_a_picture_without(read: Reader, kind: str) -> None:
    place = '<xdr:pos x="0" y="0"/><xdr:ext cx="1270000" cy="635000"/>'
    (row,) = read("xlsx", xlsx([anchor(pic("xdr", at=NO_SIZE), kind=kind, place=place)])).rows
    assert row.print_mm == (35.28, 17.64)


def test_the_background_of_a_sheet_is_one_pattern(read: Reader) -> None:
    found = read("xlsx", xlsx([""], sheet='<picture r:id="rId1"/>'))
    assert [(row.kind, row.status) for row in found.rows] == [(Kind.PATTERN, Status.ARCHIVED)]


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


def test_pictures_of_notes_beside_an_embedded_object_are_not_taken_for_its_preview(read: Reader) -> None:
    entry = (
        '<oleObjects><oleObject shapeId="1025" r:id="rId70"><objectPr r:id="rId1"/></oleObject></oleObjects>'
        '<legacyDrawing r:id="rId80"/>'
    )
    style = 'style="width:72pt;height:36pt"'
    old = (
        f'<xml {NAMESPACES}><v:shape id="Object" o:spid="_x0000_s1025" {style}><v:imagedata o:relid="rId1"/></v:shape>'
        f'<v:shape id="_x0000_s1026" {style}><v:fill type="frame" o:relid="rId1"/></v:shape></xml>'
    )
    extra = {
        "xl/drawings/vml1.vml": old,
        "xl/drawings/_rels/vml1.vml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    named = {"rId80": ("vmlDrawing", "../drawings/vml1.vml")}
    found = read("xlsx", xlsx([""], sheet=entry, extra=extra, named=named))
    assert [row.print_mm for row in found.rows] == [(0.0, 0.0), (25.4, 12.7)]


def test_pictures_in_a_chart_lie_where_its_anchor_does(read: Reader) -> None:
    fill = f"<a:blipFill>{blip()}<a:stretch/></a:blipFill>"
    nothing = '<xdr:xfrm><a:off x="0" y="0"/><a:ext cx="0" cy="0"/></xdr:xfrm>'
    frame = (
        f'<xdr:graphicFrame>{nothing}<a:graphic><a:graphicData uri="x"><c:chart r:id="rId70"/></a:graphicData>'
        "</a:graphic></xdr:graphicFrame>"
    )
    extra = {
        "xl/drawings/_rels/drawing1.xml.rels": relations({"rId70": ("chart", "../charts/chart1.xml")}),
        "xl/charts/chart1.xml": f"<c:chartSpace {NAMESPACES}><c:spPr>{fill}</c:spPr></c:chartSpace>",
        "xl/charts/_rels/chart1.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    chart, beside = (
        read("xlsx", xlsx([anchor(frame)], extra=extra)).rows,
        read("xlsx", xlsx([anchor(pic("xdr", at=""))])),
    )
    assert [row.bbox for row in chart] == [row.bbox for row in beside.rows]


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


def cells(*written: str, after: str = "") -> str:
    """A row of 60 points and a column of 105 points at B2, with ``written`` in it."""
    return (
        '<cols><col min="2" max="2" width="20"/></cols>'
        f'<sheetData><row r="2" ht="60">{"".join(written)}</row></sheetData>{after}'
    )


PLACED = '<c r="B2" t="e" vm="{}"><v>#VALUE!</v></c>'


def test_a_picture_placed_in_a_cell_fits_into_it_in_the_middle(read: Reader) -> None:
    found = read("xlsx", xlsx([""], sheet=cells(PLACED.format(1)), extra=cell_values(), named={}))
    (row,) = found.rows
    assert (row.status, row.alt, found.file(row.picture).read_bytes()) == (Status.ARCHIVED, "The quay", picture())
    default = 8.43 * 5.25 + 3.75
    left = default + (20 * 5.25 - 80) / 2
    assert row.display_bbox == pytest.approx((left, 15, left + 80, 75), abs=1e-3)


def test_a_picture_in_merged_cells_has_them_all(read: Reader) -> None:
    merged = '<mergeCells><mergeCell ref="B2:B9"/></mergeCells>'
    found = read("xlsx", xlsx([""], sheet=cells(PLACED.format(1), after=merged), extra=cell_values()))
    assert found.rows[0].print_mm == pytest.approx((105 / 72 * 25.4, 105 * 0.75 / 72 * 25.4), abs=0.01)


def test_a_picture_fetched_by_a_formula_is_the_one_that_the_workbook_keeps(read: Reader) -> None:
    kept = '<c r="B2" t="e" vm="2"><f>_xlfn.IMAGE("https://example.org/quay.png")</f><v>#VALUE!</v></c>'
    found = read("xlsx", xlsx([""], sheet=cells(kept), extra=cell_values()))
    assert [found.file(row.picture).read_bytes() for row in found.rows] == [picture()]


def test_a_fetched_picture_that_is_not_kept_is_an_external_reference(read: Reader) -> None:
    (row,) = read("xlsx", xlsx([""], sheet=cells(PLACED.format(3)), extra=cell_values())).rows
    assert (row.status, row.reason) == (Status.QUARANTINED, Reason.EXTERNAL_REFERENCE)


def test_values_that_are_no_pictures_are_passed_over(read: Reader) -> None:
    other = [PLACED.format(number) for number in (0, 4, 5, 99, "x", "9" * 5000)]
    assert read("xlsx", xlsx([""], sheet=cells(*other), extra=cell_values())).rows == []


def test_a_picture_in_a_hidden_row_is_not_shown_and_pictures_on_the_sheet_come_after(read: Reader) -> None:
    row = f'<sheetData><row r="2" hidden="1">{PLACED.format(1)}</row></sheetData>'
    found = read("xlsx", xlsx([anchor(pic("xdr"))], sheet=row, extra=cell_values()))
    assert [row.status for row in found.rows] == [Status.NOT_SHOWN, Status.ARCHIVED]


def test_values_that_cannot_be_read_lose_no_other_sheet(read: Reader) -> None:
    extra = cell_values() | {"xl/richData/rdrichvalue.xml": "<rvData><rv"}
    workbook = xlsx(["", anchor(pic("xdr"))], extra=extra)
    assert [page.drawn for page in read("xlsx", workbook).answer.pages] == [0, 1]
    one, two = read("xlsx", xlsx(["", ""], sheet=cells(PLACED.format(1)), extra=extra)).answer.pages
    assert (one.drawn, one.reason, two.reason) == (None, Reason.MALFORMED_DOCUMENT, Reason.MALFORMED_DOCUMENT)


def test_the_time_for_cells_grows_with_their_number_alone(read: Reader) -> None:
    columns = [f"{first}{second}{third}" for first in "AB" for second in LETTERS for third in LETTERS]
    written = "".join(f'<c r="{column}1" vm="1"/>' for column in columns)
    wide = '<col min="1" max="2" width="3"/>' * 100_000
    values = cell_values()
    many = '<metadataType name="other"/>' * 50_000
    named = '<bk><rc t="1" v="0"/></bk>' * 50_000
    values["xl/metadata.xml"] = values["xl/metadata.xml"].replace("</metadataTypes>", f"{many}</metadataTypes>")
    values["xl/metadata.xml"] = values["xl/metadata.xml"].replace("</valueMetadata>", f"{named}</valueMetadata>")
    body = f'<cols>{wide}</cols><sheetData><row r="1">{written}</row></sheetData>'
    workbook = xlsx([""], sheet=body, extra=values)
    began = time.process_time()
    found = read("xlsx", workbook)
    assert time.process_time() - began < 20  # it was minutes
    assert found.answer.pages[0].drawn == len(columns)
