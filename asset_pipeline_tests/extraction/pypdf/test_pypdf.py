"""The second opinion: placements and true bytes from pypdf's own parser, behind the same interface."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name
from PIL import Image

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Extraction, Flag, Kind, Status
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

Build = Callable[[pikepdf.Pdf], None]
Read = Callable[..., Extraction]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Build a document, read it with the engine and return the answer; files are in ``tmp_path / "out"``."""

    def run(build: Build, **limits: int) -> Extraction:
        document, out = tmp_path / "source.pdf", tmp_path / "out"
        with pikepdf.new() as pdf:
            build(pdf)
            pdf.save(document)
        out.mkdir()
        content = document.read_bytes()
        policy = Policy(limits=Limits.model_validate(limits))
        digest = hashlib.sha256(content).hexdigest()
        return load_engine("pypdf").extract(Request(document, out, policy, digest, len(content), pixels=True))

    return run


def _picture(pdf: pikepdf.Pdf, image: Image.Image, data: bytes | None = None, **keys: object) -> pikepdf.Object:
    stream = pdf.make_stream(image.tobytes() if data is None else data)
    spaces = {"L": Name.DeviceGray, "RGB": Name.DeviceRGB, "CMYK": Name.DeviceCMYK}
    defaults = {
        "Type": Name.XObject, "Subtype": Name.Image, "Width": image.width, "Height": image.height,
        "ColorSpace": spaces[image.mode], "BitsPerComponent": 8,
    }  # fmt: skip
    for key, value in (defaults | keys).items():
        stream[f"/{key}"] = value
    return pdf.make_indirect(stream)


def _page(pdf: pikepdf.Pdf, content: bytes, **pictures: pikepdf.Object) -> pikepdf.Page:
    page = pdf.add_blank_page(page_size=(200, 300))
    page.Resources = Dictionary(XObject=Dictionary({f"/{name}": picture for name, picture in pictures.items()}))
    page.Contents = pdf.make_stream(content)
    return page


def _form(pdf: pikepdf.Pdf, content: bytes, **keys: object) -> pikepdf.Object:
    form = pdf.make_stream(content)
    form.Type, form.Subtype, form.BBox = Name.XObject, Name.Form, Array([0, 0, 200, 300])
    for key, value in keys.items():
        form[f"/{key}"] = value
    return pdf.make_indirect(form)


RED = Image.new("RGB", (6, 4), (220, 20, 20))


def _jpeg(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG")
    return file.getvalue()


def test_placements_follow_the_matrices_of_page_and_forms(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        picture = _picture(pdf, RED)
        inner = _form(pdf, b"q 120 0 0 80 20 20 cm /Im0 Do Q", Matrix=Array([0.5, 0, 0, 0.5, 30, 70]))
        _page(pdf, b"q /Fm0 Do Q q -60 0 0 40 100 10 cm /Im0 Do Q", Im0=picture, Fm0=inner)

    first, second = read(build).pages[0].placements
    assert first.bbox == (40.0, 80.0, 100.0, 120.0)
    assert first.display_bbox == (40.0, 180.0, 100.0, 220.0)
    assert second.flags == [Flag.MIRRORED]
    assert first.object_id == second.object_id
    assert (first.name, second.name) == ("page-001-image-001", "page-001-image-002")


@pytest.mark.parametrize(
    ("turn", "box"),
    [
        (0, (20.0, 220.0, 80.0, 260.0)),
        (90, (40.0, 20.0, 80.0, 80.0)),
        (180, (120.0, 40.0, 180.0, 80.0)),
        (270, (220.0, 120.0, 260.0, 180.0)),
    ],
)
def test_a_turned_page_shows_its_picture_where_a_viewer_does(
    read: Read, turn: int, box: tuple[float, float, float, float]
) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=_picture(pdf, RED)).rotate(turn, relative=False)

    assert read(build).pages[0].placements[0].display_bbox == box


def test_a_jpeg_keeps_the_bytes_of_the_document(read: Read, tmp_path: Path) -> None:
    data = _jpeg(RED)

    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=_picture(pdf, RED, data, Filter=Name.DCTDecode))

    extraction = read(build)
    (picture,) = extraction.pictures
    assert (tmp_path / "out" / picture.file).read_bytes() == data
    assert picture.renditions == ["original", "display"]


