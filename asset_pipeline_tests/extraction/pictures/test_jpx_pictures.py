"""JPEG 2000: the bytes pass through, the display is PNG, what is missing is noticed."""

from __future__ import annotations

import io
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
    picture.save(out, "JPEG2000", **({"irreversible": False} | options))
    return out.getvalue()


def jpx_image(room: Any, data: bytes, picture: Image.Image, **keys: Any) -> Any:
    return room.image(data, picture.width, picture.height, **({"Filter": N.JPXDecode} | keys))


@pytest.mark.parametrize("mode", ["L", "RGB"])
@pytest.mark.parametrize("declared", [False, True])
def test_lossless_jpx_shows_exact_samples(room: Any, photo: Any, mode: str, declared: bool) -> None:
    picture = photo(mode=mode)
    data = encoded(picture)
    space = {"L": N.DeviceGray, "RGB": N.DeviceRGB}[mode]
    keys = {"ColorSpace": space, "BitsPerComponent": 8} if declared else {}
    rendered = room.render(jpx_image(room, data, picture, **keys))
    assert (room.out / rendered.original.file).read_bytes() == data
    assert (rendered.original.media_type, rendered.original.mode, rendered.bits) == ("image/jp2", mode, 8)
    assert rendered.display.media_type == "image/png"
    assert (room.samples(rendered.display) == np.asarray(picture)).all()


def test_bare_codestream_is_kept_and_opens(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture, no_jp2=True)
    assert data[:4] == b"\xff\x4f\xff\x51"
    rendered = room.render(jpx_image(room, data, picture, ColorSpace=N.DeviceRGB))
    assert (room.samples(rendered.original) == np.asarray(picture)).all()
    assert (room.samples(rendered.display) == np.asarray(picture)).all()


def test_flate_around_jpx_is_taken_off(room: Any, photo: Any) -> None:
    picture = photo()
    data = encoded(picture)
    filters = pikepdf.Array([N.FlateDecode, N.JPXDecode])
    rendered = room.render(jpx_image(room, zlib.compress(data), picture, Filter=filters))
    assert rendered.filter == ["FlateDecode", "JPXDecode"]
    assert (room.out / rendered.original.file).read_bytes() == data


def test_alpha_in_the_data_counts_only_when_the_dictionary_says_so(room: Any, photo: Any) -> None:
    picture = photo()
    alpha = Image.linear_gradient("L").resize(picture.size)
    picture.putalpha(alpha)
    data = encoded(picture)
    ignored = room.render(jpx_image(room, data, picture, ColorSpace=N.DeviceRGB))
    assert room.open(ignored.display).mode == "RGB"
    used = room.render(jpx_image(room, data, picture, ColorSpace=N.DeviceRGB, SMaskInData=1))
    assert room.open(used.display).mode == "RGBA"
    assert (room.samples(used.display) == np.asarray(picture)).all()


@pytest.mark.parametrize("declared", [False, True])
def test_decode_of_one_component_counts_where_a_space_is_declared_as_in_viewers(
    room: Any, photo: Any, declared: bool
) -> None:
    picture = photo(mode="L")
    keys = {"ColorSpace": N.DeviceGray} if declared else {}
    image = jpx_image(room, encoded(picture), picture, Decode=pikepdf.Array([1, 0]), **keys)
    shown = room.samples(room.render(image).display)
    assert (shown == (255 - np.asarray(picture) if declared else np.asarray(picture))).all()


def test_premultiplied_alpha_in_the_data_is_undone(room: Any) -> None:
    samples = np.zeros((8, 8, 4), np.uint8)
    samples[:] = (100, 50, 0, 128)
    picture = Image.fromarray(samples, "RGBA")
    rendered = room.render(jpx_image(room, encoded(picture), picture, ColorSpace=N.DeviceRGB, SMaskInData=2))
    assert room.samples(rendered.display)[0, 0].tolist() == [199, 100, 0, 128]


def test_sixteen_bits_are_shown_in_eight(room: Any) -> None:
    ramp = (np.arange(64, dtype=np.uint16) * 1023).reshape(8, 8)
    picture = Image.fromarray(ramp)
    rendered = room.render(jpx_image(room, encoded(picture), picture, ColorSpace=N.DeviceGray))
    assert rendered.original.bits == 16
    assert np.abs(room.samples(rendered.display, "L").astype(int) - (ramp >> 8)).max() <= 1


def test_indices_in_jpx_are_looked_up_in_the_palette(room: Any, noise: Any) -> None:
    codes = noise(16, 16, 1, 2)[:, :, 0]
    picture = Image.fromarray(codes)
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9]], np.uint8)
    space = pikepdf.Array([N.Indexed, N.DeviceRGB, 3, pikepdf.String(colours.tobytes())])
    rendered = room.render(jpx_image(room, encoded(picture), picture, ColorSpace=space))
    assert (room.samples(rendered.display, "RGB") == colours[codes]).all()


@pytest.mark.parametrize("share", [0.3, 0.6, 0.97])
def test_cut_jpx_is_truncated(room: Any, photo: Any, share: float) -> None:
    picture = photo()
    data = encoded(picture)
    assert room.render(jpx_image(room, data[: int(len(data) * share)], picture)).reason is Reason.TRUNCATED_STREAM


def test_header_of_the_data_beyond_the_budget_is_refused_before_decoding(room: Any, photo: Any) -> None:
    picture = photo()
    data = bytearray(encoded(picture))
    at = data.index(b"\xff\x51") + 6
    data[at : at + 8] = (60000).to_bytes(4, "big") * 2
    assert room.render(jpx_image(room, bytes(data), picture)).reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_other_data_under_jpx_is_a_signature_mismatch(room: Any, photo: Any) -> None:
    image = jpx_image(room, b"\x89PNG\r\n\x1a\n" + bytes(40), photo())
    assert room.render(image).reason is Reason.SIGNATURE_MISMATCH
