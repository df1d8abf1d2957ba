"""CCITT and JBIG2: every variant exact, every bad row refused."""

from __future__ import annotations

import io
import random
import struct
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image, ImageDraw

from asset_pipeline.reasons import Reason

N = pikepdf.Name
WIDTH, HEIGHT = 100, 60


@pytest.fixture
def page() -> Image.Image:
    """Black marks on white, mode 1 (True is white)."""
    picture = Image.new("1", (WIDTH, HEIGHT), 1)
    draw = ImageDraw.Draw(picture)
    draw.rectangle([8, 8, 40, 30], fill=0)
    for x in range(50, 95, 7):
        draw.ellipse([x, 10 + x // 3, x + 5, 18 + x // 3], fill=0)
    draw.line([0, 59, 99, 40], fill=0)
    return picture


def fax(picture: Image.Image, kind: str, **tags: Any) -> bytes:
    """Fax data in which black pixels are black runs."""
    inverted = Image.fromarray(~np.asarray(picture))  # Pillow writes True as a black run
    out = io.BytesIO()
    inverted.save(out, "TIFF", compression=kind, strip_size=2**30, tiffinfo=tags.get("tags", {}))
    with Image.open(io.BytesIO(out.getvalue())) as opened:
        offset, size = opened.tag_v2[273][0], opened.tag_v2[279][0]  # type: ignore[attr-defined]
    return out.getvalue()[offset : offset + size]


def aligned_rows(picture: Image.Image) -> bytes:
    """Group 4 with each row on a byte of its own: rows encoded two by two share their reference."""
    from asset_pipeline.extraction.pdf.fax_codes import _BLACK, _BLACK_MAKE_UP, _WHITE, _WHITE_MAKE_UP, _runs

    white = {run: code for code, run in _runs(_WHITE, _WHITE_MAKE_UP).items()}
    black = {run: code for code, run in _runs(_BLACK, _BLACK_MAKE_UP).items()}
    data = b""
    for row in np.asarray(picture):
        text, at, colour = "", 0, True
        while at < len(row):
            end = at
            while end < len(row) and row[end] == colour:
                end += 1
            run, codes = end - at, white if colour else black
            text += codes[run // 64 * 64] * (run >= 64) + codes[run % 64]
            at, colour = end, not colour
        text += "0" * (-len(text) % 8)
        data += int(text, 2).to_bytes(len(text) // 8, "big")
    return data


def fax_image(room: Any, data: bytes, **parms: Any) -> Any:
    keys = {"Columns": WIDTH, "Rows": HEIGHT} | parms
    return room.image(
        data,
        WIDTH,
        HEIGHT,
        ColorSpace=N.DeviceGray,
        BitsPerComponent=1,
        Filter=N.CCITTFaxDecode,
        DecodeParms=pikepdf.Dictionary({"/" + key: value for key, value in keys.items() if value is not None}),
    )


VARIANTS: dict[str, Any] = {
    "group 4": (lambda page: fax(page, "group4"), {"K": -1}),
    "group 4 without end": (lambda page: fax(page, "group4")[:-3], {"K": -1}),
    "group 4 with a tail": (lambda page: fax(page, "group4") + b"\0\r\n", {"K": -1}),
    "group 4, Rows absent": (lambda page: fax(page, "group4"), {"K": -1, "Rows": None}),
    "group 4, Rows too small": (lambda page: fax(page, "group4"), {"K": -1, "Rows": 10}),
    "group 3": (lambda page: fax(page, "group3"), {"K": 0, "EndOfLine": True}),
    "group 3, unstated end of lines": (lambda page: fax(page, "group3"), {}),
    "group 3, two dimensions": (lambda page: fax(page, "group3", tags={292: 1}), {"K": 4, "EndOfLine": True}),
    "group 3, byte-aligned ends": (lambda page: fax(page, "group3", tags={292: 4}), {"K": 0, "EndOfLine": True}),
    "group 3, byte-aligned ends, said so": (
        lambda page: fax(page, "group3", tags={292: 4}),
        {"K": 0, "EndOfLine": True, "EncodedByteAlign": True},
    ),
    "runs on whole bytes": (aligned_rows, {"K": 0, "EncodedByteAlign": True}),
}


@pytest.mark.parametrize("black_is_1", [False, True])
@pytest.mark.parametrize("name", VARIANTS)
def test_each_kind_of_fax_data_gives_the_exact_rows(room: Any, page: Any, name: str, black_is_1: bool) -> None:
    encode, parms = VARIANTS[name]
    rendered = room.render(fax_image(room, encode(page), BlackIs1=black_is_1, **parms))
    assert rendered.reason is None
    assert (rendered.original.mode, rendered.original.bits) == ("1", 1)
    assert rendered.display == rendered.original
    expected = ~np.asarray(page) if black_is_1 else np.asarray(page)
    assert (room.samples(rendered.original) == expected).all()


def test_page_wider_than_a_make_up_code_and_random_dots_are_exact(room: Any) -> None:
    dots = np.random.default_rng(2).random((12, 3000)) < 0.02
    dots[3] = False
    page = Image.fromarray(~dots)
    image = fax_image(room, fax(page, "group4"), K=-1, Columns=3000, Rows=12)
    image.Width, image.Height = 3000, 12
    assert (room.samples(room.render(image).original) == ~dots).all()


def test_columns_beyond_the_width_are_cut(room: Any, page: Any) -> None:
    image = fax_image(room, fax(page, "group4"), K=-1)
    image.Width = 64
    assert (room.samples(room.render(image).original) == np.asarray(page)[:, :64]).all()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["group4", "group3"])
def test_cut_fax_data_is_truncated(room: Any, page: Any, kind: str, share: float) -> None:
    data = fax(page, kind)
    image = fax_image(room, data[: int(len(data) * share)], K=-1 if kind == "group4" else 0)
    assert room.render(image).reason is Reason.TRUNCATED_STREAM


def test_corrupted_fax_rows_are_not_painted_white(room: Any, page: Any) -> None:
    data = fax(page, "group4")
    chance = random.Random(4)
    caught = 0
    for _ in range(100):
        bad = bytearray(data)
        for _ in range(3):
            bad[chance.randrange(len(bad) - 4)] = chance.randrange(256)
        if bytes(bad) == data:
            continue
        rendered = room.render(fax_image(room, bytes(bad), K=-1))
        caught += rendered.reason in (Reason.MALFORMED_STREAM, Reason.TRUNCATED_STREAM)
    assert caught >= 95


def test_fax_with_more_rows_than_its_end_marker_allows_is_truncated(room: Any, page: Any) -> None:
    image = fax_image(room, fax(page, "group4"), K=-1)
    image.Height = HEIGHT + 5
    assert room.render(image).reason is Reason.TRUNCATED_STREAM


def jbig2(page: Image.Image, *, cut: int = 0) -> bytes:
    """A JBIG2 page with one generic region of Group 4 data (MMR)."""
    body = fax(page, "group4")[: None if not cut else -cut]
    region = struct.pack(">IIIIB", WIDTH, HEIGHT, 0, 0, 0) + b"\x01" + body
    info = struct.pack(">IIIIBH", WIDTH, HEIGHT, 0, 0, 0, 0)
    whole = len(region) + cut
    return struct.pack(">IBBBI", 0, 48, 0, 1, len(info)) + info + struct.pack(">IBBBI", 1, 38, 0, 1, whole) + region


def jbig2_image(room: Any, data: bytes, **keys: Any) -> Any:
    keys = {"ColorSpace": N.DeviceGray, "BitsPerComponent": 1, "Filter": N.JBIG2Decode} | keys
    return room.image(data, WIDTH, HEIGHT, **keys)


def test_jbig2_gives_the_exact_page(room: Any, page: Any) -> None:
    rendered = room.render(jbig2_image(room, jbig2(page)))
    assert (rendered.original.mode, rendered.original.media_type) == ("1", "image/png")
    assert (room.samples(rendered.original) == np.asarray(page)).all()


def test_jbig2_globals_are_gated_and_decoded_with_the_page(room: Any, page: Any) -> None:
    comment = struct.pack(">IBBBI", 9, 62, 0, 0, 4) + struct.pack(">I", 0x20000000)
    for shared, reason in ((comment, None), (comment[:-2], Reason.TRUNCATED_STREAM)):
        stream = room.pdf.make_indirect(pikepdf.Stream(room.pdf, shared))
        image = jbig2_image(room, jbig2(page), DecodeParms=pikepdf.Dictionary(JBIG2Globals=stream))
        rendered = room.render(image)
        assert rendered.reason is reason
        if reason is None:
            assert (room.samples(rendered.original) == np.asarray(page)).all()


def test_empty_jbig2_globals_are_none(room: Any, page: Any) -> None:
    shared = room.pdf.make_indirect(pikepdf.Stream(room.pdf, b""))
    rendered = room.render(jbig2_image(room, jbig2(page), DecodeParms=pikepdf.Dictionary(JBIG2Globals=shared)))
    assert (room.samples(rendered.original) == np.asarray(page)).all()


@pytest.mark.parametrize("black", [False, True])
def test_a_jbig2_page_that_ends_without_a_region_is_blank(room: Any, black: bool) -> None:
    info = struct.pack(">IIIIBH", WIDTH, HEIGHT, 0, 0, 4 if black else 0, 0)
    data = struct.pack(">IBBBI", 0, 48, 0, 1, len(info)) + info + struct.pack(">IBBBI", 1, 49, 0, 1, 0)
    rendered = room.render(jbig2_image(room, data))
    assert (room.samples(rendered.original) == (not black)).all()


@pytest.mark.parametrize("cut", [1, 30])
def test_cut_jbig2_is_truncated(room: Any, page: Any, cut: int) -> None:
    assert room.render(jbig2_image(room, jbig2(page, cut=cut))).reason is Reason.TRUNCATED_STREAM


def test_jbig2_with_a_page_beyond_the_budget_is_refused_before_decoding(room: Any, page: Any) -> None:
    data = bytearray(jbig2(page))
    data[11:19] = struct.pack(">II", 60000, 60000)
    assert room.render(jbig2_image(room, bytes(data))).reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_jbig2_stencil_paints_black_samples(room: Any, page: Any) -> None:
    image = jbig2_image(room, jbig2(page), ImageMask=True)
    rendered = room.render(image)
    assert (room.samples(rendered.original) == np.asarray(page)).all()
