"""Rows and pictures of vector figures, through the engine as it is used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest
from pikepdf import Array, Dictionary, Name
from PIL import Image

from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Extraction, Kind, Placement, Status
from asset_pipeline.policy import Figures, Limits, Policy
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.extraction.figures.drawing import Pen, add_page
from asset_pipeline_tests.extraction.figures.made_charts import (
    plotted_lines_in_a_form,
    spreadsheet_columns,
    turned_page_with_crop_box,
)
from asset_pipeline_tests.extraction.figures.made_fields import chart_in_two_paths, island_in_one_path

Build = Callable[[pikepdf.Pdf], object]
Read = Callable[..., Extraction]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def run(build: Build, policy: Policy | None = None, **changes: object) -> Extraction:
        document, out = tmp_path / "source.pdf", tmp_path / "out"
        with pikepdf.new() as pdf:
            build(pdf)
            pdf.save(document)
        out.mkdir(exist_ok=True)
        content = document.read_bytes()
        body = {
            "document": document, "out": out, "policy": policy or Policy(),
            "source_sha256": hashlib.sha256(content).hexdigest(), "source_bytes": len(content),
        }  # fmt: skip
        return load_engine("pdf").extract(Request(**(body | changes)))

    return run


def _figures(answer: Extraction) -> list[Placement]:
    return [row for page in answer.pages for row in page.placements if row.kind is Kind.VECTOR_FIGURE]


def _open(answer: Extraction, row: Placement, folder: Path) -> Image.Image:
    file = next(picture.file for picture in answer.pictures if picture.sha256 == row.display)
    return Image.open(folder / "out" / file).convert("RGB")


def test_a_chart_has_a_row_and_a_picture_at_the_stated_density(read: Read, tmp_path: Path) -> None:
    answer = read(spreadsheet_columns)
    (row,) = _figures(answer)
    assert (row.name, row.status, row.picture) == ("page-001-figure-001", Status.ARCHIVED, row.display)
    assert (row.ppi, row.colour_space, row.bits, row.filter, row.object_id) == ((200, 200), "DeviceRGB", 8, [], None)
    assert (row.visible, row.flags, row.reason) == (1.0, [], None)
    across = (row.bbox[2] - row.bbox[0]) * 200 / 72
    assert abs(row.width - across) <= 1
    assert _open(answer, row, tmp_path).size == (row.width, row.height)
    assert row.caption == "Figure 1. Visitors counted at the gate."
    page = answer.pages[0]
    assert (page.drawn, page.derived_archived, page.derived_quarantined) == (0, 1, 0)


def test_the_caption_stays_out_of_the_picture(read: Read) -> None:
    (row,) = _figures(read(spreadsheet_columns))
    assert row.bbox[1] > 408  # the caption stands at 400


@pytest.mark.parametrize("chart", [chart_in_two_paths, island_in_one_path])
def test_a_drawing_of_few_long_paths_is_a_figure(read: Read, chart: Build) -> None:
    assert len(_figures(read(chart))) == 1


def test_the_same_page_gives_the_same_bytes(read: Read) -> None:
    first, second = read(plotted_lines_in_a_form), read(plotted_lines_in_a_form)
    assert [picture.sha256 for picture in first.pictures] == [picture.sha256 for picture in second.pictures]


def test_a_figure_on_a_turned_page_stands_as_the_page_shows_it(read: Read, tmp_path: Path) -> None:
    answer = read(turned_page_with_crop_box)
    (row,) = _figures(answer)
    assert row.bbox[0] >= 60 and row.bbox[3] <= 555
    assert row.height > row.width
    left, top, right, bottom = row.display_bbox
    assert abs((right - left) / (bottom - top) - row.width / row.height) < 0.01
    a, b, c, d, e, f = row.matrix
    assert (a, d) == (0, 0) and b > 0 > c and (e, f) == (row.bbox[2], row.bbox[1])
    # The axis of the bars is level in user space, at the bottom: displayed, it is at the left.
    picture = _open(answer, row, tmp_path)
    dark = [x for x in range(picture.width) if picture.getpixel((x, picture.height // 2))[0] < 120]
    assert dark and dark[0] < picture.width / 4


def test_figures_can_be_switched_off(read: Read) -> None:
    assert not _figures(read(spreadsheet_columns, figures=False))
    assert not _figures(read(spreadsheet_columns, Policy(figures=Figures(enabled=False))))


def test_policy_sets_density_and_margin(read: Read) -> None:
    (coarse,) = _figures(read(spreadsheet_columns, Policy(figures=Figures(dpi=50, margin_points=0))))
    (fine,) = _figures(read(spreadsheet_columns, Policy(figures=Figures(dpi=100, margin_points=10))))
    assert (coarse.ppi[0], fine.ppi[0]) == (50, 100)
    assert coarse.bbox[0] - fine.bbox[0] == pytest.approx(10, abs=0.1)


def test_a_figure_with_too_many_pixels_is_rendered_coarser_and_says_so(read: Read) -> None:
    (row,) = _figures(read(spreadsheet_columns, Policy(limits=Limits(pixels=100_000))))
    assert row.status is Status.ARCHIVED
    assert row.width * row.height <= 100_000
    assert row.ppi[0] < 100


def test_a_figure_over_a_broken_picture_is_quarantined_with_its_reason(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        spreadsheet_columns(pdf)
        page = pdf.pages[0]
        broken = pdf.make_stream(b"\0" * 9)
        for key, value in {"Width": 40, "Height": 40, "BitsPerComponent": 8, "ColorSpace": Name.DeviceGray}.items():
            broken["/" + key] = value
        broken.Subtype = Name.Image
        page.obj.Resources.XObject = Dictionary(Bad=broken)
        page.contents_add(b" q 30 0 0 30 440 600 cm /Bad Do Q")

    answer = read(build)
    (row,) = _figures(answer)
    assert (row.status, row.reason) == (Status.QUARANTINED, Reason.TRUNCATED_STREAM)
    assert (row.picture, row.display) == (None, None)
    assert answer.pages[0].derived_quarantined == 1


def test_a_figure_that_takes_too_long_is_quarantined(read: Read) -> None:
    (row,) = _figures(read(spreadsheet_columns, Policy(figures=Figures(seconds=1e-9))))
    assert (row.status, row.reason) == (Status.QUARANTINED, Reason.DEADLINE_EXCEEDED)


def test_a_chart_on_a_hidden_layer_is_not_shown(read: Read) -> None:
    def build(pdf: pikepdf.Pdf) -> None:
        spreadsheet_columns(pdf)
        page = pdf.pages[0]
        layer = pdf.make_indirect(Dictionary(Type=Name.OCG, Name="hidden"))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary(OFF=Array([layer])))
        page.obj.Resources.Properties = Dictionary(L=layer)
        page.contents_add(b"/OC /L BDC", prepend=True)
        page.contents_add(b"EMC")

    assert not _figures(read(build))


def test_a_page_of_text_has_no_figure(read: Read) -> None:
    assert not _figures(read(lambda pdf: add_page(pdf, Pen().paragraph(60, 790, 470, 40).bytes())))


def test_fonts_of_the_machine_are_not_used(read: Read) -> None:
    def build(name: str) -> Build:
        def add(pdf: pikepdf.Pdf) -> None:
            spreadsheet_columns(pdf)
            font = pdf.pages[0].obj.Resources.Font.F1
            font.BaseFont, font.FirstChar, font.LastChar = Name(name), 32, 126
            font.Widths = Array([556] * 95)

        return add

    installed, unknown = read(build("/LiberationSans")), read(build("/Nobody"))
    assert _figures(installed)[0].picture == _figures(unknown)[0].picture
