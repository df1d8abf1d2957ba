"""Rules of names, layers, marks and boxes that documents in the field depend on."""

from __future__ import annotations

import pikepdf
import pytest
from pages import boxes, form, page, picture, stencil, walk, xobjects
from pikepdf import Array, Dictionary, Name, Stream

from asset_pipeline.model import Flag


def test_a_name_missing_in_a_form_is_looked_up_on_the_page(pdf: pikepdf.Pdf) -> None:
    made = form(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": Dictionary()})
    page(pdf, "/F Do", {"XObject": xobjects(A=picture(pdf), F=made)})
    assert boxes(walk(pdf)) == [(0, 0, 9, 9)]


@pytest.mark.parametrize("written", ["/A#20B", "/A#20#42"])
def test_names_are_compared_by_what_they_mean(pdf: pikepdf.Pdf, written: str) -> None:
    page(pdf, f"9 0 0 9 0 0 cm {written} Do", {"XObject": Dictionary({"/A B": picture(pdf)})})
    assert len(walk(pdf).draws) == 1


def test_names_that_are_not_text_are_found(pdf: pikepdf.Pdf) -> None:
    named = pikepdf.Object.parse(b"<< /Im#e9 0 >>")
    named[pikepdf.Object.parse(b"/Im#e9")] = picture(pdf)
    made = page(pdf, b"9 0 0 9 0 0 cm /Im\xe9 Do", {})
    made.Resources.XObject = named
    assert len(walk(pdf).draws) == 1


def test_a_picture_without_subtype_is_passed_over(pdf: pikepdf.Pdf) -> None:
    image = picture(pdf)
    del image.Subtype
    page(pdf, "/A Do", {"XObject": xobjects(A=image)})
    assert walk(pdf).draws == []


def test_a_box_given_backwards_and_a_crop_box_beside_the_page_are_repaired(pdf: pikepdf.Pdf) -> None:
    page(pdf, "", MediaBox=Array([300, 200, 0, 0]), CropBox=Array([250, 150, 50, 20]))
    page(pdf, "", CropBox=Array([900, 900, 950, 950]))
    assert [walk(pdf, number).crop_box for number in (1, 2)] == [(50, 20, 250, 150), (0, 0, 300, 200)]


@pytest.mark.parametrize(
    ("path", "visible", "approximate"),
    [("0 0 m 20 0 l 20 40 l 0 40 l h", 0.5, False), ("0 0 m 40 0 l 0 40 l h", 0.5, False),
     ("0 0 m 40 0 l 10 10 l 0 40 l h", 1.0, True), ("0 0 10 40 re 20 0 10 40 re", 0.75, True),
     ("5 5 m", 0.0, False), ("0 0 0 40 re", 0.0, False), ("", 1.0, False), ("20 40 -20 -40 re", 0.5, False)],
)  # fmt: skip
def test_clip_outlines_are_exact_where_they_can_be(
    pdf: pikepdf.Pdf, path: str, visible: float, approximate: bool
) -> None:
    page(pdf, f"{path} W* n 40 0 0 40 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert draw.visible == pytest.approx(visible)
    assert (Flag.CLIP_APPROXIMATE in draw.flags) is approximate


def test_text_as_a_clip_is_said_to_be_approximate(pdf: pikepdf.Pdf) -> None:
    page(pdf, "q BT 7 Tr /F 90 Tf (A) Tj ET 9 0 0 9 0 0 cm /A Do Q 9 0 0 9 0 0 cm /A Do",
         {"XObject": xobjects(A=picture(pdf))})  # fmt: skip
    assert [draw.flags for draw in walk(pdf).draws] == [{Flag.CLIPPED, Flag.CLIP_APPROXIMATE}, set()]


def test_a_clip_under_a_quarter_turn_is_exact(pdf: pikepdf.Pdf) -> None:
    page(pdf, "0 1 -1 0 50 0 cm 0 0 20 40 re W n 40 0 0 40 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    draw = walk(pdf).draws[0]
    assert draw.crop == pytest.approx((0, 0, 0.5, 1))
    assert (draw.turn, draw.flags) == (3, {Flag.CLIPPED})


def test_other_angles_are_neither_turned_nor_mirrored(pdf: pikepdf.Pdf) -> None:
    page(pdf, "7 7 7 -7 50 50 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, Rotate=90)
    draw = walk(pdf).draws[0]
    assert (draw.turn, draw.mirrored, Flag.MIRRORED in draw.flags) == (0, False, True)


def test_float_noise_in_a_matrix_is_no_other_angle(pdf: pikepdf.Pdf) -> None:
    page(pdf, ".00001 -90.0001 90 .0002 50 150 cm /A Do", {"XObject": xobjects(A=picture(pdf))})
    assert walk(pdf).draws[0].turn == 1


@pytest.mark.parametrize(
    ("paint", "space", "components"),
    [(".5 g", Name.DeviceGray, (0.5,)), (".1 .2 .3 .4 k", Name.DeviceCMYK, (0.1, 0.2, 0.3, 0.4)),
     ("/DeviceCMYK cs", Name.DeviceCMYK, (0, 0, 0, 1)), ("/DeviceRGB cs 1 0 0 sc", Name.DeviceRGB, (1, 0, 0)),
     ("1 0 0 RG", Name.DeviceGray, (0,)), ("q 1 0 0 rg Q", Name.DeviceGray, (0,)),
     ("/Gone cs .5 sc", Name.DeviceGray, (0.5,))],
)  # fmt: skip
def test_the_paint_of_a_stencil_is_the_current_fill_colour(
    pdf: pikepdf.Pdf, paint: str, space: Name, components: tuple[float, ...]
) -> None:
    page(pdf, f"{paint} 9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=stencil(pdf))})
    got = walk(pdf).draws[0].paint
    assert (got.space, got.components, got.pattern) == (space, components, False)


def test_a_named_space_keeps_its_meaning_inside_a_form_with_other_names(pdf: pikepdf.Pdf) -> None:
    ink = Array([Name.Separation, Name("/Ink"), Name.DeviceCMYK, Dictionary(FunctionType=2)])
    made = form(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=stencil(pdf)), "ColorSpace": Dictionary()})
    page(pdf, "/C cs /F Do .25 scn /F Do", {"XObject": xobjects(F=made), "ColorSpace": Dictionary(C=ink)})
    first, second = (draw.paint for draw in walk(pdf).draws)
    assert (first.space[0], first.components) == (Name.Separation, (1.0,))
    assert second.components == (0.25,)


def test_a_marked_content_number_of_a_form_names_that_form(pdf: pikepdf.Pdf) -> None:
    made = form(pdf, "/P <</MCID 0>> BDC 9 0 0 9 0 0 cm /A Do EMC /A Do", {"XObject": xobjects(A=picture(pdf))})
    page(pdf, "/P /M BDC /F Do EMC", {"XObject": xobjects(F=made), "Properties": Dictionary(M=Dictionary(MCID=7))})
    assert [(draw.mcid, draw.mcid_form) for draw in walk(pdf).draws] == [(0, made.objgen[0]), (7, None)]


def test_marks_left_open_in_a_form_end_with_it(pdf: pikepdf.Pdf) -> None:
    made = form(pdf, "/P <</MCID 3>> BDC", {})
    page(pdf, "/F Do EMC EMC /A Do", {"XObject": xobjects(F=made, A=picture(pdf))})
    assert walk(pdf).draws[0].mcid is None


@pytest.mark.parametrize(
    ("config", "shown"),
    [({"OFF": True}, False), ({"BaseState": Name.OFF}, False), ({"BaseState": Name.OFF, "ON": True}, True), ({}, True)],
)
def test_the_default_configuration_decides_about_layers(
    pdf: pikepdf.Pdf, config: dict[str, object], shown: bool
) -> None:
    group = pdf.make_indirect(Dictionary(Type=Name.OCG))
    listed = {key: Array([group]) if value is True else value for key, value in config.items()}
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary({"/" + k: v for k, v in listed.items()}))
    made = form(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf))}, OC=group)
    page(pdf, "/F Do", {"XObject": xobjects(F=made)})
    assert walk(pdf).draws[0].shown is shown


