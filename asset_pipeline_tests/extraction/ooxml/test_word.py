"""Word documents: every picture of every story, once, as it is shown."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import asset_pipeline
from asset_pipeline.model import Flag, Kind, Status
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.extraction.ooxml.conftest import Reader
from asset_pipeline_tests.extraction.ooxml.making import (
    CM,
    NAMESPACES,
    blip,
    content_types,
    docx,
    inline,
    paragraph,
    pic,
    picture,
    relations,
    text,
    transform,
)

STYLES = (
    f"<w:styles {NAMESPACES}>"
    '<w:style w:styleId="Beschriftung"><w:name w:val="caption"/></w:style>'
    '<w:style w:styleId="Own"><w:name w:val="Picture words"/><w:basedOn w:val="Beschriftung"/></w:style></w:styles>'
)


def styled(body: str, media: dict[str, bytes] | None = None) -> bytes:
    return docx(body, media, {"relations": {"rId80": ("styles", "styles.xml")}, "word/styles.xml": STYLES})


def test_a_picture_is_told_with_its_size_text_and_own_bytes(read: Reader) -> None:
    stored = picture((400, 300))
    found = read("docx", docx(paragraph(inline(pic(), described="A marsh at dawn")), {"image1.png": stored}))
    (row,) = found.rows
    page = found.answer.pages[0]
    assert (page.unit, page.label, page.drawn, page.archived) == ("part", "document", 1, 1)
    assert (row.status, row.kind, row.alt, row.caption) == (Status.ARCHIVED, Kind.RASTER, "A marsh at dawn", None)
    assert (row.width, row.height, row.print_mm, row.filter) == (400, 300, (40.0, 30.0), ["image/png"])
    assert row.ppi == (254.0, 254.0)
    assert found.file(row.picture).read_bytes() == stored
    assert row.display == row.picture


def test_the_cage_lets_the_type_of_a_picture_through_but_no_word_of_the_document(tmp_path: Path) -> None:
    parts = {"[Content_Types].xml": content_types("docx").replace("image/jpeg", "image/secret-word")}
    media = {"image1.png": picture(), "image2.jpg": b"words"}
    data = docx(paragraph(inline(pic())) + paragraph(inline(pic(id_="rId2"))), media, parts)
    (tmp_path / "a.docx").write_bytes(data)
    answer = asset_pipeline.extract(tmp_path / "a.docx", tmp_path / "out", workers=1)
    assert answer.extractor_version.startswith("ooxml/")
    assert [row.filter for row in answer.pages[0].placements] == [["image/png"], ["other"]]


def test_a_picture_used_twice_is_two_placements_of_one_file(read: Reader) -> None:
    found = read("docx", docx(paragraph(inline(pic())) + paragraph(inline(pic()))))
    one, two = found.rows
    assert one.picture == two.picture
    assert len(found.answer.pictures) == 1
    assert [row.name for row in found.rows] == ["page-001-image-001", "page-001-image-002"]


def test_a_part_that_nothing_draws_is_not_listed(read: Reader) -> None:
    found = read("docx", docx(paragraph(inline(pic())), {"image1.png": picture(), "image2.png": picture(seed=2)}))
    assert len(found.rows) == len(found.answer.pictures) == 1


@pytest.mark.parametrize(
    ("attributes", "turned"),
    [
        ('rot="5400000"', lambda pixels: np.rot90(pixels, -1)),
        ('rot="10800000"', lambda pixels: np.rot90(pixels, 2)),
        ('rot="16200000"', lambda pixels: np.rot90(pixels, 1)),
        ('flipH="1"', lambda pixels: pixels[:, ::-1]),
        ('flipV="1"', lambda pixels: pixels[::-1]),
        ('flipH="1" rot="5400000"', lambda pixels: np.rot90(pixels[:, ::-1], -1)),
        ('rot="1800000"', lambda pixels: pixels),
    ],
)
def test_quarter_turns_and_mirrors_are_applied_to_the_display_alone(read: Reader, attributes: str, turned) -> None:
    found = read("docx", docx(paragraph(inline(pic(at=transform(attributes=attributes))))))
    (row,) = found.rows
    assert np.array_equal(found.pixels(row.display), turned(found.pixels(row.picture)))
    assert (Flag.MIRRORED in row.flags) == ("flip" in attributes)
    assert row.print_mm == (40.0, 30.0)


def test_a_cropped_picture_is_shown_cropped_and_kept_whole(read: Reader) -> None:
    crop = '<a:srcRect l="25000" t="10000" r="25000" b="40000"/>'
    found = read("docx", docx(paragraph(inline(pic(crop=crop)))))
    (row,) = found.rows
    assert np.array_equal(found.pixels(row.display), found.pixels(row.picture)[3:18, 10:30])
    assert row.visible == pytest.approx(0.25, abs=1e-3)
    assert Flag.CLIPPED in row.flags
    assert row.print_mm == (80.0, 60.0), "of the whole picture, so that its resolution is true"


def test_a_picture_smaller_than_its_shape_is_shown_whole(read: Reader) -> None:
    found = read("docx", docx(paragraph(inline(pic(crop='<a:srcRect l="-50000" r="-50000"/>')))))
    (row,) = found.rows
    assert row.print_mm == (20.0, 30.0)
    assert (row.visible, row.display) == (1.0, row.picture)


def test_a_picture_cut_to_another_shape_says_so(read: Reader) -> None:
    found = read("docx", docx(paragraph(inline(pic(outline='<a:prstGeom prst="ellipse"/>')))))
    assert {Flag.CLIPPED, Flag.CLIP_APPROXIMATE} <= set(found.rows[0].flags)


def test_a_picture_inside_groups_has_their_scale(read: Reader) -> None:
    child = pic(at=transform(0, 0, 2, 2))
    group = (
        f'<wpg:wgp xmlns:wpg="g"><wpg:grpSpPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="{8 * CM}" cy="{4 * CM}"/>'
        f'<a:chOff x="0" y="0"/><a:chExt cx="{4 * CM}" cy="{4 * CM}"/></a:xfrm></wpg:grpSpPr>{child}</wpg:wgp>'
    )
    assert read("docx", docx(paragraph(inline(group)))).rows[0].print_mm == (40.0, 20.0)


def test_recoloured_pictures_say_that_the_display_is_not(read: Reader) -> None:
    found = read("docx", docx(paragraph(inline(pic(source=blip(inside="<a:grayscl/>"))))))
    assert Flag.COLOUR_FALLBACK in found.rows[0].flags


class TestAlternatives:
    """What is written twice for older programs is drawn once."""

    def test_the_choice_counts_and_the_fallback_not(self, read: Reader) -> None:
        old = '<w:pict><v:shape style="width:10pt;height:10pt"><v:imagedata r:id="rId2"/></v:shape></w:pict>'
        both = (
            f'<mc:AlternateContent><mc:Choice Requires="wps">{inline(pic())}</mc:Choice>'
            f"<mc:Fallback>{old}</mc:Fallback></mc:AlternateContent>"
        )
        found = read("docx", docx(paragraph(both), {"image1.png": picture(), "image2.png": picture(seed=2)}))
        assert len(found.rows) == 1
        assert found.file(found.rows[0].picture).read_bytes() == picture()

    def test_the_fallback_counts_where_the_choice_draws_no_picture(self, read: Reader) -> None:
        both = (
            '<mc:AlternateContent><mc:Choice Requires="cx"><w:drawing/></mc:Choice>'
            f"<mc:Fallback>{inline(pic())}</mc:Fallback></mc:AlternateContent>"
        )
        assert len(read("docx", docx(paragraph(both))).rows) == 1

    def test_an_svg_with_a_raster_beside_it_is_one_picture(self, read: Reader) -> None:
        svg = '<a:extLst><a:ext uri="u"><asvg:svgBlip r:embed="rId2"/></a:ext></a:extLst>'
        media = {"image1.png": picture(), "image2.svg": b'<svg xmlns="http://www.w3.org/2000/svg"/>'}
        found = read("docx", docx(paragraph(inline(pic(source=blip(inside=svg)))), media))
        assert [(row.status, row.filter, row.flags) for row in found.rows] == [(Status.ARCHIVED, ["image/png"], [])]


@pytest.mark.parametrize(
    ("name", "data", "media_type"),
    [
        ("image1.emf", b"\x01\0\0\0" + bytes(36) + b" EMF" + bytes(60), "image/emf"),
        ("image1.wmf", b"\xd7\xcd\xc6\x9a" + bytes(40), "image/wmf"),
        ("image1.wmf", b"\x01\0\0\0" + bytes(36) + b" EMF" + bytes(60), "image/wmf"),
        ("image1.svg", b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>', "image/svg+xml"),
        ("image1.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n", "application/postscript"),
    ],
)
def test_a_drawing_is_accounted_for_with_its_type_and_never_decoded(read, name, data, media_type) -> None:
    found = read("docx", docx(paragraph(inline(pic(), described="A chart")), {name: data}))
    (row,) = found.rows
    assert (row.status, row.reason, row.filter) == (Status.QUARANTINED, Reason.UNSUPPORTED_CODEC, [media_type])
    assert (row.picture, row.alt, found.answer.pictures) == (None, "A chart", [])


class TestOutside:
    """What lies outside the document is told and never fetched."""

    @pytest.mark.parametrize("target", ["http://127.0.0.1:9/x.png", "file:///etc/passwd", "https://example.org/x.png"])
    def test_a_linked_picture_is_quarantined(self, read: Reader, target: str) -> None:
        linked = {"relations": {"rId9": ("image", target)}}
        found = read("docx", docx(paragraph(inline(pic(source=blip("rId9", key="r:link")))), {}, linked))
        assert [(row.status, row.reason) for row in found.rows] == [(Status.QUARANTINED, Reason.EXTERNAL_REFERENCE)]

    def test_a_linked_picture_with_a_copy_inside_is_the_copy(self, read: Reader) -> None:
        both = '<a:blip r:embed="rId1" r:link="rId9"/>'
        linked = {"relations": {"rId9": ("image", "https://example.org/x.png")}}
        assert read("docx", docx(paragraph(inline(pic(source=both))), None, linked)).rows[0].status is Status.ARCHIVED

    def test_a_picture_that_is_not_in_the_package_ends_too_early(self, read: Reader) -> None:
        found = read("docx", docx(paragraph(inline(pic(id_="rId7")))))
        assert [row.reason for row in found.rows] == [Reason.TRUNCATED_STREAM]

    def test_a_target_that_leaves_the_package_is_outside(self, read: Reader) -> None:
        out = {"relations": {"rId9": ("image", "../../../etc/passwd")}}
        assert read("docx", docx(paragraph(inline(pic(id_="rId9"))), {}, out)).rows[0].reason is (
            Reason.EXTERNAL_REFERENCE
        )


class TestCaptions:
    """A caption is a paragraph in the caption style beside the picture, in whatever language; else there is none."""

    def test_below(self, read: Reader) -> None:
        body = paragraph(inline(pic())) + paragraph(text("Figure 1. ") + text("The bank"), "Beschriftung")
        assert read("docx", styled(body)).rows[0].caption == "Figure 1. The bank"

    def test_above(self, read: Reader) -> None:
        media = {"image1.png": picture(), "image2.png": picture(seed=2)}
        body = "".join(paragraph(text(f"Plate {n}"), "Own") + paragraph(inline(pic(id_=f"rId{n}"))) for n in (1, 2))
        assert [row.caption for row in read("docx", styled(body, media)).rows] == ["Plate 1", "Plate 2"]

    def test_each_below_its_own(self, read: Reader) -> None:
        media = {"image1.png": picture(), "image2.png": picture(seed=2)}
        body = "".join(
            paragraph(inline(pic(id_=f"rId{n}"))) + paragraph(text(f"Plate {n}"), "Beschriftung") for n in (1, 2)
        )
        assert [row.caption for row in read("docx", styled(body, media)).rows] == ["Plate 1", "Plate 2"]

    def test_plain_text_beside_a_picture_is_none(self, read: Reader) -> None:
        body = paragraph(inline(pic())) + paragraph(text("Figure 1. The bank"))
        assert read("docx", styled(body)).rows[0].caption is None

    def test_a_caption_further_away_is_none(self, read: Reader) -> None:
        body = paragraph(inline(pic())) + paragraph(text("Words.")) + paragraph(text("Figure 1"), "Beschriftung")
        assert read("docx", styled(body)).rows[0].caption is None


class TestNotShown:
    """What is there and cannot be seen keeps its original and has no display."""

    @pytest.mark.parametrize(
        "body",
        [
            paragraph(inline(pic()), run="<w:rPr><w:vanish/></w:rPr>"),
            f"<w:p><w:del><w:r>{inline(pic())}</w:r></w:del></w:p>",
            paragraph(inline(pic(), properties='hidden="1"')),
        ],
        ids=["hidden text", "deleted", "hidden picture"],
    )
    def test_in_the_text(self, read: Reader, body: str) -> None:
        (row,) = read("docx", docx(body)).rows
        assert (row.status, row.display, row.picture is not None) == (Status.NOT_SHOWN, None, True)

    def test_a_header_of_a_first_page_that_no_section_has(self, read: Reader) -> None:
        assert [row.status for row in read("docx", _with_headers("")).rows] == [Status.ARCHIVED, Status.NOT_SHOWN]

    def test_the_same_header_where_a_section_has_one(self, read: Reader) -> None:
        found = read("docx", _with_headers("<w:titlePg/>"))
        assert [row.status for row in found.rows] == [Status.ARCHIVED, Status.ARCHIVED]
        assert [page.label for page in found.answer.pages] == ["document", "header1", "header2"]


def _with_headers(title_page: str) -> bytes:
    def header(id_: int) -> str:
        return f"<w:hdr {NAMESPACES}>{paragraph(inline(pic(id_='rId1')))}</w:hdr>"

    section = (
        '<w:sectPr><w:headerReference w:type="default" r:id="rId20"/>'
        f'<w:headerReference w:type="first" r:id="rId21"/>{title_page}</w:sectPr>'
    )
    own = relations({"rId1": ("image", "media/image1.png")})
    second = relations({"rId1": ("image", "media/image2.png")})
    return docx(
        section,
        {"image1.png": picture(), "image2.png": picture(seed=2)},
        {
            "relations": {"rId20": ("header", "header1.xml"), "rId21": ("header", "header2.xml")},
            "word/header1.xml": header(1),
            "word/header2.xml": header(2),
            "word/_rels/header1.xml.rels": own,
            "word/_rels/header2.xml.rels": second,
        },
    )


def test_stories_come_in_a_stable_order_with_notes_last(read: Reader) -> None:
    notes = f'<w:footnotes {NAMESPACES}><w:footnote w:id="1">{paragraph(inline(pic()))}</w:footnote></w:footnotes>'
    extra = {
        "relations": {"rId30": ("footnotes", "footnotes.xml")},
        "word/footnotes.xml": notes,
        "word/_rels/footnotes.xml.rels": relations({"rId1": ("image", "media/image1.png")}),
    }
    found = read("docx", docx("", None, extra))
    assert [(page.label, page.drawn) for page in found.answer.pages] == [("document", 0), ("footnotes", 1)]


@pytest.mark.parametrize("used", [True, False])
def test_a_bullet_that_is_a_picture_is_told_once_and_shown_where_a_list_has_it(read: Reader, used: bool) -> None:
    bullet = (
        '<w:numPicBullet w:numPicBulletId="0"><w:pict><v:shape style="width:30pt;height:30pt">'
        '<v:imagedata r:id="rId1"/></v:shape></w:pict></w:numPicBullet>'
    )
    level = '<w:abstractNum><w:lvl><w:lvlPicBulletId w:val="0"/></w:lvl></w:abstractNum>' if used else ""
    extra = {
        "relations": {"rId30": ("numbering", "numbering.xml")},
        "word/numbering.xml": f"<w:numbering {NAMESPACES}>{bullet}{level}</w:numbering>",
        "word/_rels/numbering.xml.rels": relations({"rId1": ("image", "media/image1.png")}),
    }
    found = read("docx", docx("", None, extra))
    assert [(page.label, page.drawn) for page in found.answer.pages] == [("document", 0), ("bullets", 1)]
    assert found.rows[0].status is (Status.ARCHIVED if used else Status.NOT_SHOWN)


def test_lists_without_such_bullets_are_no_unit(read: Reader) -> None:
    extra = {
        "relations": {"rId30": ("numbering", "numbering.xml")},
        "word/numbering.xml": f"<w:numbering {NAMESPACES}><w:abstractNum/></w:numbering>",
    }
    assert len(read("docx", docx("", None, extra)).answer.pages) == 1


class TestOldDrawings:
    """VML: previews of embedded objects, pictures in old shapes."""

    def test_the_preview_of_an_embedded_object(self, read: Reader) -> None:
        body = (
            '<w:object><v:shapetype id="t"/><v:shape style="width:2in;height:36pt" alt="A sheet">'
            '<v:imagedata r:id="rId1"/></v:shape><o:OLEObject r:id="rId50"/></w:object>'
        )
        (row,) = read("docx", docx(paragraph(body))).rows
        assert (row.print_mm, row.alt) == ((50.8, 12.7), "A sheet")

    def test_a_picture_in_a_group_that_is_cropped_and_turned(self, read: Reader) -> None:
        body = (
            '<w:pict><v:group style="width:200pt;height:100pt" coordsize="2000,1000">'
            '<v:rect style="left:0;top:0;width:1000;height:500;rotation:90">'
            '<v:imagedata r:id="rId1" cropleft="32768f"/></v:rect></v:group></w:pict>'
        )
        found = read("docx", docx(paragraph(body)))
        (row,) = found.rows
        assert np.array_equal(found.pixels(row.display), np.rot90(found.pixels(row.picture)[:, 20:], -1))

    def test_a_linked_picture_is_outside(self, read: Reader) -> None:
        body = (
            '<w:pict><v:shape style="width:9pt;height:9pt"><v:imagedata src="file:///etc/passwd"/></v:shape></w:pict>'
        )
        assert read("docx", docx(paragraph(body))).rows[0].reason is Reason.EXTERNAL_REFERENCE

    def test_a_picture_fill_is_one_placement_however_often_it_is_tiled(self, read: Reader) -> None:
        body = '<w:pict><v:rect style="width:90pt;height:90pt"><v:fill type="tile" r:id="rId1"/></v:rect></w:pict>'
        assert [row.kind for row in read("docx", docx(paragraph(body))).rows] == [Kind.PATTERN]


def test_pictures_in_text_boxes_and_tables_are_found(read: Reader) -> None:
    box = (
        f"<wps:wsp><wps:spPr/><wps:txbx><w:txbxContent>{paragraph(inline(pic()))}</w:txbxContent></wps:txbx></wps:wsp>"
    )
    cell = f"<w:tbl><w:tr><w:tc>{paragraph(inline(pic()))}</w:tc></w:tr></w:tbl>"
    assert len(read("docx", docx(paragraph(inline(box)) + cell)).rows) == 2


def test_a_picture_of_a_diagram_is_found_in_its_drawing(read: Reader) -> None:
    extra = {
        "relations": {"rId40": ("diagramData", "diagrams/data1.xml"), "rId41": ("diagramDrawing", "diagrams/d1.xml")},
        "word/diagrams/data1.xml": f'<dgm:dataModel {NAMESPACES}><dsp:dataModelExt relId="rId41"/></dgm:dataModel>',
        "word/diagrams/d1.xml": f"<dsp:drawing {NAMESPACES}><dsp:spTree><dsp:sp><dsp:spPr>{transform()}"
        f"<a:blipFill>{blip()}<a:stretch/></a:blipFill></dsp:spPr></dsp:sp></dsp:spTree></dsp:drawing>",
        "word/diagrams/_rels/d1.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    assert read("docx", docx(paragraph(inline('<dgm:relIds r:dm="rId40"/>')), None, extra)).rows[0].print_mm == (40, 30)


def test_a_picture_of_a_diagram_without_a_drawing_is_found_in_its_model(read: Reader) -> None:
    fill = f"<a:blipFill>{blip()}<a:stretch/></a:blipFill>"
    extra = {
        "relations": {"rId40": ("diagramData", "diagrams/data1.xml")},
        "word/diagrams/data1.xml": f"<dgm:dataModel {NAMESPACES}><dgm:ptLst><dgm:pt><dgm:spPr>{fill}</dgm:spPr>"
        "</dgm:pt></dgm:ptLst></dgm:dataModel>",
        "word/diagrams/_rels/data1.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
    }
    (row,) = read("docx", docx(paragraph(inline('<dgm:relIds r:dm="rId40"/>')), None, extra)).rows
    assert Flag.CLIP_APPROXIMATE in row.flags


def test_the_preview_of_an_embedded_object_in_the_strict_form_is_found(read: Reader) -> None:
    body = paragraph(f"<w:object>{inline(pic())}<w:objectEmbed r:id='rId9'/></w:object>")
    assert [row.print_mm for row in read("docx", docx(body)).rows] == [(40, 30)]


def test_headers_of_pages_that_no_program_knows_are_not_shown_and_cost_no_time(read: Reader) -> None:
    kinds = ["default", *(f"page{number}" for number in range(15_000))]
    body = "".join(
        f'<w:p><w:pPr><w:sectPr><w:headerReference w:type="{kind}" r:id="{"rId8" if kind == "default" else "rId9"}"/>'
        "</w:sectPr></w:pPr></w:p>"
        for kind in kinds
    )
    header = f"<w:hdr {NAMESPACES}>{paragraph(inline(pic()))}</w:hdr>"
    named = relations({"rId1": ("image", "media/image1.png")})
    extra = {
        "relations": {"rId8": ("header", "header1.xml"), "rId9": ("header", "header2.xml")},
        **{f"word/header{number}.xml": header for number in (1, 2)},
        **{f"word/_rels/header{number}.xml.rels": named for number in (1, 2)},
    }
    document = docx(body, extra=extra)
    began = time.process_time()
    found = read("docx", document)
    assert time.process_time() - began < 10  # it was a minute
    assert [row.status for row in found.rows] == [Status.ARCHIVED, Status.NOT_SHOWN]
