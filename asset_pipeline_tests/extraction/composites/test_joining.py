"""Cut pictures come out whole: strips and tiles of every sort that producers make, joined without loss."""

from __future__ import annotations

import io

import numpy as np
import pytest
from pikepdf import Array, Name, String
from PIL import Image, ImageCms

from asset_pipeline import account
from asset_pipeline.model import Flag, Status
from asset_pipeline.policy import Decorative, Limits, Policy
from asset_pipeline_tests.extraction.composites.sheets import Answer, Pixels, Read, Sheet, photo, text_scan


def strips(sheet: Sheet, pixels: Pixels, depth: int, make: str = "raw", scale: float = 1.0, **keys: object) -> None:
    """Full-width strips of ``depth`` rows from the top down, the last as deep as is left; 20 points off the edges."""
    height, width = pixels.shape[:2]
    for top in range(0, height, depth):
        part = np.ascontiguousarray(pixels[top : top + depth])
        x, y = 20.0, 20 + (height - top - part.shape[0]) * scale
        sheet.draw(getattr(sheet, make)(part, **keys), x, y, width * scale, part.shape[0] * scale)


def the_composite(answer: Answer) -> Pixels:
    (row,) = answer.composites
    return answer.pixels(row.picture)  # type: ignore[no-any-return]


def test_strips_become_one_picture_with_all_their_samples(read: Read) -> None:
    whole = photo(120, 100)
    answer = read(lambda sheet: strips(sheet, whole, 30))
    (row,) = answer.composites
    assert np.array_equal(the_composite(answer), whole)
    assert (row.name, row.status, row.filter, row.object_id) == ("page-001-composite-001", "archived", [], None)
    assert (row.width, row.height, row.colour_space, row.bits) == (120, 100, "DeviceRGB", 8)
    assert row.bbox == (20, 20, 140, 120) and row.matrix == (120, 0, 0, 100, 20, 20)
    assert row.parts == [f"page-001-image-00{number}" for number in range(1, 5)]
    assert row.picture == row.display and row.ppi == (72, 72) and row.visible == 1


def test_parts_are_consumed_and_the_account_adds_up(read: Read) -> None:
    answer = read(lambda sheet: strips(sheet, photo(120, 100), 30))
    assert answer.statuses == ["consumed"] * 4
    assert (answer.page.drawn, answer.page.consumed, answer.page.archived, answer.page.derived_archived) == (4, 4, 0, 1)
    assert account.unaccounted(account.collapse_repeats(answer.extraction.pages), 1) == []
    assert all(row.picture and row.display for row in answer.page.placements)


def test_strips_drawn_from_the_bottom_up_join_in_their_places(read: Read) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        for top in (60, 30, 0):
            sheet.draw(sheet.raw(np.ascontiguousarray(whole[top : top + 30])), 20, 20 + 60 - top, 120, 30)

    assert np.array_equal(the_composite(read(write)), whole)


def test_tiles_on_a_grid_with_smaller_ones_at_the_ends_join(read: Read) -> None:
    whole = photo(150, 110)

    def write(sheet: Sheet) -> None:
        for top in range(0, 110, 64):
            for left in range(0, 150, 64):
                part = np.ascontiguousarray(whole[top : top + 64, left : left + 64])
                height, width = part.shape[:2]
                sheet.draw(sheet.raw(part), 20 + left * 2, 20 + (110 - top - height) * 2, width * 2, height * 2)

    answer = read(write)
    assert np.array_equal(the_composite(answer), whole)
    assert len(answer.composites[0].parts) == 6


@pytest.mark.parametrize("make", ["bits", "fax"])
def test_scanned_strips_join_to_one_bit_a_pixel(read: Read, make: str) -> None:
    scan = text_scan(240, 160)
    answer = read(lambda sheet: strips(sheet, scan, 32, make))
    assert np.array_equal(the_composite(answer), scan.astype(bool))
    assert answer.picture(answer.composites[0].picture).bits == 1