def test_a_layer_for_another_purpose_than_viewing_hides_nothing(pdf: pikepdf.Pdf) -> None:
    group = pdf.make_indirect(Dictionary(Type=Name.OCG, Intent=Name.Design))
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary(OFF=Array([group])))
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, OC=group))})
    assert walk(pdf).draws[0].shown is True


def test_viewing_state_of_a_layer_applies_where_the_document_asks_for_it(pdf: pikepdf.Pdf) -> None:
    group = pdf.make_indirect(Dictionary(Type=Name.OCG, Usage=Dictionary(View=Dictionary(ViewState=Name.OFF))))
    usage = Dictionary(Event=Name.View, Category=Array([Name.View]), OCGs=Array([group]))
    pdf.Root.OCProperties = Dictionary(OCGs=Array([group]), D=Dictionary(AS=Array([usage])))
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=picture(pdf, OC=group))})
    assert walk(pdf).draws[0].shown is False


def test_annotations_are_painted_over_the_page_in_their_order(pdf: pikepdf.Pdf) -> None:
    below, above = picture(pdf), picture(pdf)
    look = form(pdf, "10 0 0 10 0 0 cm /A Do", {"XObject": xobjects(A=above)}, BBox=Array([0, 0, 10, 10]),
                Matrix=Array([0, 1, -1, 0, 0, 0]))  # fmt: skip
    note = Dictionary(Subtype=Name.Stamp, Rect=Array([50, 50, 70, 90]), AP=Dictionary(N=look))
    popup = Dictionary(Subtype=Name.Popup, Rect=Array([0, 0, 9, 9]), AP=Dictionary(N=look))
    page(pdf, "9 0 0 9 0 0 cm /A Do", {"XObject": xobjects(A=below)}, Annots=Array([None, popup, note]))
    first, second = walk(pdf).draws
    assert (first.object_id, second.object_id) == (below.objgen[0], above.objgen[0])
    assert second.bbox == (50, 50, 70, 90)
    assert second.turn == 3


