"""What draws pictures beside plain Do: inline pictures, patterns, annotations, soft masks, layers, text."""

from __future__ import annotations

import zlib

import pikepdf
import pytest
from pages import boxes, form, page, picture, stencil, walk, xobjects
from pikepdf import Array, Dictionary, Name, Stream

from asset_pipeline.model import Flag, Kind


def test_inline_data_that_holds_an_end_mark_is_not_cut(pdf: pikepdf.Pdf) -> None:
    data = b"00000z0z00zzz00z0zzz0zzzEI aazazaazzzaazazzzazzz"
    page(pdf, b"q 100 0 0 100 20 20 cm BI /W 4 /H 4 /CS /RGB /BPC 8 ID " + data + b"\nEI Q")
    draw = walk(pdf).draws[0]
    assert (draw.kind, draw.object_id) == (Kind.INLINE, None)
    assert draw.image.read_raw_bytes() == data
    assert (draw.image.Width, draw.image.ColorSpace) == (4, Name.DeviceRGB)


def test_two_inline_pictures_and_a_string_that_looks_like_one(pdf: pikepdf.Pdf) -> None:
    one, other = bytes(range(4)), zlib.compress(b"EI Q EI " * 8)
    page(pdf, b"(BI /W 9 /H 9 ID x EI) Tj q 9 0 0 9 0 0 cm BI /W 2 /H 2 /BPC 8 /CS /G ID " + one + b" EI Q "
              b"q 9 0 0 9 20 0 cm BI /W 8 /H 8 /BPC 8 /CS /G /F /Fl ID " + other + b"\nEI Q")  # fmt: skip
    found = walk(pdf)
    assert [draw.image.read_raw_bytes() for draw in found.draws] == [one, other]
    assert found.draws[1].image.Filter == Name.FlateDecode
    assert boxes(found) == [(0, 0, 9, 9), (20, 0, 29, 9)]


@pytest.mark.parametrize(
    ("declared", "data", "full"),
    [("/AHx", b"00FF00FF>", "/ASCIIHexDecode"), ("/A85", b"!!*-'~>", "/ASCII85Decode"),
     ("/RL", b"\x03EI Q\x80", "/RunLengthDecode"), ("[/AHx /Fl]", b"78>", "/ASCIIHexDecode"),
     ("/CCF", b"\x00\x10\x01", "/CCITTFaxDecode"), ("/LZW", b"\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01", "/LZWDecode")],
)  # fmt: skip
def test_every_inline_filter_is_cut_exactly_and_named_in_full(
    pdf: pikepdf.Pdf, declared: str, data: bytes, full: str
) -> None:
    head = f"q 9 0 0 9 0 0 cm BI /W 2 /H 2 /BPC 8 /CS /G /F {declared} ID ".encode()
    page(pdf, head + data + b" EI Q 1 0 0 1 0 0 cm")
    stream = walk(pdf).draws[0].image
    names = stream.Filter if isinstance(stream.Filter, Array) else [stream.Filter]
    assert stream.read_raw_bytes() == data
    assert str(names[0]) == full


def test_an_inline_picture_finds_its_colour_space_in_the_resources(pdf: pikepdf.Pdf) -> None:
    space = Array([Name.Indexed, Name.DeviceRGB, 1, pikepdf.String(bytes(6))])
    page(pdf, b"9 0 0 9 0 0 cm BI /W 8 /H 1 /BPC 1 /CS /Mine ID \x55 EI", {"ColorSpace": Dictionary(Mine=space)})
    assert walk(pdf).draws[0].image.ColorSpace[0] == Name.Indexed


def test_a_pattern_fill_is_one_placement_not_one_a_tile(pdf: pikepdf.Pdf) -> None:
    tile = Stream(pdf, b"8 0 0 8 0 0 cm /A Do")
    tile.PatternType, tile.PaintType, tile.BBox, tile.XStep, tile.YStep = 1, 1, Array([0, 0, 8, 8]), 8, 8
    tile.Resources = Dictionary(XObject=xobjects(A=picture(pdf)))
    page(
        pdf,
        "/Pattern cs /P scn 10 20 200 100 re f 0 g 0 0 9 9 re f",
        {"Pattern": Dictionary(P=pdf.make_indirect(tile))},
    )
    found = walk(pdf)
    assert [draw.kind for draw in found.draws] == [Kind.PATTERN]
    assert boxes(found) == [(10, 20, 210, 120)]


