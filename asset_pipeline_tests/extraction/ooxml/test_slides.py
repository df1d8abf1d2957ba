"""Presentations: what each slide shows, its master and layout included."""

from __future__ import annotations

import numpy as np
import pytest

from asset_pipeline import account
from asset_pipeline.model import Flag, Kind, Status
from asset_pipeline_tests.extraction.ooxml.conftest import Reader
from asset_pipeline_tests.extraction.ooxml.making import CM, NAMESPACES, blip, pic, picture, pptx, relations, transform

TWO = {"image1.png": picture(), "image2.png": picture(seed=2)}
FILL = f"<a:blipFill>{blip()}<a:stretch><a:fillRect/></a:stretch></a:blipFill>"


def shape(properties: str, inside: str = "") -> str:
    return f"<p:sp><p:nvSpPr><p:nvPr>{inside}</p:nvPr></p:nvSpPr><p:spPr>{properties}</p:spPr></p:sp>"


def test_a_picture_lies_where_the_slide_shows_it(read: Reader) -> None:
    (row,) = read("pptx", pptx([pic("p", at=transform(2, 1, 4, 3), described="The quay")])).rows
    point = CM / 12_700
    assert row.display_bbox == pytest.approx((2 * point, point, 6 * point, 4 * point), abs=1e-3)
    assert row.bbox == pytest.approx((2 * point, 11 * point, 6 * point, 14 * point), abs=1e-3)
    assert (row.alt, row.print_mm) == ("The quay", (40.0, 30.0))


def test_slides_come_in_the_order_of_the_show_with_their_numbers(read: Reader) -> None:
    found = read("pptx", pptx([pic("p"), "", pic("p")]))
    assert [(page.unit, page.label, page.drawn) for page in found.answer.pages] == [
        ("slide", "1", 1),
        ("slide", "2", 0),
        ("slide", "3", 1),
    ]


def test_a_logo_on_the_master_is_on_each_slide_below_its_own_pictures_and_kept_once(read: Reader) -> None:
    found = read("pptx", pptx([pic("p", "rId2")] * 2, media=TWO, master=pic("p"), layout=""))
    first = found.answer.pages[0].placements
    assert [found.file(row.picture).read_bytes() == picture() for row in first] == [True, False]
    pages = account.collapse_repeats(found.answer.pages)
    assert [(page.archived, page.collapsed) for page in pages] == [(2, 0), (0, 2)]


def test_a_slide_without_its_masters_shapes_shows_neither_master_nor_layout(read: Reader) -> None:
    document = pptx(
        [pic("p", "rId2")], media=TWO, master=pic("p"), layout=pic("p"), slide_attributes='showMasterSp="0"'
    )
    assert len(read("pptx", document).rows) == 1


def test_placeholders_of_a_layout_are_not_drawn(read: Reader) -> None:
    assert read("pptx", pptx([""], layout=pic("p", inside='<p:nvPr><p:ph type="pic" idx="1"/></p:nvPr>'))).rows == []


def test_a_picture_in_a_placeholder_lies_where_the_layout_puts_it(read: Reader) -> None:
    layout = shape(transform(1, 1, 8, 6), '<p:ph type="pic" idx="13"/>')
    slide = pic("p", at="", inside='<p:nvPr><p:ph type="pic" idx="13"/></p:nvPr>')
    assert read("pptx", pptx([slide], layout=layout)).rows[0].print_mm == (80.0, 60.0)


def test_a_slide_that_is_skipped_in_the_show_is_read_and_not_shown(read: Reader) -> None:
    found = read("pptx", pptx([pic("p")], slide_attributes='show="0"'))
    (row,) = found.rows
    assert (row.status, row.display, Flag.NOT_VISIBLE in row.flags) == (Status.NOT_SHOWN, None, True)
    assert found.answer.pages[0].not_shown == 1


def test_a_picture_beside_the_slide_is_not_shown(read: Reader) -> None:
    assert read("pptx", pptx([pic("p", at=transform(-9, 0))])).rows[0].status is Status.NOT_SHOWN


def test_a_picture_over_the_edge_is_shown_as_far_as_the_slide_goes(read: Reader) -> None:
    found = read("pptx", pptx([pic("p", at=transform(-2, 0, 4, 3))]))
    (row,) = found.rows
    assert (row.visible, Flag.CLIPPED in row.flags) == (0.5, True)
    assert np.array_equal(found.pixels(row.display), found.pixels(row.picture)[:, 20:])


def test_the_nearest_background_counts_and_hides_the_others(read: Reader) -> None:
    other = FILL.replace("rId1", "rId2")
    backgrounds = {
        "slide1": f"<p:bg><p:bgPr>{FILL}</p:bgPr></p:bg>",
        "master": f"<p:bg><p:bgPr>{other}</p:bgPr></p:bg>",
    }
    found = read("pptx", pptx(["", ""], media=TWO, backgrounds=backgrounds))
    assert [[found.file(row.picture).read_bytes() for row in page.placements] for page in found.answer.pages] == [
        [TWO["image1.png"]],
        [TWO["image2.png"]],
    ]
    assert found.rows[0].print_mm == (200.0, 150.0)


