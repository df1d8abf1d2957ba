"""JPEG: passed through untouched, believed only when every scan byte decodes."""

from __future__ import annotations

import io
import random
import zlib
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image

from asset_pipeline.reasons import Reason

N = pikepdf.Name


def encoded(picture: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", **({"quality": 90} | options))
    return out.getvalue()


def jpeg_image(room: Any, data: bytes, picture: Image.Image, **keys: Any) -> Any:
    space = {"L": N.DeviceGray, "RGB": N.DeviceRGB, "CMYK": N.DeviceCMYK}[picture.mode]
    keys = {"ColorSpace": space, "BitsPerComponent": 8, "Filter": N.DCTDecode} | keys
    return room.image(data, picture.width, picture.height, **keys)


def stored(room: Any, picture: Any) -> bytes:
    return (room.out / picture.file).read_bytes()


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}, {"restart_marker_blocks": 3}])
def test_gray_and_rgb_pass_through_as_original_and_display(
    room: Any, photo: Any, mode: str, options: dict[str, Any]
) -> None:
    picture = photo(mode=mode)
    data = encoded(picture, **options)
    rendered = room.render(jpeg_image(room, data, picture))
    assert rendered.display == rendered.original
    assert stored(room, rendered.original) == data
    assert rendered.original.media_type == "image/jpeg"
    assert rendered.original.pixel_sha256 is None
    assert rendered.original.phash is not None


def test_pixels_are_hashed_when_asked_for(room: Any, photo: Any) -> None:
    import hashlib

    picture = photo()
    data = encoded(picture)
    rendered = room.render(jpeg_image(room, data, picture), pixels=True)
    assert rendered.original.pixel_sha256 == hashlib.sha256(Image.open(io.BytesIO(data)).tobytes()).hexdigest()


@pytest.mark.parametrize("wrap", ["Flate", "Hex"])
def test_outer_filters_are_taken_off(room: Any, photo: Any, wrap: str) -> None:
    picture = photo()
    data = encoded(picture)
    outer = zlib.compress(data) if wrap == "Flate" else data.hex().encode() + b">"
    name = N.FlateDecode if wrap == "Flate" else N.ASCIIHexDecode
    image = jpeg_image(room, outer, picture, Filter=pikepdf.Array([name, N.DCTDecode]))
    rendered = room.render(image)
    assert rendered.filter == [str(name)[1:], "DCTDecode"]
    assert stored(room, rendered.original) == data


def test_decode_array_keeps_the_bytes_and_inverts_the_display(room: Any, photo: Any) -> None:
    picture = photo(mode="L")
    data = encoded(picture)
    rendered = room.render(jpeg_image(room, data, picture, Decode=pikepdf.Array([1, 0])))
    assert stored(room, rendered.original) == data
    expected = 255 - np.asarray(Image.open(io.BytesIO(data))).astype(int)
    assert (room.samples(rendered.display) == expected).all()


@pytest.mark.parametrize("decode", [None, [1, 0] * 4])
def test_cmyk_is_kept_and_shown_by_the_rules_of_the_page(room: Any, decode: list[int] | None) -> None:
    # Pillow writes Adobe CMYK inverted, so the stored samples are 255 - ink.
    red = Image.merge("CMYK", [Image.new("L", (32, 32), ink) for ink in (0, 255, 255, 0)])
    data = encoded(red)
    keys = {} if decode is None else {"Decode": pikepdf.Array(decode)}
    rendered = room.render(jpeg_image(room, data, red, **keys))
    assert stored(room, rendered.original) == data
    assert rendered.original.mode == "CMYK"
    shown = room.samples(rendered.display)[16, 16].tolist()
    if decode:
        assert shown[0] > 200 > 60 > max(shown[1:])
    else:
        assert max(shown) < 60  # cyan and black inks


@pytest.mark.parametrize(
    ("exif", "passes"), [(0, True), (1, True), (6, False)], ids=["none", "upright", "turned by its metadata"]
)
def test_orientation_metadata_that_viewers_of_pdf_ignore_is_not_in_the_display(
    room: Any, photo: Any, exif: int, passes: bool
) -> None:
    picture = photo()
    tags = Image.Exif()
    if exif:
        tags[0x0112] = exif
    rendered = room.render(jpeg_image(room, encoded(picture, exif=tags), picture))
    assert (rendered.display == rendered.original) is passes
    assert (rendered.display.width, rendered.display.height) == picture.size


