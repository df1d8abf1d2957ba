"""Colour: Decode arrays, palettes, ICC profiles and spaces that only a converter knows."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image, ImageCms

from asset_pipeline.extraction.pdf.samples import pack
from asset_pipeline.model import Flag

N = pikepdf.Name


def array(*items: Any) -> pikepdf.Array:
    return pikepdf.Array(list(items))


def profile(room: Any, data: bytes, components: int) -> pikepdf.Array:
    stream: Any = pikepdf.Stream(room.pdf, data)
    stream.N = components
    return array(N.ICCBased, room.pdf.make_indirect(stream))


def srgb() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("decode", [[1, 0], [0, 0.5], [0.25, 0.75]])
def test_decode_array_of_gray_shows_in_the_display_and_not_in_the_original(
    room: Any, noise: Any, bits: int, decode: list[float]
) -> None:
    codes = noise(5, 9, 1, bits)
    image = room.image(
        pack(codes, bits).tobytes(), 9, 5, ColorSpace=N.DeviceGray, BitsPerComponent=bits, Decode=array(*decode)
    )
    plain = room.image(pack(codes, bits).tobytes(), 9, 5, ColorSpace=N.DeviceGray, BitsPerComponent=bits)
    rendered = room.render(image)
    assert rendered.original.sha256 == room.render(plain).original.sha256
    tones = (codes >> 8 if bits == 16 else codes).astype(float) / (255 if bits == 16 else (1 << bits) - 1)
    expected = np.rint((decode[0] + tones * (decode[1] - decode[0])) * 255)
    assert (room.samples(rendered.display, "L") == expected[:, :, 0]).all()


def test_decode_array_that_is_the_default_changes_nothing(room: Any, noise: Any) -> None:
    image = room.image(
        noise(4, 4, 3).tobytes(), 4, 4, ColorSpace=N.DeviceRGB, BitsPerComponent=8, Decode=array(0, 1, 0, 1, 0, 1)
    )
    rendered = room.render(image)
    assert rendered.display == rendered.original


def test_decode_array_inverts_one_component_alone(room: Any, noise: Any) -> None:
    codes = noise(4, 4, 3)
    image = room.image(
        codes.tobytes(), 4, 4, ColorSpace=N.DeviceRGB, BitsPerComponent=8, Decode=array(0, 1, 1, 0, 0, 1)
    )
    expected = codes.copy()
    expected[:, :, 1] = 255 - codes[:, :, 1]
    assert (room.samples(room.render(image).display) == expected).all()


@pytest.mark.parametrize("bits", [1, 2, 4, 8])
@pytest.mark.parametrize("as_stream", [False, True])
def test_palette_of_each_depth_stays_a_palette(room: Any, noise: Any, bits: int, as_stream: bool) -> None:
    codes = noise(6, 11, 1, bits)
    colours = noise(1, 1 << bits, 3, 8, seed=7)[0]
    lookup: Any = pikepdf.String(colours.tobytes())
    if as_stream:
        lookup = pikepdf.Stream(room.pdf, zlib.compress(colours.tobytes()))
        lookup.Filter = N.FlateDecode
        lookup = room.pdf.make_indirect(lookup)
    space = array(N.Indexed, N.DeviceRGB, (1 << bits) - 1, lookup)
    image = room.image(pack(codes, bits).tobytes(), 11, 6, ColorSpace=space, BitsPerComponent=bits)
    rendered = room.render(image)
    assert rendered.colour_space == "Indexed(DeviceRGB)"
    assert rendered.original.mode == "P"
    assert rendered.original.bits == bits
    assert (room.samples(rendered.original) == codes[:, :, 0]).all()
    assert (room.samples(rendered.display, "RGB") == colours[codes[:, :, 0]]).all()


def test_missing_entries_of_a_short_palette_are_black(room: Any) -> None:
    codes = np.arange(8, dtype=np.uint8).reshape(2, 4)
    space = array(N.Indexed, N.DeviceRGB, 7, pikepdf.String(b"\xff\x00\x00\x00\xff\x00\x12"))
    image = room.image(codes.tobytes(), 4, 2, ColorSpace=space, BitsPerComponent=8)
    shown = room.samples(room.render(image).display, "RGB").reshape(-1, 3).tolist()
    assert shown == [[255, 0, 0], [0, 255, 0], [18, 0, 0], *[[0, 0, 0]] * 5]


def test_codes_beyond_a_palette_are_its_last_colour(room: Any) -> None:
    codes = np.array([[0, 1, 2, 3], [4, 7, 9, 15]], np.uint8)
    colours = np.array([(200, 0, 0), (0, 190, 0), (0, 0, 180), (90, 90, 0), (10, 20, 30)], np.uint8)
    space = array(N.Indexed, N.DeviceRGB, 4, pikepdf.String(colours.tobytes()))
    image = room.image(pack(codes[:, :, None], 4).tobytes(), 4, 2, ColorSpace=space, BitsPerComponent=4)
    rendered = room.render(image)
    assert (room.samples(rendered.display, "RGB") == colours[np.minimum(codes, 4)]).all()
    assert (room.samples(rendered.original, "RGB") == colours[np.minimum(codes, 4)]).all()


def test_decode_array_of_a_palette_maps_indices(room: Any, noise: Any) -> None:
    codes = noise(3, 8, 1, 4)
    colours = noise(1, 16, 3, 8, seed=3)[0]
    space = array(N.Indexed, N.DeviceRGB, 15, pikepdf.String(colours.tobytes()))
    image = room.image(pack(codes, 4).tobytes(), 8, 3, ColorSpace=space, BitsPerComponent=4, Decode=array(15, 0))
    shown = room.samples(room.render(image).display, "RGB")
    assert (shown == colours[15 - codes[:, :, 0]]).all()


def test_cmyk_palette_keeps_its_inks_in_the_original_and_shows_rgb(room: Any) -> None:
    inks = np.array([[0, 255, 255, 0], [255, 0, 0, 0], [0, 0, 0, 255], [0, 0, 0, 0]], np.uint8)
    codes = np.array([[0, 1, 2, 3]], np.uint8)
    space = array(N.Indexed, N.DeviceCMYK, 3, pikepdf.String(inks.tobytes()))
    rendered = room.render(room.image(codes.tobytes(), 4, 1, ColorSpace=space, BitsPerComponent=8))
    assert rendered.original.media_type == "image/tiff"
    assert (room.samples(rendered.original)[0] == inks).all()
    red, cyan, black, white = room.samples(rendered.display, "RGB")[0].tolist()
    assert red[0] > 200 > 60 > max(red[1:])
    assert cyan[0] < 60 < 150 < cyan[2]
    assert max(black) < 60
    assert white == [255, 255, 255]


def test_separation_is_gray_tints_in_the_original_and_its_colour_in_the_display(room: Any) -> None:
    tint: Any = pikepdf.Stream(room.pdf, b"{ dup 0 exch dup }")
    tint = pikepdf.Dictionary(FunctionType=2, Domain=array(0, 1), C0=array(1, 1, 1), C1=array(1, 0, 0), N=1)
    space = array(N.Separation, N.Spot, N.DeviceRGB, tint)
    codes = np.array([[0, 128, 255]], np.uint8)
    rendered = room.render(room.image(codes.tobytes(), 3, 1, ColorSpace=space, BitsPerComponent=8))
    assert rendered.colour_space == "Separation"
    assert (room.samples(rendered.original) == codes).all()
    shown = room.samples(rendered.display).astype(int)[0]
    assert np.abs(shown - [[255, 255, 255], [255, 127, 127], [255, 0, 0]]).max() <= 1


def test_lab_keeps_its_codes_and_shows_rgb(room: Any) -> None:
    white = array(0.9505, 1, 1.089)
    space = array(N.Lab, pikepdf.Dictionary(WhitePoint=white, Range=array(-128, 127, -128, 127)))
    codes = np.array([[[255, 128, 128], [0, 128, 128], [137, 208, 195]]], np.uint8)
    rendered = room.render(room.image(codes.tobytes(), 3, 1, ColorSpace=space, BitsPerComponent=8))
    assert (rendered.original.mode, rendered.original.media_type) == ("LAB", "image/tiff")
    assert (room.samples(rendered.original) ^ [0, 128, 128] == codes).all()
    light, dark, red = room.samples(rendered.display, "RGB")[0].tolist()
    assert min(light) > 245
    assert max(dark) < 10
    assert red[0] > 200 > 80 > max(red[1:])


@pytest.mark.parametrize("decode", [None, (100, 0, 100, -100, 100, -100)])
def test_lab_of_16_bits_keeps_them_and_shows_its_range(room: Any, decode: tuple[int, ...] | None) -> None:
    """Colours by the definition of CIELAB; a reader that takes no account of the range is off by 80."""
    lab = np.array([[[60, 0, 0], [53, 80, 67], [45, 20, -60]]], float)
    shares = (lab - [0, -100, -100]) / [100, 200, 200]
    codes = np.rint((shares if decode is None else 1 - shares) * 65535).astype(np.uint16)
    space = array(N.Lab, pikepdf.Dictionary(WhitePoint=array(0.9505, 1, 1.089), Range=array(-100, 100, -100, 100)))
    keys = {"Decode": array(*decode)} if decode else {}
    rendered = room.render(
        room.image(codes.astype(">u2").tobytes(), 3, 1, ColorSpace=space, BitsPerComponent=16, **keys)
    )
    assert (rendered.bits, rendered.original.bits, rendered.original.mode) == (16, 16, "LAB;16")
    stored = zlib.decompress((room.out / rendered.original.file).read_bytes()[8:])
    assert (np.frombuffer(stored, "<u2").reshape(codes.shape) ^ [0, 0x8000, 0x8000] == codes).all()
    shown = room.samples(rendered.display, "RGB")[0].astype(int)
    assert np.abs(shown - [[145, 145, 145], [254, 0, 0], [47, 101, 208]]).max() <= 8


@pytest.mark.parametrize("family", ["CalRGB", "CalGray"])
def test_calibrated_samples_are_shown_as_they_are(room: Any, noise: Any, family: str) -> None:
    components = 3 if family == "CalRGB" else 1
    codes = noise(3, 4, components)
    space = array(N("/" + family), pikepdf.Dictionary(WhitePoint=array(0.95, 1, 1.09)))
    rendered = room.render(room.image(codes.tobytes(), 4, 3, ColorSpace=space, BitsPerComponent=8))
    assert rendered.colour_space == family
    assert rendered.display == rendered.original
    assert (room.samples(rendered.display).reshape(codes.shape) == codes).all()


def test_srgb_profile_is_embedded_and_the_original_is_the_display(room: Any, noise: Any) -> None:
    codes, data = noise(4, 5, 3), srgb()  # once: a profile holds the second in which it was made
    image = room.image(codes.tobytes(), 5, 4, ColorSpace=profile(room, data, 3), BitsPerComponent=8)
    rendered = room.render(image)
    assert rendered.colour_space == "ICCBased(3)"
    assert rendered.display == rendered.original
    assert rendered.original.icc is not None and "sRGB" in rendered.original.icc
    assert room.open(rendered.original).info["icc_profile"] == data
    assert rendered.flags == frozenset()


def test_other_profile_is_kept_in_the_original_and_converted_in_the_display(
    room: Any, noise: Any, linear_profile: bytes
) -> None:
    codes = noise(4, 5, 3)
    image = room.image(codes.tobytes(), 5, 4, ColorSpace=profile(room, linear_profile, 3), BitsPerComponent=8)
    rendered = room.render(image)
    original = room.open(rendered.original)
    assert (np.asarray(original) == codes).all()
    assert original.info["icc_profile"] == linear_profile
    assert rendered.display.icc is None
    lighter = room.samples(rendered.display).astype(int).mean() - codes.astype(int).mean()
    assert lighter > 20


@pytest.mark.parametrize("data", [b"", b"not a profile" * 20, srgb()[:200], srgb().replace(b"RGB ", b"CMYK")])
def test_corrupt_profile_falls_back_by_components_and_says_so(room: Any, noise: Any, data: bytes) -> None:
    codes = noise(4, 5, 3)
    image = room.image(codes.tobytes(), 5, 4, ColorSpace=profile(room, data, 3), BitsPerComponent=8)
    rendered = room.render(image)
    assert rendered.reason is None
    assert rendered.flags == {Flag.COLOUR_FALLBACK}
    assert (room.samples(rendered.display) == codes).all()
    assert rendered.original.icc is None


def test_corrupt_profile_falls_back_to_the_alternate_that_the_document_names(room: Any, noise: Any) -> None:
    codes = noise(4, 5, 3)
    lab = array(N.Lab, pikepdf.Dictionary(WhitePoint=array(0.9505, 1, 1.089)))
    space = profile(room, b"no profile", 3)
    space[1].Alternate = lab
    shown, expected = (
        room.render(room.image(codes.tobytes(), 5, 4, ColorSpace=given, BitsPerComponent=8)) for given in (space, lab)
    )
    assert shown.flags == {Flag.COLOUR_FALLBACK}
    assert (room.samples(shown.display) == room.samples(expected.display)).all()


def test_profile_stream_that_does_not_inflate_is_a_corrupt_profile(room: Any, noise: Any) -> None:
    space = profile(room, b"\x78\x9c" + b"\xff" * 40, 1)
    space[1].Filter = N.FlateDecode
    image = room.image(noise(2, 2).tobytes(), 2, 2, ColorSpace=space, BitsPerComponent=8)
    assert room.render(image).flags == {Flag.COLOUR_FALLBACK}


def test_cmyk_keeps_its_inks_and_shows_rgb(room: Any) -> None:
    codes = np.array([[[0, 255, 255, 0], [0, 0, 0, 255], [0, 0, 0, 0]]], np.uint8)
    rendered = room.render(room.image(codes.tobytes(), 3, 1, ColorSpace=N.DeviceCMYK, BitsPerComponent=8))
    assert rendered.original.media_type == "image/tiff"
    assert (room.samples(rendered.original) == codes).all()
    red, black, white = room.samples(rendered.display)[0].tolist()
    assert red[0] > 200 > 60 > max(red[1:])
    assert max(black) < 60
    assert white == [255, 255, 255]


def test_cmyk_larger_than_a_band_is_converted_in_bands_without_a_seam(room: Any, noise: Any) -> None:
    from asset_pipeline.extraction.pdf.colour import CMYK
    from asset_pipeline.extraction.pdf.convert import to_shown

    codes = np.tile(noise(1, 2100, 4), (2100, 1, 1))
    shown = to_shown(codes, 8, CMYK, None)
    assert shown.shape == (2100, 2100, 3)
    assert (shown == shown[:1]).all()


@pytest.mark.parametrize("bits", [1, 4, 8])
def test_one_bit_cmyk_and_others_scale_without_loss(room: Any, noise: Any, bits: int) -> None:
    codes = noise(3, 5, 4, bits)
    image = room.image(pack(codes, bits).tobytes(), 5, 3, ColorSpace=N.DeviceCMYK, BitsPerComponent=bits)
    rendered = room.render(image)
    assert (room.samples(rendered.original) == codes * (255 // ((1 << bits) - 1))).all()


def test_display_of_a_palette_in_other_colours_is_one_conversion_an_entry(room: Any, noise: Any) -> None:
    codes = noise(4, 6, 1, 8)
    inks = noise(1, 256, 4, 8, seed=5)[0]
    space = array(N.Indexed, N.DeviceCMYK, 255, pikepdf.String(inks.tobytes()))
    indexed = room.render(room.image(codes.tobytes(), 6, 4, ColorSpace=space, BitsPerComponent=8))
    direct = room.render(room.image(inks[codes[:, :, 0]].tobytes(), 6, 4, ColorSpace=N.DeviceCMYK, BitsPerComponent=8))
    assert (room.samples(indexed.display, "RGB") == room.samples(direct.display, "RGB")).all()


def test_abbreviated_names_of_colour_spaces_are_understood(room: Any, noise: Any) -> None:
    space = array(N.I, N.RGB, 1, pikepdf.String(b"\x00\x00\x00\xff\xff\xff"))
    image = room.image(noise(2, 8, 1, 1).tobytes()[:2], 8, 2, ColorSpace=space, BitsPerComponent=1)
    assert room.render(image).colour_space == "Indexed(DeviceRGB)"


def test_gray_png_modes_open_as_stated(room: Any, noise: Any) -> None:
    image = room.image(noise(2, 2).tobytes(), 2, 2, ColorSpace=N.DeviceGray, BitsPerComponent=8)
    picture = room.render(image).original
    with Image.open(room.out / picture.file) as opened:
        assert (opened.format, opened.mode, picture.media_type) == ("PNG", "L", "image/png")