def test_scanned_strips_that_are_stencils_join_and_keep_their_paint(read: Read) -> None:
    scan = text_scan(240, 160)

    def write(sheet: Sheet) -> None:
        sheet.content.append("0 0 1 rg\n")
        height, width = scan.shape
        for top in range(0, height, 32):
            part = scan[top : top + 32]
            mask = sheet.stream(np.packbits(part, axis=1).tobytes(), width, 32, ImageMask=True, BitsPerComponent=1)
            sheet.draw(mask, 20, 20 + height - top - 32, width, 32)

    answer = read(write)
    (row,) = answer.composites
    with Image.open(answer.out / answer.picture(row.display).file) as opened:
        shown = np.asarray(opened.convert("RGBA"))
    assert np.array_equal(shown[:, :, 3] == 255, scan == 0)
    assert (shown[scan == 0][:, :3] == (0, 0, 255)).all()
    assert np.array_equal(answer.pixels(row.picture), scan.astype(bool))


def test_jpeg_strips_join_to_exactly_what_each_decodes_to(read: Read) -> None:
    whole = photo(160, 120)
    answer = read(lambda sheet: strips(sheet, whole, 48, "jpeg"))
    parts = [answer.pixels(row.picture) for row in answer.page.placements if row.status is Status.CONSUMED]
    assert np.array_equal(the_composite(answer), np.concatenate(parts))
    assert answer.picture(answer.composites[0].picture).media_type == "image/png"


def test_cmyk_strips_join_to_a_cmyk_original_and_an_rgb_display(read: Read) -> None:
    whole = np.concatenate([photo(90, 60), photo(90, 60, 2)[:, :, :1]], axis=2)
    answer = read(lambda sheet: strips(sheet, whole, 20))
    (row,) = answer.composites
    original, display = answer.picture(row.picture), answer.picture(row.display)
    assert (original.mode, original.media_type, display.mode) == ("CMYK", "image/tiff", "RGB")
    assert np.array_equal(the_composite(answer), whole)
    assert answer.pixels(row.display).shape == (60, 90, 3)


def test_sixteen_bits_stay_sixteen_bits(read: Read) -> None:
    whole = (photo(96, 60)[:, :, 0].astype(np.uint16) * 257 + 3).astype(">u2")

    def write(sheet: Sheet) -> None:
        for top in range(0, 60, 20):
            data = np.ascontiguousarray(whole[top : top + 20]).tobytes()
            part = sheet.stream(data, 96, 20, ColorSpace=Name.DeviceGray, BitsPerComponent=16)
            sheet.draw(part, 20, 20 + 40 - top, 96, 20)

    answer = read(write)
    assert answer.picture(answer.composites[0].picture).mode == "I;16"
    assert np.array_equal(the_composite(answer), whole)