def test_an_uncoloured_pattern_paints_its_stencil_in_the_given_colour(pdf: pikepdf.Pdf) -> None:
    tile = Stream(pdf, b"8 0 0 8 0 0 cm /A Do")
    tile.PatternType, tile.PaintType, tile.BBox, tile.XStep, tile.YStep = 1, 2, Array([0, 0, 8, 8]), 8, 8
    tile.Resources = Dictionary(XObject=xobjects(A=stencil(pdf)))
    spaces = Dictionary(Inked=Array([Name.Pattern, Name.DeviceRGB]))
    page(pdf, "/Inked cs 0 0 1 /P scn 0 0 50 50 re f",
         {"Pattern": Dictionary(P=pdf.make_indirect(tile)), "ColorSpace": spaces})  # fmt: skip
    paint = walk(pdf).draws[0].paint
    assert (paint.space, paint.components) == (Name.DeviceRGB, (0.0, 0.0, 1.0))


def test_a_pattern_that_is_only_listed_draws_nothing(pdf: pikepdf.Pdf) -> None:
    tile = Stream(pdf, b"8 0 0 8 0 0 cm /A Do")
    tile.PatternType, tile.PaintType, tile.BBox, tile.XStep, tile.YStep = 1, 1, Array([0, 0, 8, 8]), 8, 8
    tile.Resources = Dictionary(XObject=xobjects(A=picture(pdf)))
    page(pdf, "/Pattern cs /P scn 0 g 10 20 200 100 re f", {"Pattern": Dictionary(P=pdf.make_indirect(tile))})
    assert walk(pdf).draws == []