def test_samples_become_a_lossless_png(read: Read, tmp_path: Path) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=_picture(pdf, RED))

    (picture,) = read(build).pictures
    with Image.open(tmp_path / "out" / picture.file) as decoded:
        assert decoded.tobytes() == RED.tobytes()
    assert picture.pixel_sha256 == hashlib.sha256(RED.tobytes()).hexdigest()


def test_a_soft_mask_becomes_alpha_of_the_display(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        mask = _picture(pdf, Image.new("L", (6, 4), 128))
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=_picture(pdf, RED, SMask=mask))

    extraction = read(build)
    row = extraction.pages[0].placements[0]
    display = next(picture for picture in extraction.pictures if picture.sha256 == row.display)
    assert display.has_alpha


def test_an_inline_picture_is_found_with_its_full_filter_names(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 20 40 cm BI /W 1 /H 1 /CS /RGB /BPC 8 /F /AHx ID 102030> EI Q")

    (row,) = read(build).pages[0].placements
    assert (row.kind, row.object_id, row.filter, row.colour_space) == (
        Kind.INLINE, None, ["ASCIIHexDecode"], "DeviceRGB",
    )  # fmt: skip
    assert row.status is Status.ARCHIVED


def test_one_bad_picture_loses_no_other(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        good, other = _picture(pdf, RED), _picture(pdf, Image.new("L", (6, 4), 9))
        broken = _picture(pdf, RED, b"\xff\xd8 no picture", Filter=Name.DCTDecode)
        _page(
            pdf,
            b"q 60 0 0 40 20 40 cm /A Do Q q 60 0 0 40 20 90 cm /B Do Q q 60 0 0 40 20 140 cm /C Do Q",
            A=good,
            B=broken,
            C=other,
        )

    page = read(build).pages[0]
    assert [row.status for row in page.placements] == [Status.ARCHIVED, Status.QUARANTINED, Status.ARCHIVED]
    assert (page.drawn, page.archived, page.quarantined) == (3, 2, 1)


def test_a_picture_over_the_pixel_budget_is_never_decoded(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        bomb = _picture(pdf, RED, b"x" * 20, Width=60000, Height=60000)
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=bomb)

    assert read(build).pages[0].placements[0].reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_a_form_that_draws_itself_ends_with_a_reason_for_its_page_alone(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        form = _form(pdf, b"/Fm0 Do")
        form.Resources = Dictionary(XObject=Dictionary(Fm0=form))
        _page(pdf, b"/Fm0 Do", Fm0=form)
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q", Im0=_picture(pdf, RED))

    first, second = read(build).pages
    assert (first.drawn, first.reason) == (None, Reason.STRUCTURE_TOO_DEEP)
    assert second.archived == 1


def test_a_picture_outside_the_crop_box_is_not_shown(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 500 500 cm /Im0 Do Q", Im0=_picture(pdf, RED))

    (row,) = read(build).pages[0].placements
    assert (row.status, row.display, row.flags) == (Status.NOT_SHOWN, None, [Flag.NOT_VISIBLE])
    assert row.picture is not None


def test_a_page_over_its_budget_is_not_counted(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        _page(pdf, b"q 60 0 0 40 20 40 cm /Im0 Do Q" * 3, Im0=_picture(pdf, RED))

    (page,) = read(build, placements=2).pages
    assert (page.drawn, page.reason) == (None, Reason.PLACEMENT_BUDGET_EXCEEDED)


def test_the_version_names_what_can_change_a_byte() -> None:
    assert load_engine("pypdf").version().startswith("pypdf/2+pypdf-")
