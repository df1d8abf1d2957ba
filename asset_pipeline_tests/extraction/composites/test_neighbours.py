"""What merely lies side by side is left alone, and what only looks so is joined: both sides of each rule."""

from __future__ import annotations

import numpy as np
import pytest

from asset_pipeline_tests.extraction.composites.sheets import Read, Sheet, photo, text_scan


def two(read: Read, upper: np.ndarray, lower: np.ndarray, *, gap: float = 0.0, scale: float = 1.0) -> int:  # type: ignore[type-arg]
    """How many composites two pictures make, one above the other."""

    def write(sheet: Sheet) -> None:
        sheet.draw(sheet.raw(np.ascontiguousarray(lower)), 20, 20, lower.shape[1], lower.shape[0])
        height, width = upper.shape[:2]
        sheet.draw(sheet.raw(np.ascontiguousarray(upper)), 20, 20 + lower.shape[0] + gap, width * scale, height * scale)

    return len(read(write).composites)


@pytest.mark.parametrize("seed", range(2, 12))
def test_two_photos_that_touch_are_two_photos(read: Read, seed: int) -> None:
    assert two(read, photo(120, 80, 1), photo(120, 80, seed)) == 0


@pytest.mark.parametrize("seed", range(2, 12))
def test_two_halves_of_a_photo_are_one_photo(read: Read, seed: int) -> None:
    whole = photo(120, 160, seed)
    assert two(read, whole[:80], whole[80:]) == 1


def test_a_clear_sky_below_dark_ground_is_another_photo(read: Read) -> None:
    ground, sky = photo(120, 80, 3), photo(120, 80, 4)
    ground[60:] = ground[60:] // 4
    sky[:20] = 200 + sky[:20] % 3
    assert two(read, ground, sky) == 0
    assert two(read, sky[::-1], ground[::-1]) == 0


def test_a_scan_cut_at_a_rule_or_at_a_blank_row_is_one_scan(read: Read) -> None:
    scan = text_scan(240, 160)
    scan[80:82] = 0
    scan[79] = 1

    def write(sheet: Sheet) -> None:
        for top in (0, 80):
            sheet.draw(sheet.bits(scan[top : top + 80]), 20, 100 - top, 240, 80)

    assert len(read(write).composites) == 1


@pytest.mark.parametrize(("gap", "joined"), [(0.45, 1), (-0.45, 1), (0.55, 0), (-0.55, 0), (3, 0)])
def test_parts_join_while_the_gap_is_less_than_half_a_pixel(read: Read, gap: float, joined: int) -> None:
    whole = photo(120, 80)
    assert two(read, whole[:40], whole[40:], gap=gap) == joined


@pytest.mark.parametrize(("scale", "joined"), [(1.004, 1), (1.05, 0)])
def test_parts_join_only_at_one_scale(read: Read, scale: float, joined: int) -> None:
    whole = photo(120, 80)
    assert two(read, whole[:40], whole[40:], scale=scale) == joined


def test_parts_in_different_colour_spaces_are_not_one_picture(read: Read) -> None:
    whole = photo(120, 80)
    assert two(read, whole[:40], whole[40:, :, 0]) == 0


def test_a_narrower_picture_below_is_not_a_part(read: Read) -> None:
    whole = photo(120, 80)
    assert two(read, whole[:40], whole[40:, :100]) == 0


def test_a_contact_sheet_without_gaps_stays_single_photos(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        for number in range(9):
            sheet.draw(sheet.raw(photo(64, 48, number + 1)), 20 + number % 3 * 64, 20 + number // 3 * 48, 64, 48)

    answer = read(write)
    assert answer.composites == [] and answer.statuses == ["archived"] * 9


def test_two_cut_photos_that_touch_are_two_composites(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        for number in range(2):
            whole = photo(64, 96, number + 1)
            for top in (0, 48):
                part = np.ascontiguousarray(whole[top : top + 48])
                sheet.draw(sheet.raw(part), 20 + number * 64, 20 + 48 - top, 64, 48)

    assert [len(row.parts) for row in read(write).composites] == [2, 2]


@pytest.mark.parametrize("kinds", [1, 2])
def test_wallpaper_of_a_repeated_picture_is_not_joined(read: Read, kinds: int) -> None:
    def write(sheet: Sheet) -> None:
        tiles = [sheet.raw(np.full((20, 20, 3), 40 + 90 * number, np.uint8)) for number in range(kinds)]
        for place in range(16):
            tile = tiles[(place % 4 + place // 4) % kinds]
            sheet.draw(tile, 20 + place % 4 * 20, 20 + place // 4 * 20, 20, 20)

    assert read(write).composites == []


def test_blank_strips_of_a_scan_join_with_the_others(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        blank = sheet.raw(np.full((8, 160), 255, np.uint8))
        for number in range(10):
            part = sheet.raw(photo(160, 8, 5)[:, :, 0]) if number in (2, 3) else blank
            sheet.draw(part, 20, 200 - 8 * number, 160, 8)

    (row,) = read(write).composites
    assert len(row.parts) == 10


def test_strips_of_plain_colours_join(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        for number in range(4):
            sheet.draw(sheet.raw(np.full((25, 100, 3), 50 * number, np.uint8)), 20, 120 - 25 * number, 100, 25)

    assert len(read(write).composites) == 1


def test_a_missing_tile_leaves_the_others_alone(read: Read) -> None:
    whole = photo(128, 128)

    def write(sheet: Sheet) -> None:
        for top, left in ((0, 0), (0, 64), (64, 0)):
            part = np.ascontiguousarray(whole[top : top + 64, left : left + 64])
            sheet.draw(sheet.raw(part), 20 + left, 20 + 64 - top, 64, 64)

    assert read(write).composites == []


def test_swatches_of_a_few_pixels_with_visible_gaps_are_not_parts(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        for number in range(3):
            sheet.draw(sheet.raw(np.full((1, 2, 3), 80 * number, np.uint8)), 20 + 35 * number, 20, 30, 30)

    assert read(write).composites == []


def test_a_page_of_very_many_tiles_takes_no_longer_than_it_should(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        tile = sheet.raw(np.full((4, 4, 3), 9, np.uint8))
        other = sheet.raw(np.full((4, 4, 3), 200, np.uint8))
        for number in range(1000):
            sheet.draw(tile if number % 2 else other, 20, 20, 8, 8)
            sheet.draw(tile if number % 2 else other, 28, 20, 8, 8)

    assert len(read(write).composites) <= 1