def _stamp(pdf: pikepdf.Pdf, **entries: object) -> Dictionary:
    look = form(pdf, "100 0 0 50 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, BBox=Array([0, 0, 100, 50]))
    note = Dictionary(Type=Name.Annot, Subtype=Name.Stamp, Rect=Array([20, 30, 70, 80]), AP=Dictionary(N=look))
    for key, value in entries.items():
        note["/" + key] = value
    return pdf.make_indirect(note)


def test_an_annotation_places_its_appearance_into_its_rectangle(pdf: pikepdf.Pdf) -> None:
    page(pdf, "", Annots=Array([_stamp(pdf)]))
    assert boxes(walk(pdf)) == [(20, 30, 70, 80)]


def test_an_annotation_state_picks_its_appearance(pdf: pikepdf.Pdf) -> None:
    chosen = _stamp(pdf)
    chosen.AP.N = Dictionary(Off=form(pdf, ""), On=chosen.AP.N)
    chosen.AS = Name.On
    page(pdf, "", Annots=Array([chosen]))
    assert len(walk(pdf).draws) == 1
    chosen.AS = Name.Off
    assert walk(pdf).draws == []


def test_a_hidden_annotation_is_flagged_and_not_shown(pdf: pikepdf.Pdf) -> None:
    page(pdf, "", Annots=Array([_stamp(pdf, F=2)]))
    draw = walk(pdf).draws[0]
    assert (draw.shown, Flag.HIDDEN_LAYER in draw.flags) == (False, True)


def test_an_annotation_that_does_not_turn_with_its_page_stays_upright_at_its_corner(pdf: pikepdf.Pdf) -> None:
    page(pdf, "", Annots=Array([_stamp(pdf), _stamp(pdf, F=16)]), Rotate=90)
    turned, upright = walk(pdf).draws
    assert [(turned.turn, upright.turn)] == [(1, 0)]
    assert boxes(walk(pdf)) == [(20, 30, 70, 80), (20, 80, 70, 130)]


def test_a_picture_in_a_soft_mask_group_is_a_placement_with_a_flag(pdf: pikepdf.Pdf) -> None:
    group = form(pdf, "50 0 0 50 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    state = Dictionary(SMask=Dictionary(S=Name.Luminosity, G=group))
    page(pdf, "q /G gs 0 0 9 9 re f Q q /G gs 5 5 9 9 re f Q", {"ExtGState": Dictionary(G=state)})
    found = walk(pdf)
    assert [(draw.kind, draw.flags) for draw in found.draws] == [(Kind.RASTER, {Flag.SOFT_MASK})]


def _layers(pdf: pikepdf.Pdf, **config: object) -> tuple[Dictionary, Dictionary]:
    on, off = (pdf.make_indirect(Dictionary(Type=Name.OCG, Name=name)) for name in ("on", "off"))
    default = Dictionary(OFF=Array([off]))
    for key, value in config.items():
        default["/" + key] = value
    pdf.Root.OCProperties = Dictionary(OCGs=Array([on, off]), D=default)
    return on, off


def test_pictures_on_a_hidden_layer_are_flagged_and_not_shown(pdf: pikepdf.Pdf) -> None:
    on, off = _layers(pdf)
    page(pdf, "/OC /Off BDC q 9 0 0 9 0 0 cm /A Do Q EMC /OC /On BDC q 9 0 0 9 20 0 cm /A Do Q EMC "
              "q 9 0 0 9 40 0 cm /B Do Q",
         {"XObject": xobjects(A=picture(pdf), B=picture(pdf, OC=off)),
          "Properties": Dictionary(On=on, Off=off)})  # fmt: skip
    assert [draw.shown for draw in walk(pdf).draws] == [False, True, False]
    assert [Flag.HIDDEN_LAYER in draw.flags for draw in walk(pdf).draws] == [True, False, True]


@pytest.mark.parametrize(
    ("policy", "shown"), [(None, True), ("/AllOn", False), ("/AnyOff", True), ("/AllOff", False), ("/AnyOn", True)]
)
def test_layer_membership_follows_its_policy(pdf: pikepdf.Pdf, policy: str | None, shown: bool) -> None:
    on, off = _layers(pdf)
    member = Dictionary(Type=Name.OCMD, OCGs=Array([on, off]))
    if policy:
        member.P = Name(policy)
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, OC=pdf.make_indirect(member)))})
    assert walk(pdf).draws[0].shown is shown


def test_a_visibility_expression_decides_over_the_policy(pdf: pikepdf.Pdf) -> None:
    on, off = _layers(pdf)
    expression = Array([Name.And, on, Array([Name.Not, off])])
    member = Dictionary(Type=Name.OCMD, OCGs=off, VE=expression)
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, OC=pdf.make_indirect(member)))})
    assert walk(pdf).draws[0].shown is True


def test_glyphs_of_a_type_3_font_are_text_not_pictures(pdf: pikepdf.Pdf) -> None:
    glyph = Stream(pdf, b"500 0 0 0 500 500 d1 500 0 0 500 0 0 cm BI /W 8 /H 1 /IM true ID \x55 EI")
    font = Dictionary(Type=Name.Font, Subtype=Name.Type3, FontBBox=[0, 0, 500, 500], FirstChar=97, LastChar=97,
                      FontMatrix=Array([0.001, 0, 0, 0.001, 0, 0]), CharProcs=Dictionary(a=glyph), Widths=Array([500]),
                      Encoding=Dictionary(Differences=Array([97, Name("/a")])))  # fmt: skip
    page(pdf, "BT /T 20 Tf 10 10 Td (aaa) Tj ET", {"Font": Dictionary(T=pdf.make_indirect(font))})
    assert walk(pdf).draws == []


def test_a_picture_knows_the_marked_content_it_stands_in(pdf: pikepdf.Pdf) -> None:
    page(pdf, "/Figure <</MCID 4>> BDC /Span BMC 9 0 0 9 0 0 cm /A Do EMC EMC /A Do",
         {"XObject": xobjects(A=picture(pdf))})  # fmt: skip
    assert [draw.mcid for draw in walk(pdf).draws] == [4, None]