def test_an_empty_stream_among_the_contents_is_no_fault(pdf: pikepdf.Pdf) -> None:
    made = page(pdf, "", {"XObject": xobjects(A=picture(pdf))})
    made.Contents = Array([Stream(pdf, b""), None, Stream(pdf, b"9 0 0 9 0 0 cm"), Stream(pdf, b"/A Do")])
    found = walk(pdf)
    assert (boxes(found), found.reason) == ([(0, 0, 9, 9)], None)


@pytest.mark.parametrize(
    ("written", "data", "expected"),
    [(b"/W 2 /H 2 /BPC 8 /CS /G", b" abcd\nEI", b"abcd"), (b"/W 2 /H 2 /BPC 8 /CS /G", b"\r\nabcd\r\nEI", b"abcd"),
     (b"/Width 2 /Height 2 /BitsPerComponent 8 /ColorSpace /DeviceGray /W 4", b" EI EI EI\nEI", b"EI EI EI"),
     (b"/W 2 /H 2 /CS /Gone /L 8", b" EI EI q\nEI", b"EI EI q\n"), (b"/W 9 /H 9 /IM true", b" short\nEI", b"short"),
     (b"/W 3 /H 2 /BPC 4 /CS [/I /RGB 1 <000000ffffff>]", b" EI q\nEI", b"EI q")],
)  # fmt: skip
def test_inline_data_is_measured(pdf: pikepdf.Pdf, written: bytes, data: bytes, expected: bytes) -> None:
    page(pdf, b"BI " + written + b" ID" + data + b" Q q")
    image = walk(pdf).draws[0].image
    assert image.read_raw_bytes() == expected
    assert not {"/W", "/CS", "/BPC", "/L", "/F"} & set(image.keys())
    assert image.Subtype == Name.Image


def test_inline_jpeg_data_ends_behind_its_end_marker(pdf: pikepdf.Pdf) -> None:
    thumbnail = b"\xff\xe1\x00\x0a\xff\xd9 EI \xff"
    jpeg = b"\xff\xd8" + thumbnail + b"\xff\xda\x00\x04\x01\x02 EI q \xff\x00 EI \xff\xd0 EI \xff\xd9"
    page(pdf, b"BI /W 2 /H 2 /BPC 8 /CS /G /F /DCT ID " + jpeg + b"\nEI 9 0 0 9 0 0 cm")
    image = walk(pdf).draws[0].image
    assert image.read_raw_bytes() == jpeg
    assert image.Filter == Name.DCTDecode