def test_a_background_of_the_theme_is_found(read: Reader) -> None:
    theme = (
        f"<a:theme {NAMESPACES}><a:themeElements><a:fmtScheme><a:bgFillStyleLst><a:solidFill/>{FILL}"
        "</a:bgFillStyleLst></a:fmtScheme></a:themeElements></a:theme>"
    )
    extra = {
        "ppt/theme/theme1.xml": theme,
        "ppt/theme/_rels/theme1.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    backgrounds = {"master": '<p:bg><p:bgRef idx="1002"/></p:bg>'}
    assert len(read("pptx", pptx([""], backgrounds=backgrounds, extra=extra)).rows) == 1


def test_fills_of_shapes_are_pictures_and_tiles_are_one_pattern(read: Reader) -> None:
    tiled = f"{transform()}<a:blipFill>{blip()}<a:tile/></a:blipFill>"
    found = read("pptx", pptx([shape(transform() + FILL) + shape(tiled)]))
    assert [row.kind for row in found.rows] == [Kind.RASTER, Kind.PATTERN]


def test_turns_of_groups_and_of_what_is_in_them_add_up(read: Reader) -> None:
    ext = f'<a:off x="{5 * CM}" y="{5 * CM}"/><a:ext cx="{4 * CM}" cy="{3 * CM}"/>'
    inner = pic("p", at=transform(5, 5, 4, 3, 'rot="5400000"'))
    group = (
        f'<p:grpSp><p:grpSpPr><a:xfrm rot="5400000">{ext}{ext.replace("a:off", "a:chOff").replace("a:ext", "a:chExt")}'
        f"</a:xfrm></p:grpSpPr>{inner}</p:grpSp>"
    )
    found = read("pptx", pptx([group]))
    (row,) = found.rows
    assert np.array_equal(found.pixels(row.display), np.rot90(found.pixels(row.picture), 2))


def test_the_preview_of_an_embedded_object_is_one_picture(read: Reader) -> None:
    preview = f'<p:oleObj r:id="rId60">{pic("p", at=transform(1, 1, 6, 4))}</p:oleObj>'
    frame = (
        f"<p:graphicFrame><p:xfrm><a:off x='0' y='0'/><a:ext cx='{CM}' cy='{CM}'/></p:xfrm><a:graphic><a:graphicData>"
        f'<mc:AlternateContent><mc:Choice Requires="v"><p:oleObj spid="1"/></mc:Choice>'
        f"<mc:Fallback>{preview}</mc:Fallback></mc:AlternateContent></a:graphicData></a:graphic></p:graphicFrame>"
    )
    assert [row.print_mm for row in read("pptx", pptx([frame])).rows] == [(60.0, 40.0)]


def test_the_preview_of_an_object_that_stands_in_an_old_drawing_is_found(read: Reader) -> None:
    frame = (
        f"<p:graphicFrame><p:xfrm><a:off x='0' y='0'/><a:ext cx='{6 * CM}' cy='{4 * CM}'/></p:xfrm><a:graphic>"
        '<a:graphicData uri="x"><p:oleObj spid="_x0000_s1026" r:id="rId60"/></a:graphicData></a:graphic>'
        "</p:graphicFrame>"
    )
    shapes = "".join(
        f'<v:shape id="_x0000_s{number}"><v:imagedata o:relid="rId{id_}"/></v:shape>'
        for number, id_ in ((1025, 2), (1026, 1))
    )
    extra = {
        "ppt/drawings/vml1.vml": f"<xml {NAMESPACES}>{shapes}</xml>",
        "ppt/drawings/_rels/vml1.vml.rels": relations({"rId1": ("image", "../media/image1.png")}),
        "ppt/slides/_rels/slide1.xml.rels": relations({"rId70": ("vmlDrawing", "../drawings/vml1.vml")}),
    }
    (row,) = read("pptx", pptx([frame], extra=extra)).rows
    assert (row.print_mm, row.status) == ((60.0, 40.0), Status.ARCHIVED)


def test_the_picture_of_a_control_is_found(read: Reader) -> None:
    control = f'<p:control r:id="rId60">{pic("p", at=transform(1, 1, 6, 4))}</p:control>'
    both = f'<mc:Choice Requires="v"><p:control spid="1"/></mc:Choice><mc:Fallback>{control}</mc:Fallback>'
    slide = f"<p:controls><mc:AlternateContent>{both}</mc:AlternateContent></p:controls>"
    document = pptx(
        [""], extra={"ppt/slides/slide1.xml": f"<p:sld {NAMESPACES}><p:cSld><p:spTree/>{slide}</p:cSld></p:sld>"}
    )
    assert [row.print_mm for row in read("pptx", document).rows] == [(60.0, 40.0)]


def test_letters_filled_with_a_picture_are_one_placement_a_shape(read: Reader) -> None:
    run = f"<a:r><a:rPr>{FILL}</a:rPr><a:t>word</a:t></a:r>"
    letters = f"<p:sp><p:spPr>{transform()}</p:spPr><p:txBody><a:p>{run}{run}</a:p></p:txBody></p:sp>"
    (row,) = read("pptx", pptx([letters])).rows
    assert Flag.CLIP_APPROXIMATE in row.flags


def test_fills_of_a_chart_and_of_a_table_are_told_with_an_approximate_box(read: Reader) -> None:
    def frame(inside: str) -> str:
        ext = f"<a:off x='0' y='0'/><a:ext cx='{4 * CM}' cy='{3 * CM}'/>"
        return (
            f"<p:graphicFrame><p:xfrm>{ext}</p:xfrm><a:graphic><a:graphicData>{inside}</a:graphicData></a:graphic>"
            "</p:graphicFrame>"
        )

    table = f"<a:tbl><a:tr><a:tc><a:tcPr>{FILL}</a:tcPr></a:tc></a:tr></a:tbl>"
    extra = {
        "ppt/charts/chart1.xml": f"<c:chartSpace {NAMESPACES}><c:spPr>{FILL}</c:spPr></c:chartSpace>",
        "ppt/charts/_rels/chart1.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
        "ppt/slides/_rels/slide1.xml.rels": relations(
            {"rId1": ("image", "../media/image1.png"), "rId70": ("chart", "../charts/chart1.xml")}
        ),
    }
    found = read("pptx", pptx([frame(table) + frame('<c:chart r:id="rId70"/>')], extra=extra))
    assert [Flag.CLIP_APPROXIMATE in row.flags for row in found.rows] == [True, True]


def test_one_unreadable_slide_loses_no_other(read: Reader) -> None:
    found = read("pptx", pptx([pic("p"), pic("p")], extra={"ppt/slides/slide1.xml": "<p:sld"}))
    one, two = found.answer.pages
    assert (one.drawn, one.reason, two.archived) == (None, "malformed_document", 1)


def notes(number: int, shapes: str, *, master: str = "", drawn: bool = True) -> dict[str, str]:
    """Parts that give slide ``number`` notes with ``shapes``; ``master`` is on each notes page."""

    def sheet(tag: str, inside: str) -> str:
        return f"<p:{tag} {NAMESPACES}><p:cSld><p:spTree>{inside}</p:spTree></p:cSld></p:{tag}>"

    pictures = {"rId1": ("image", "../media/image1.png")}
    return {
        f"ppt/slides/_rels/slide{number}.xml.rels": relations(
            {
                "rId1": ("image", "../media/image1.png"),
                "rId90": ("slideLayout", "../slideLayouts/slideLayout1.xml"),
                "rId91": ("notesSlide", f"../notesSlides/notesSlide{number}.xml"),
            }
        ),
        f"ppt/notesSlides/notesSlide{number}.xml": sheet("notes", shapes),
        f"ppt/notesSlides/_rels/notesSlide{number}.xml.rels": relations(
            (pictures if drawn else {}) | {"rId92": ("notesMaster", "../notesMasters/notesMaster1.xml")}
        ),
        "ppt/notesMasters/notesMaster1.xml": sheet("notesMaster", master),
        "ppt/notesMasters/_rels/notesMaster1.xml.rels": relations(pictures if master else {}),
    }


def test_pictures_in_the_notes_of_a_slide_are_told_as_its_notes_behind_all_slides(read: Reader) -> None:
    extra = notes(2, pic("p", at=transform(1, 1))) | notes(3, shape(transform()), drawn=False)
    found = read("pptx", pptx([pic("p"), "", ""], extra=extra))
    assert [(page.unit, page.label, page.drawn) for page in found.answer.pages] == [
        ("slide", "1", 1),
        ("slide", "2", 0),
        ("slide", "3", 0),
        ("part", "notes of slide 2", 1),
    ]
    assert found.rows[1].status is Status.ARCHIVED


def test_notes_show_their_master_as_slides_do(read: Reader) -> None:
    slot = '<p:nvPr><p:ph type="pic" idx="1"/></p:nvPr>'
    master = pic("p", at=transform(0, 0, 2, 2)) + pic("p", at=transform(5, 5, 8, 6), inside=slot)
    found = read("pptx", pptx([""], extra=notes(1, pic("p", at="", inside=slot), master=master)))
    assert [row.print_mm for row in found.rows] == [(20.0, 20.0), (80.0, 60.0)]


def test_notes_that_cannot_be_read_lose_no_slide(read: Reader) -> None:
    extra = notes(1, "") | {"ppt/notesSlides/notesSlide1.xml": "<p:notes"}
    slide, unread = read("pptx", pptx([pic("p")], extra=extra)).answer.pages
    assert (slide.archived, unread.drawn, unread.reason) == (1, None, "malformed_document")
    extra["ppt/notesSlides/_rels/notesSlide1.xml.rels"] = "<Relationships"
    slide, unread = read("pptx", pptx([pic("p")], extra=extra)).answer.pages
    assert (slide.archived, unread.reason) == (1, "malformed_document")