def test_size_of_the_data_counts_where_the_dictionary_differs(room: Any, photo: Any) -> None:
    picture = photo()
    image = jpeg_image(room, encoded(picture), picture, Width=50)
    rendered = room.render(image)
    assert rendered.width == 50
    assert (rendered.original.width, rendered.original.height) == picture.size
    assert rendered.display.media_type == "image/png"


def test_components_of_the_data_count_where_the_colour_space_differs(room: Any, photo: Any) -> None:
    picture = photo(mode="L")
    rendered = room.render(jpeg_image(room, encoded(picture), picture, ColorSpace=N.DeviceRGB))
    assert rendered.reason is None
    assert rendered.original.mode == "L"
    assert {flag.value for flag in rendered.flags} == {"colour_fallback"}


def test_colour_transform_of_the_parameters_counts_without_an_adobe_marker(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture, subsampling=0)
    parms = pikepdf.Dictionary(ColorTransform=0)
    rendered = room.render(jpeg_image(room, data, picture, DecodeParms=parms))
    assert stored(room, rendered.original) == data
    raw = Image.open(io.BytesIO(data))
    raw.draft("YCbCr", raw.size)
    assert np.abs(room.samples(rendered.display).astype(int) - np.asarray(raw).astype(int)).max() <= 1


def test_white_space_before_the_start_is_forgiven(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture)
    assert stored(room, room.render(jpeg_image(room, b"\r\n" + data, picture)).original) == data


def test_bytes_behind_the_end_are_kept_and_harmless(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture) + b"\r\n\0\0\0"
    assert stored(room, room.render(jpeg_image(room, data, picture)).original) == data


def test_archive_hidden_behind_the_end_is_refused(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture) + b"PK\x03\x04 and so on"
    assert room.render(jpeg_image(room, data, picture)).reason is Reason.TRAILING_DATA


@pytest.mark.parametrize("progressive", [False, True])
def test_corrupted_scans_are_not_laundered(room: Any, photo: Any, progressive: bool) -> None:
    picture = photo(320, 240)
    data = encoded(picture, progressive=progressive)
    start = data.index(b"\xff\xda") + 12
    chance = random.Random(3)
    caught = 0
    for _ in range(200):
        bad = bytearray(data)
        for _ in range(8):
            bad[chance.randrange(start, len(bad) - 2)] = chance.randrange(256)
        rendered = room.render(jpeg_image(room, bytes(bad), picture))
        if rendered.reason is not None:
            assert rendered.reason in (Reason.MALFORMED_STREAM, Reason.TRUNCATED_STREAM)
            assert rendered.original is rendered.display is None
            caught += 1
    assert caught >= 190


@pytest.mark.parametrize("share", [0.2, 0.66, 0.95])
def test_cut_jpeg_is_truncated_even_with_an_end_marker_added(room: Any, photo: Any, share: float) -> None:
    picture = photo(320, 240)
    data = encoded(picture)
    cut = data[: int(len(data) * share)]
    assert room.render(jpeg_image(room, cut, picture)).reason is Reason.TRUNCATED_STREAM
    ended = room.render(jpeg_image(room, cut + b"\xff\xd9", picture)).reason
    assert ended in (Reason.TRUNCATED_STREAM, Reason.MALFORMED_STREAM)


def test_zeros_that_scanners_write_before_the_end_are_forgiven(room: Any, photo: Any) -> None:
    picture = photo(mode="L")
    data = encoded(picture)
    padded = data[:-2] + b"\0\0\0\0" + data[-2:]
    assert room.render(jpeg_image(room, padded, picture)).reason is None


def test_profile_in_the_file_that_the_page_ignores_is_not_in_the_display(
    room: Any, photo: Any, linear_profile: bytes
) -> None:
    picture = photo()
    rendered = room.render(jpeg_image(room, encoded(picture, icc_profile=linear_profile), picture))
    assert rendered.original.icc is not None
    assert rendered.display.media_type == "image/png"
    assert rendered.display.icc is None