def test_a_shared_palette_stays_a_palette_and_different_ones_become_colours(read: Read, tmp_path: object) -> None:
    codes = (photo(96, 60)[:, :, 0] // 64).astype(np.uint8)

    def write_with(tables: list[bytes]) -> object:
        def write(sheet: Sheet) -> None:
            for number, top in enumerate(range(0, 60, 20)):
                table = tables[number % len(tables)]
                space = Array([Name.Indexed, Name.DeviceRGB, 3, String(table)])
                part = np.ascontiguousarray(codes[top : top + 20])
                sheet.draw(sheet.raw(part, ColorSpace=space), 20, 20 + 40 - top, 96, 20)

        return write

    table = bytes([0, 0, 0, 90, 0, 0, 0, 90, 0, 200, 200, 200])
    answer = read(write_with([table]))
    assert answer.picture(answer.composites[0].picture).mode == "P"
    assert np.array_equal(the_composite(answer), codes)


def test_a_profile_that_all_strips_share_goes_with_them(read: Read) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    def write(sheet: Sheet) -> None:
        stream = sheet.pdf.make_stream(profile)
        stream.N = 3
        strips(sheet, photo(120, 90), 30, ColorSpace=Array([Name.ICCBased, sheet.pdf.make_indirect(stream)]))

    answer = read(write)
    with Image.open(io.BytesIO((answer.out / answer.picture(answer.composites[0].picture).file).read_bytes())) as png:
        assert png.info["icc_profile"] == profile


def test_strips_with_soft_masks_join_with_their_transparency(read: Read) -> None:
    whole = photo(120, 90)
    alpha = np.tile(np.linspace(0, 255, 120).astype(np.uint8), (90, 1))

    def write(sheet: Sheet) -> None:
        for top in range(0, 90, 30):
            mask = sheet.raw(np.ascontiguousarray(alpha[top : top + 30]))
            part = sheet.raw(np.ascontiguousarray(whole[top : top + 30]), SMask=sheet.pdf.make_indirect(mask))
            sheet.draw(part, 20, 20 + 60 - top, 120, 30)

    answer = read(write)
    (row,) = answer.composites
    assert np.array_equal(answer.pixels(row.picture), whole)
    assert np.array_equal(answer.pixels(row.display), np.dstack([whole, alpha]))


def test_strips_with_and_without_a_soft_mask_are_not_one_picture(read: Read) -> None:
    whole = photo(120, 60)

    def write(sheet: Sheet) -> None:
        mask = sheet.raw(np.full((30, 120), 128, np.uint8))
        sheet.draw(sheet.raw(np.ascontiguousarray(whole[:30]), SMask=sheet.pdf.make_indirect(mask)), 20, 50, 120, 30)
        sheet.draw(sheet.raw(np.ascontiguousarray(whole[30:])), 20, 20, 120, 30)

    assert read(write).composites == []


def test_upside_down_strips_join_as_stored_and_as_shown(read: Read) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        for top in range(0, 90, 30):
            sheet.draw(sheet.raw(np.ascontiguousarray(whole[top : top + 30])), 120, 0, 0, -30, 20, 20 + top + 30)

    answer = read(write)
    (row,) = answer.composites
    assert np.array_equal(answer.pixels(row.picture), whole)
    assert np.array_equal(answer.pixels(row.display), whole[::-1])
    assert row.matrix == (120, 0, 0, -90, 20, 110) and Flag.MIRRORED in row.flags


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_strips_on_a_turned_page_join_as_stored_and_as_shown(read: Read, rotate: int) -> None:
    whole = photo(120, 90)
    answer = read(lambda sheet: strips(sheet, whole, 30), Rotate=rotate)
    (row,) = answer.composites
    assert np.array_equal(answer.pixels(row.picture), whole)
    assert np.array_equal(answer.pixels(row.display), np.rot90(whole, -rotate // 90))
    assert (row.width, row.height) == (120, 90)


@pytest.mark.parametrize("mirrored", [False, True])
def test_strips_that_are_turned_themselves_join_as_stored_and_as_shown(read: Read, mirrored: bool) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        for top in range(0, 90, 30):  # the first row lies at the left, or mirrored at the right
            part = sheet.raw(np.ascontiguousarray(whole[top : top + 30]))
            if mirrored:
                sheet.draw(part, 0, 120, 30, 0, 20 + 60 - top, 20)
            else:
                sheet.draw(part, 0, 120, -30, 0, 20 + top + 30, 20)

    answer = read(write)
    (row,) = answer.composites
    assert np.array_equal(answer.pixels(row.picture), whole)
    expected = np.rot90(whole[:, ::-1], -1) if mirrored else np.rot90(whole, 1)
    assert np.array_equal(answer.pixels(row.display), expected)
    assert (row.width, row.height, row.print_mm) == (120, 90, (42.33, 31.75))


def test_strips_cut_by_the_crop_box_join_whole_and_show_what_is_seen(read: Read) -> None:
    whole = photo(120, 90)
    answer = read(lambda sheet: strips(sheet, whole, 30), CropBox=[30, 40, 400, 400])
    (row,) = answer.composites
    assert np.array_equal(answer.pixels(row.picture), whole)
    assert np.array_equal(answer.pixels(row.display), whole[:70, 10:])
    assert row.visible == pytest.approx(110 * 70 / (120 * 90), abs=1e-3) and Flag.CLIPPED in row.flags


def test_a_strip_outside_the_crop_box_stays_not_shown_and_is_joined(read: Read) -> None:
    whole = photo(120, 90)
    answer = read(lambda sheet: strips(sheet, whole, 30), CropBox=[0, 50, 400, 400])
    assert answer.statuses == ["consumed", "consumed", "not_shown"]
    assert np.array_equal(the_composite(answer), whole)
    assert answer.pixels(answer.composites[0].display).shape == (60, 120, 3)


def test_strips_each_clipped_to_its_own_box_join(read: Read) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        for top in range(0, 90, 30):
            y = 20 + 60 - top
            clip = f"20 {y} 120 30 re W n"
            sheet.draw(sheet.raw(np.ascontiguousarray(whole[top : top + 30])), 20, y, 120, 30, before=clip)

    assert np.array_equal(the_composite(read(write)), whole)


def test_hundreds_of_thin_strips_join(read: Read) -> None:
    whole = photo(300, 160)
    answer = read(lambda sheet: strips(sheet, whole, 1, scale=0.24))
    assert np.array_equal(the_composite(answer), whole)
    assert len(answer.composites[0].parts) == 160


def test_strips_that_are_thin_as_decoration_are_joined_first(read: Read) -> None:
    whole = photo(120, 80)
    answer = read(lambda sheet: strips(sheet, whole, 4), Policy(decorative=Decorative(shortest_side_points=6)))
    assert (answer.page.decorative, answer.page.consumed, answer.page.derived_archived) == (0, 20, 1)


def test_a_rule_made_of_pieces_stays_decoration(read: Read) -> None:
    whole = photo(120, 3)

    def write(sheet: Sheet) -> None:
        for left in range(0, 120, 40):
            sheet.draw(sheet.raw(np.ascontiguousarray(whole[:, left : left + 40])), 20 + left, 20, 40, 3)

    answer = read(write)
    assert answer.composites == [] and answer.statuses == ["decorative"] * 3


def test_a_picture_too_large_to_join_stays_in_its_parts(read: Read) -> None:
    answer = read(lambda sheet: strips(sheet, photo(120, 90), 30), Policy(limits=Limits(pixels=120 * 80)))
    assert answer.composites == [] and answer.statuses == ["archived"] * 3


def test_a_broken_strip_stays_quarantined_and_the_others_are_kept(read: Read) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        strips(sheet, whole[:60], 30)
        broken = sheet.stream(b"\xff\xd8 nothing", 120, 30, Filter=Name.DCTDecode, ColorSpace=Name.DeviceRGB)
        sheet.draw(broken, 20, 80, 120, 30)

    answer = read(write)
    assert answer.statuses.count("quarantined") == 1
    assert all(row.status is not Status.QUARANTINED for row in answer.composites)


def test_the_same_strips_on_the_next_page_are_joined_there_too_into_the_same_file(read: Read) -> None:
    answer = read(lambda sheet: strips(sheet, photo(120, 90), 30), pages=2)
    pages = account.collapse_repeats(answer.extraction.pages)
    first, second = answer.composites
    assert first.picture == second.picture and second.name == "page-002-composite-001"
    assert [(page.consumed, page.derived_archived, page.collapsed) for page in pages] == [(3, 1, 0), (3, 1, 0)]


def test_strips_drawn_twice_at_the_same_place_are_one_picture(read: Read) -> None:
    whole = photo(120, 90)

    def write(sheet: Sheet) -> None:
        for top in range(0, 90, 30):
            part = sheet.raw(np.ascontiguousarray(whole[top : top + 30]))
            for _ in range(2):
                sheet.draw(part, 20, 20 + 60 - top, 120, 30)

    answer = read(write)
    assert np.array_equal(the_composite(answer), whole)
    assert answer.statuses == ["consumed"] * 6 and len(answer.composites[0].parts) == 6


def test_a_picture_drawn_twice_at_the_same_place_is_archived_once(read: Read) -> None:
    def write(sheet: Sheet) -> None:
        part = sheet.raw(photo(60, 40))
        sheet.draw(part, 20, 20, 60, 40)
        sheet.draw(part, 20, 20, 60, 40)

    answer = read(write)
    (page,) = account.collapse_repeats(answer.extraction.pages)
    assert (page.drawn, page.archived, page.collapsed) == (2, 1, 1)
    assert [row.flags for row in page.placements] == [[Flag.OCCLUDED], [Flag.REPEAT]]
