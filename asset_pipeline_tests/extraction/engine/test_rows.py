"""Rows: sizes on paper, statuses in their order of precedence, texts made harmless."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from asset_pipeline.extraction.rows import Found, Gallery, placement_row, plain_text
from asset_pipeline.model import Flag, Kind, Picture, Placement, Status
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason


def _picture(letter: str, rendition: str) -> Picture:
    return Picture.model_validate(
        {
            "sha256": letter * 64, "file": f"{letter * 64}.png", "renditions": [rendition], "media_type": "image/png",
            "bytes": 1, "width": 60, "height": 40, "bits": 8, "mode": "RGB", "has_alpha": False, "icc": None,
            "pixel_sha256": None, "phash": None,
        }
    )  # fmt: skip


FOUND = Found(
    kind=Kind.RASTER,
    order=3,
    object_id=12,
    width=60,
    height=40,
    filter=["DCTDecode"],
    colour_space="DeviceRGB",
    bits=8,
    matrix=(120.0, 0.0, 0.0, 80.0, 20.0, 20.0),
    bbox=(20.0, 20.0, 140.0, 100.0),
    display_bbox=(20.0, 100.0, 140.0, 180.0),
    visible=1.0,
    shown=True,
    flags=frozenset(),
    original=_picture("a", "original"),
    display=_picture("b", "display"),
    reason=None,
)


def _row(found: Found = FOUND, *, gallery: Gallery | None = None, pages: int = 9, user_unit: float = 1.0) -> Placement:
    gallery = gallery or Gallery()
    return placement_row(found, gallery, page=1, pages=pages, user_unit=user_unit, policy=Policy())


def test_the_example_of_the_report_format() -> None:
    row = _row()
    assert row.name == "page-001-image-003"
    assert row.ppi == (36.0, 36.0)
    assert row.print_mm == (42.33, 28.22)
    assert (row.picture, row.display, row.status) == ("a" * 64, "b" * 64, Status.ARCHIVED)


def test_names_of_long_documents_sort() -> None:
    assert _row(pages=5000).name == "page-0001-image-003"


def test_sizes_on_paper_follow_the_turn_and_the_unit_of_the_page() -> None:
    turned = replace(FOUND, matrix=(0.0, 120.0, -80.0, 0.0, 100.0, 20.0))
    assert _row(turned).ppi == (36.0, 36.0)
    assert _row(FOUND, user_unit=2.0).ppi == (18.0, 18.0)
    assert _row(FOUND, user_unit=2.0).print_mm == (84.67, 56.44)


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.ARCHIVED),
        ({"bbox": (0.0, 0.0, 200.0, 5.9)}, Status.DECORATIVE),
        ({"bbox": (0.0, 0.0, 200.0, 6.0)}, Status.ARCHIVED),
        ({"bbox": (0.0, 0.0, 200.0, 5.9), "shown": False}, Status.NOT_SHOWN),
        ({"shown": False, "display": None}, Status.NOT_SHOWN),
        ({"shown": False, "reason": Reason.MALFORMED_STREAM}, Status.QUARANTINED),
        ({"display": None}, Status.QUARANTINED),
        ({"original": None}, Status.QUARANTINED),
    ],
)
def test_a_status_has_its_precedence(changes: dict[str, object], status: Status) -> None:
    gallery = Gallery()
    row = _row(replace(FOUND, **changes), gallery=gallery)  # type: ignore[arg-type]
    assert row.status is status
    assert (row.reason is not None) == (status is Status.QUARANTINED)
    assert (row.picture is None) == (status is Status.QUARANTINED)
    assert (row.display is None) == (status in (Status.QUARANTINED, Status.NOT_SHOWN))
    assert set(gallery.pictures) == {digest for digest in (row.picture, row.display) if digest}


def test_one_file_that_serves_twice_is_listed_once_with_both_renditions() -> None:
    gallery = Gallery()
    _row(replace(FOUND, display=_picture("a", "display")), gallery=gallery)
    _row(replace(FOUND, display=_picture("a", "display")), gallery=gallery)
    (picture,) = gallery.pictures.values()
    assert picture.renditions == ["original", "display"]


def test_numbers_of_a_document_are_finite_and_equal_when_they_look_equal() -> None:
    wild = replace(
        FOUND, matrix=(math.inf, math.nan, -0.0, 0.0, 0.0, 0.0), bbox=(math.nan, 0.0, 1.0, math.inf), visible=math.nan
    )
    row = _row(wild)
    assert Placement.model_validate_json(row.model_dump_json()) == row
    assert "-0.0" not in row.model_dump_json()
    assert row.ppi == (0.0, 0.0)


def test_flags_have_one_order() -> None:
    row = _row(replace(FOUND, flags=frozenset({Flag.MIRRORED, Flag.CLIPPED, Flag.SOFT_MASK})))
    assert row.flags == [Flag.CLIPPED, Flag.MIRRORED, Flag.SOFT_MASK]


def test_texts_of_a_document_are_short_and_printable() -> None:
    assert plain_text("a\x00b\nc\udcffd") == "a b c?d"
    assert plain_text("x" * 1000) == "x" * 200
    assert plain_text(None) is None
