"""Turned, mirrored and cropped displays; what is not shown; what the cache remembers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pikepdf
import pytest

from asset_pipeline.reasons import Reason

N = pikepdf.Name


@pytest.fixture
def codes(noise: Any) -> Any:
    return noise(6, 10, 3)


@pytest.fixture
def image(room: Any, codes: Any) -> Any:
    return room.image(codes.tobytes(), 10, 6, ColorSpace=N.DeviceRGB, BitsPerComponent=8)


@pytest.mark.parametrize("turn", [0, 1, 2, 3])
@pytest.mark.parametrize("mirrored", [False, True])
def test_mirror_comes_before_the_clockwise_turn(room: Any, image: Any, codes: Any, turn: int, mirrored: bool) -> None:
    rendered = room.render(image, turn=turn, mirrored=mirrored)
    expected = np.rot90(codes[:, ::-1] if mirrored else codes, -turn)
    assert (room.samples(rendered.display) == expected).all()
    assert (room.samples(rendered.original) == codes).all()


def test_crop_is_in_the_pictures_own_square_before_turning(room: Any, image: Any, codes: Any) -> None:
    rendered = room.render(image, crop=(0.2, 0.5, 0.7, 1.0), turn=1)
    assert (room.samples(rendered.display) == np.rot90(codes[3:6, 2:7], -1)).all()


def test_crop_widens_to_whole_pixels_and_is_never_empty(room: Any, image: Any, codes: Any) -> None:
    widened = room.render(image, crop=(0.25, 0.0, 0.31, 1.0))
    assert (room.samples(widened.display) == codes[:, 2:4]).all()
    sliver = room.render(image, crop=(0.55, 0.55, 0.55, 0.55))
    assert (room.samples(sliver.display) == codes[3:4, 5:6]).all()


@pytest.mark.parametrize("crop", [(0.0, 0.0, 1.0, 1.0), (1e-9, -1e-9, 1 + 1e-9, 1 - 1e-9)])
def test_whole_crop_is_no_crop(room: Any, image: Any, crop: Any) -> None:
    rendered = room.render(image, crop=crop)
    assert rendered.display == rendered.original


def test_crop_that_is_not_a_number_shows_the_whole(room: Any, image: Any) -> None:
    rendered = room.render(image, crop=(float("nan"), 0.0, 1.0, 1.0))
    assert rendered.display == rendered.original


def test_turned_palette_stays_a_palette(room: Any, noise: Any) -> None:
    codes = noise(5, 8, 1, 4)
    colours = noise(1, 16, 3, seed=2)[0]
    space = pikepdf.Array([N.Indexed, N.DeviceRGB, 15, pikepdf.String(colours.tobytes())])
    packed = (codes[:, ::2, 0] << 4 | codes[:, 1::2, 0]).tobytes()
    rendered = room.render(room.image(packed, 8, 5, ColorSpace=space, BitsPerComponent=4), turn=3)
    assert (rendered.display.mode, rendered.display.bits) == ("P", 4)
    assert (room.samples(rendered.display, "RGB") == np.rot90(colours[codes[:, :, 0]])).all()


def test_picture_that_is_not_shown_has_an_original_and_no_display(room: Any, image: Any) -> None:
    rendered = room.render(image, shown=False, turn=1)
    assert rendered.original.renditions == ["original"]
    assert rendered.display is None
    assert rendered.reason is None


def test_draw_that_the_walker_refused_keeps_its_facts_and_reason(room: Any, image: Any) -> None:
    rendered = room.render(image, refused=Reason.MALFORMED_STREAM)
    assert (rendered.width, rendered.height, rendered.colour_space) == (10, 6, "DeviceRGB")
    assert (rendered.original, rendered.reason) == (None, Reason.MALFORMED_STREAM)


def test_same_placing_is_rendered_once_and_another_placing_again(room: Any, image: Any) -> None:
    first, second = room.render(image), room.render(image)
    assert first is second
    turned = room.render(image, turn=1)
    assert turned is not first
    assert turned.original.sha256 == first.original.sha256


def test_inline_pictures_are_never_taken_for_each_other(room: Any, noise: Any) -> None:
    def inline(seed: int) -> Any:
        stream: Any = pikepdf.Stream(room.pdf, noise(2, 2, 1, seed=seed).tobytes())
        stream.Width, stream.Height, stream.BitsPerComponent, stream.ColorSpace = 2, 2, 8, N.DeviceGray
        return stream

    first, second = room.render(inline(1), object_id=None), room.render(inline(2), object_id=None)
    assert first.original.sha256 != second.original.sha256


def test_the_same_inline_picture_is_rendered_once_however_often_it_is_drawn(room: Any, noise: Any) -> None:
    def inline(bits: int) -> Any:
        stream: Any = pikepdf.Stream(room.pdf, noise(2, 8, 1).tobytes())
        stream.Width, stream.Height, stream.BitsPerComponent, stream.ColorSpace = 2, 2, bits, N.DeviceGray
        return stream

    first = room.render(inline(8), object_id=None)
    assert room.render(inline(8), object_id=None) is first
    assert room.render(inline(4), object_id=None).original.sha256 != first.original.sha256


def test_similar_pictures_have_near_hashes_and_others_far_ones(room: Any, photo: Any) -> None:
    def rendered(picture: Any) -> int:
        data = np.asarray(picture)
        image = room.image(data.tobytes(), data.shape[1], data.shape[0], ColorSpace=N.DeviceRGB, BitsPerComponent=8)
        return int(room.render(image).display.phash, 16)

    here = rendered(photo(160, 120, seed=5))
    brighter = rendered(photo(160, 120, seed=5).point(lambda value: min(255, value + 8)))
    other = rendered(photo(160, 120, seed=6))
    assert (here ^ brighter).bit_count() <= 6 < 16 <= (here ^ other).bit_count()
