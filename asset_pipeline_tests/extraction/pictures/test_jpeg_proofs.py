"""Damage that libjpeg decodes without a warning is found, and no legal JPEG is taken for damaged."""

from __future__ import annotations

import io
import itertools
import random
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.jpeg import check_scan, decode_jpeg
from asset_pipeline.extraction.pdf.jpeg_walk import walk_scans
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jpeg import check_jpeg

N = pikepdf.Name
DC_OF_ZERO, END_OF_BLOCK, SIXTEEN_ZEROS, ONE = "00", "1010", "11111111001", "001"
"""Codes of the standard's tables for luminance."""


def encoded(picture: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", **({"quality": 90} | options))
    return out.getvalue()


def coded(width: int, bits: str) -> bytes:
    """A gray JPEG 8 high whose scan is ``bits``; its DC quantiser is 3."""
    header = encoded(Image.new("L", (width, 8)))
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return header[: header.index(b"\xff\xda") + 10] + scan + b"\xff\xd9"


def check(data: bytes) -> None:
    """All that a JPEG has to pass, without the picture around it."""
    check_scan(data, check_jpeg(data, Limits()))


def reason_of(data: bytes) -> Reason | None:
    try:
        check(data)
    except Refusal as refusal:
        return refusal.reason
    return None


def image_of(room: Any, data: bytes, picture: Image.Image) -> Any:
    space = {"L": N.DeviceGray, "RGB": N.DeviceRGB, "CMYK": N.DeviceCMYK}[picture.mode]
    return room.image(data, picture.width, picture.height, ColorSpace=space, BitsPerComponent=8, Filter=N.DCTDecode)


@pytest.mark.parametrize(
    ("bits", "reason"),
    [
        (DC_OF_ZERO + END_OF_BLOCK, None),
        (DC_OF_ZERO + 3 * SIXTEEN_ZEROS + ONE + END_OF_BLOCK, None),
        (DC_OF_ZERO + 63 * ONE, None),
        (DC_OF_ZERO + 4 * SIXTEEN_ZEROS, Reason.MALFORMED_STREAM),
        (DC_OF_ZERO + 62 * ONE + SIXTEEN_ZEROS, Reason.MALFORMED_STREAM),
        (DC_OF_ZERO + END_OF_BLOCK + "01" * 30, Reason.MALFORMED_STREAM),
    ],
    ids=["empty", "late coefficient", "full", "65 coefficients", "zeros behind the last", "data behind the last"],
)
def test_block_has_at_most_64_coefficients_and_nothing_behind(bits: str, reason: Reason | None) -> None:
    assert reason_of(coded(8, bits)) is reason


@pytest.mark.parametrize(
    ("second", "reason"), [(39, None), (56, Reason.MALFORMED_STREAM)], ids=["white", "whiter than white"]
)
def test_sum_of_dc_differences_is_one_that_samples_have(second: int, reason: Reason | None) -> None:
    block = "1111110" + f"{300:09b}" + END_OF_BLOCK
    assert reason_of(coded(16, block + "1110" + f"{second:06b}" + END_OF_BLOCK)) is reason


def test_large_pictures_are_checked_for_range_without_a_walk(photo: Any) -> None:
    data = encoded(photo(320, 240, "L"))
    at = data.index(b"\xff\xda") + 10
    # A first difference of 300 steps of 3 lifts every block behind it; the rest decodes as before.
    bits = "".join(f"{byte:08b}" for byte in data[at:-2].replace(b"\xff\0", b"\xff"))
    sizes = ["00", "010", "011", "100", "101", "110", "1110", "11110", "111110", "1111110", "11111110", "111111110"]
    size = next(index for index, code in enumerate(sizes) if bits.startswith(code))
    lifted = "1111110" + f"{300:09b}" + bits[len(sizes[size]) + size :].rstrip("1")
    header = data[:at]
    lifted += "1" * (-len(lifted) % 8)
    scan = int(lifted, 2).to_bytes(len(lifted) // 8, "big").replace(b"\xff", b"\xff\0")
    assert reason_of(data) is None
    assert reason_of(header + scan + b"\xff\xd9") is Reason.MALFORMED_STREAM


@pytest.mark.parametrize(
    ("mode", "size", "options", "tries"),
    [
        ("L", (320, 240), {}, 200),
        ("CMYK", (320, 240), {}, 200),
        ("CMYK", (320, 240), {"subsampling": 2}, 40),
        ("RGB", (64, 48), {}, 200),
        ("RGB", (64, 48), {"optimize": True}, 200),
        ("L", (64, 48), {}, 200),
        ("RGB", (1600, 1200), {"optimize": True, "quality": 75}, 60),
    ],
    ids=["gray", "CMYK", "CMYK of sampling 2x2", "small", "small optimised", "small gray", "large optimised"],
)
def test_nineteen_of_twenty_scans_with_eight_changed_bytes_are_found(
    photo: Any, mode: str, size: tuple[int, int], options: dict[str, Any], tries: int
) -> None:
    data = encoded(photo(*size, mode), **options)
    start, chance = data.index(b"\xff\xda") + 12, random.Random(3)
    reasons: list[Reason | None] = []
    for _ in range(tries):
        bad = bytearray(data)
        for _ in range(8):
            bad[chance.randrange(start, len(bad) - 2)] = chance.randrange(256)
        reasons.append(reason_of(bytes(bad)))
    assert set(reasons) <= {Reason.MALFORMED_STREAM, Reason.TRUNCATED_STREAM, None}
    assert len(reasons) - reasons.count(None) >= 0.95 * tries


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
def test_whatever_an_encoder_writes_passes(photo: Any, noise: Any, mode: str) -> None:
    black_and_white = np.where(np.indices((40, 48)).sum(0) // 8 % 2, 255, 0).astype(np.uint8)
    pictures = [photo(48, 40), Image.fromarray(noise(17, 33, 3)), Image.fromarray(black_and_white).convert("RGB")]
    for picture, quality, subsampling, progressive, restart in itertools.product(
        pictures, (5, 75, 100), (0, 1, 2), (False, True), ({}, {"restart_marker_blocks": 2})
    ):
        options = {"quality": quality, "subsampling": subsampling if mode != "L" else -1, "progressive": progressive}
        for optimize in (False, True):
            data = encoded(picture.convert(mode), optimize=optimize, **options, **restart)
            assert walk_scans(data)
            check(data)


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [1, 2])
def test_cmyk_whose_first_ink_alone_is_in_full_size_passes(
    room: Any, photo: Any, subsampling: int, progressive: bool
) -> None:
    picture = photo(mode="CMYK")
    data = encoded(picture, subsampling=subsampling, progressive=progressive)
    rendered = room.render(image_of(room, data, picture))
    assert rendered.reason is None
    assert (room.out / rendered.original.file).read_bytes() == data
    shown = decode_jpeg(data, check_jpeg(data, Limits()), None)
    assert (shown == 255 - np.asarray(Image.open(io.BytesIO(data)))).all()


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("share", [0.2, 0.66, 0.95])
def test_such_cmyk_that_is_cut_is_truncated_even_with_an_end_marker_added(
    room: Any, photo: Any, share: float, progressive: bool
) -> None:
    picture = photo(mode="CMYK")
    data = encoded(picture, subsampling=2, progressive=progressive)
    cut = data[: int(len(data) * share)] + b"\xff\xd9"
    assert room.render(image_of(room, cut, picture)).reason is Reason.TRUNCATED_STREAM
