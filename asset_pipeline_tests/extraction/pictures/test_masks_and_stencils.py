"""Transparency: soft masks, explicit masks, colour keys, mattes; and stencils with their paint."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pikepdf
import pytest

from asset_pipeline.extraction.pdf.draws import Paint
from asset_pipeline.extraction.pdf.samples import pack
from asset_pipeline.model import Kind
from asset_pipeline.reasons import Reason

N = pikepdf.Name


def gray(room: Any, alpha: Any, **keys: Any) -> Any:
    return room.image(
        alpha.tobytes(), alpha.shape[1], alpha.shape[0], ColorSpace=N.DeviceGray, BitsPerComponent=8, **keys
    )


def rgb(room: Any, codes: Any, **keys: Any) -> Any:
    return room.image(
        codes.tobytes(), codes.shape[1], codes.shape[0], ColorSpace=N.DeviceRGB, BitsPerComponent=8, **keys
    )


def stencil(room: Any, flags: Any, **keys: Any) -> Any:
    """``flags``: the stored samples, 0 and 1."""
    return room.image(
        pack(flags[:, :, None], 1).tobytes(),
        flags.shape[1],
        flags.shape[0],
        ImageMask=True,
        BitsPerComponent=1,
        **keys,
    )


def test_soft_mask_becomes_alpha_and_the_original_stays_as_it_was(room: Any, noise: Any) -> None:
    codes, alpha = noise(6, 8, 3), noise(6, 8, 1, seed=1)[:, :, 0]
    rendered = room.render(rgb(room, codes, SMask=gray(room, alpha)))
    assert (room.samples(rendered.original) == codes).all()
    assert rendered.display.has_alpha
    assert (room.samples(rendered.display) == np.dstack((codes, alpha))).all()


def test_gray_picture_with_a_soft_mask_is_gray_and_alpha(room: Any, noise: Any) -> None:
    codes, alpha = noise(6, 8)[:, :, 0], noise(6, 8, 1, seed=1)[:, :, 0]
    rendered = room.render(gray(room, codes, SMask=gray(room, alpha)))
    assert rendered.display.mode == "LA"
    assert (room.samples(rendered.display) == np.dstack((codes, alpha))).all()


def test_mask_that_hides_nothing_makes_no_alpha(room: Any, noise: Any) -> None:
    codes = noise(6, 8, 3)
    rendered = room.render(rgb(room, codes, SMask=gray(room, np.full((6, 8), 255, np.uint8))))
    assert not rendered.display.has_alpha
    assert rendered.display == rendered.original


def test_larger_mask_carries_its_detail_over_a_small_base(room: Any, noise: Any) -> None:
    codes, alpha = noise(2, 2, 3), noise(40, 300, 1, seed=1)[:, :, 0]
    shown = room.samples(room.render(rgb(room, codes, SMask=gray(room, alpha))).display)
    assert shown.shape == (40, 300, 4)
    assert (shown[:, :, 3] == alpha).all()
    assert (shown[:20, :150, :3] == codes[0, 0]).all()
    assert (shown[20:, 150:, :3] == codes[1, 1]).all()


def test_smaller_mask_is_repeated_over_a_large_base(room: Any, noise: Any) -> None:
    codes = noise(8, 6, 3)
    alpha = np.array([[0, 255]], np.uint8)
    shown = room.samples(room.render(rgb(room, codes, SMask=gray(room, alpha))).display)
    assert (shown[:, :, :3] == codes).all()
    assert (shown[:, :3, 3] == 0).all() and (shown[:, 3:, 3] == 255).all()


def test_mask_wider_and_base_higher_meet_on_the_larger_of_both(room: Any, noise: Any) -> None:
    shown = room.samples(
        room.render(rgb(room, noise(9, 2, 3), SMask=gray(room, noise(3, 8, 1, seed=2)[:, :, 0]))).display
    )
    assert shown.shape == (9, 8, 4)


def test_decode_of_a_soft_mask_inverts_it(room: Any, noise: Any) -> None:
    codes, alpha = noise(4, 4, 3), noise(4, 4, 1, seed=1)[:, :, 0]
    mask = gray(room, alpha, Decode=pikepdf.Array([1, 0]))
    assert (room.samples(room.render(rgb(room, codes, SMask=mask)).display)[:, :, 3] == 255 - alpha).all()


def test_matte_is_taken_out_of_the_colours(room: Any) -> None:
    true = np.array([[[200, 100, 40], [10, 250, 90]]], np.uint8)
    alpha = np.array([[128, 200]], np.uint8)
    matte = np.array([255, 0, 51])
    blended = np.rint(matte + (true - matte) * (alpha[:, :, None] / 255)).astype(np.uint8)
    mask = gray(room, alpha, Matte=pikepdf.Array([1, 0, 0.2]))
    shown = room.samples(room.render(rgb(room, blended, SMask=mask)).display)
    assert np.abs(shown[:, :, :3].astype(int) - true).max() <= 1


@pytest.mark.parametrize("inverted", [False, True])
def test_explicit_mask_hides_ones_unless_inverted(room: Any, noise: Any, inverted: bool) -> None:
    codes, flags = noise(5, 9, 3), noise(5, 9, 1, 1, seed=1)[:, :, 0]
    keys = {"Decode": pikepdf.Array([1, 0])} if inverted else {}
    shown = room.samples(room.render(rgb(room, codes, Mask=stencil(room, flags, **keys))).display)
    visible = flags if inverted else 1 - flags
    assert (shown[:, :, 3] == visible * 255).all()


def test_colour_key_hides_codes_in_range_before_decode(room: Any) -> None:
    codes = np.array([[[10, 20, 30], [11, 20, 30], [10, 20, 31]]], np.uint8)
    key = pikepdf.Array([10, 10, 0, 20, 30, 30])
    image = rgb(room, codes, Mask=key, Decode=pikepdf.Array([1, 0, 1, 0, 1, 0]))
    shown = room.samples(room.render(image).display)
    assert shown[0, :, 3].tolist() == [0, 255, 255]
    assert (shown[0, :, :3] == 255 - codes[0]).all()


def test_colour_key_of_a_palette_names_indices(room: Any, noise: Any) -> None:
    codes = noise(3, 8, 1, 4)
    space = pikepdf.Array([N.Indexed, N.DeviceRGB, 15, pikepdf.String(noise(1, 16, 3).tobytes())])
    image = room.image(pack(codes, 4).tobytes(), 8, 3, ColorSpace=space, BitsPerComponent=4, Mask=pikepdf.Array([3, 5]))
    rendered = room.render(image)
    hidden = (codes[:, :, 0] >= 3) & (codes[:, :, 0] <= 5)
    assert (room.samples(rendered.display, "RGBA")[:, :, 3] == np.where(hidden, 0, 255)).all()
    assert rendered.original.mode == "P"


def test_soft_mask_wins_over_a_colour_key(room: Any, noise: Any) -> None:
    codes, alpha = noise(3, 3, 3), noise(3, 3, 1, seed=1)[:, :, 0]
    image = rgb(room, codes, Mask=pikepdf.Array([0, 255] * 3), SMask=gray(room, alpha))
    assert (room.samples(room.render(image).display)[:, :, 3] == alpha).all()


def test_broken_mask_quarantines_the_picture(room: Any, noise: Any) -> None:
    short = room.image(zlib.compress(b"1234"), 6, 8, ColorSpace=N.DeviceGray, BitsPerComponent=8, Filter=N.FlateDecode)
    assert room.render(rgb(room, noise(6, 8, 3), SMask=short)).reason is Reason.TRUNCATED_STREAM


def test_mask_beyond_the_pixel_budget_is_refused(room: Any, noise: Any) -> None:
    huge = room.image(b"1", 60000, 60000, ColorSpace=N.DeviceGray, BitsPerComponent=8)
    assert room.render(rgb(room, noise(2, 2, 3), SMask=huge)).reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_base_and_mask_that_only_together_exceed_the_budget_are_refused(room: Any) -> None:
    wide = rgb(room, np.zeros((1, 30000, 3), np.uint8), SMask=gray(room, np.zeros((30000, 1), np.uint8)))
    assert room.render(wide).reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_mask_that_is_the_picture_itself_is_a_loop(room: Any, noise: Any) -> None:
    image = gray(room, noise(4, 4)[:, :, 0])
    image.SMask = image
    assert room.render(image).reason is Reason.STRUCTURE_LOOP


@pytest.mark.parametrize("inverted", [False, True])
def test_stencil_has_one_polarity_and_its_paint(room: Any, noise: Any, inverted: bool) -> None:
    flags = noise(7, 11, 1, 1)[:, :, 0]
    keys = {"Decode": pikepdf.Array([1, 0])} if inverted else {}
    paint = Paint(N.DeviceRGB, (1.0, 0.0, 0.2))
    rendered = room.render(stencil(room, flags, **keys), kind=Kind.STENCIL, paint=paint)
    painted = flags == (1 if inverted else 0)
    original = room.open(rendered.original)
    assert (rendered.original.bits, original.mode, rendered.colour_space, rendered.bits) == (1, "1", None, 1)
    assert (np.asarray(original) == ~painted).all()
    assert (room.samples(rendered.original, "RGBA")[:, :, 3] == painted * 255).all()
    shown = room.samples(rendered.display, "RGBA")
    assert (shown[:, :, 3] == painted * 255).all()
    assert (shown[painted] == [255, 0, 51, 255]).all()


def test_stencil_that_paints_everything_has_no_alpha(room: Any) -> None:
    rendered = room.render(stencil(room, np.zeros((3, 5), np.uint8)), kind=Kind.STENCIL)
    assert not rendered.display.has_alpha
    assert not rendered.original.has_alpha
    assert (room.samples(rendered.display, "RGB") == 0).all()


@pytest.mark.parametrize(
    ("space", "components", "expected"),
    [
        (N.DeviceGray, (0.4,), (102, 102, 102)),
        (N.DeviceRGB, (0.0, 1.0, 0.0), (0, 255, 0)),
        (N.DeviceCMYK, (0.0, 0.0, 0.0, 0.0), (255, 255, 255)),
        (pikepdf.Array([N.Indexed, N.DeviceRGB, 1, pikepdf.String(b"\0\0\0\x0a\x14\x1e")]), (1.0,), (10, 20, 30)),
        (pikepdf.Array([N.Indexed, N.DeviceRGB, 1, pikepdf.String(b"\0\0\0\x0a\x14\x1e")]), (0.5,), (10, 20, 30)),
        (pikepdf.Array([N.Indexed, N.DeviceRGB, 1, pikepdf.String(b"\0\0\0\x0a\x14\x1e")]), (17.0,), (10, 20, 30)),
        (pikepdf.Array([N.Indexed, N.DeviceRGB, 1, pikepdf.String(b"\0\0\0\x0a\x14\x1e")]), (-17.0,), (0, 0, 0)),
    ],
)
def test_paint_of_each_space_is_converted(room: Any, space: Any, components: Any, expected: Any) -> None:
    image = stencil(room, np.zeros((2, 2), np.uint8))
    rendered = room.render(image, kind=Kind.STENCIL, paint=Paint(space, components))
    assert tuple(room.samples(rendered.display, "RGB")[0, 0].tolist()) == expected


def test_stencil_painted_with_a_pattern_is_black(room: Any) -> None:
    image = stencil(room, np.zeros((2, 2), np.uint8))
    rendered = room.render(image, kind=Kind.STENCIL, paint=Paint(N.Pattern, (), pattern=True))
    assert (room.samples(rendered.display, "RGB") == 0).all()


def test_same_stencil_in_two_colours_is_one_original_and_two_displays(room: Any, noise: Any) -> None:
    image = stencil(room, noise(4, 4, 1, 1)[:, :, 0])
    red = room.render(image, kind=Kind.STENCIL, paint=Paint(N.DeviceRGB, (1.0, 0.0, 0.0)))
    blue = room.render(image, kind=Kind.STENCIL, paint=Paint(N.DeviceRGB, (0.0, 0.0, 1.0)))
    assert red.original == blue.original
    assert red.display != blue.display
