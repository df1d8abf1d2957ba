"""Raw samples behind every lossless filter, depth, colour and predictor come out bit-exact."""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image

from asset_pipeline.extraction.pdf.samples import pack

N = pikepdf.Name


def as_hex(data: bytes) -> bytes:
    return data.hex().encode() + b">"


def as_85(data: bytes) -> bytes:
    return base64.a85encode(data) + b"~>"


def as_runs(data: bytes) -> bytes:
    out = b""
    for at in range(0, len(data), 100):
        part = data[at : at + 100]
        out += bytes([len(part) - 1]) + part
    return out + b"\x80"


def as_lzw(data: bytes, early: int = 1) -> bytes:
    """A plain LZW encoder: grows its table and its codes as decoders expect."""
    bits = []

    def put(code: int, width: int) -> None:
        bits.append(format(code, f"0{width}b"))

    table = {bytes([value]): value for value in range(256)}
    put(256, 9)
    following, width, held = 258, 9, b""
    for value in data:
        longer = held + bytes([value])
        if longer in table:
            held = longer
            continue
        put(table[held], width)
        if following < 4095:
            table[longer] = following
            following += 1
            if following + early > 1 << width and width < 12:
                width += 1
        else:
            put(256, width)
            table = {bytes([one]): one for one in range(256)}
            following, width = 258, 9
        held = bytes([value])
    put(table[held], width)
    following += 1
    if following + early > 1 << width and width < 12:
        width += 1
    put(257, width)
    text = "".join(bits)
    text += "0" * (-len(text) % 8)
    return int(text, 2).to_bytes(len(text) // 8, "big")


FILTERS: dict[str, Any] = {
    "none": (lambda data: data, None),
    "Flate": (zlib.compress, N.FlateDecode),
    "Flate in an array": (zlib.compress, pikepdf.Array([N.FlateDecode])),
    "Hex": (as_hex, N.ASCIIHexDecode),
    "85": (as_85, N.ASCII85Decode),
    "RunLength": (as_runs, N.RunLengthDecode),
    "LZW": (as_lzw, N.LZWDecode),
    "85 and Flate": (lambda data: as_85(zlib.compress(data)), pikepdf.Array([N.ASCII85Decode, N.FlateDecode])),
    "abbreviated": (lambda data: as_hex(zlib.compress(data)), pikepdf.Array([N.AHx, N.Fl])),
    "Crypt Identity": (zlib.compress, pikepdf.Array([N.Crypt, N.FlateDecode])),
    "empty array": (lambda data: data, pikepdf.Array([])),
}


@pytest.mark.parametrize("name", FILTERS)
def test_each_lossless_filter_gives_the_exact_samples(room: Any, noise: Any, name: str) -> None:
    encode, filters = FILTERS[name]
    codes = noise(21, 33, 3)
    keys = {} if filters is None else {"Filter": filters}
    image = room.image(encode(codes.tobytes()), 33, 21, ColorSpace=N.DeviceRGB, BitsPerComponent=8, **keys)
    rendered = room.render(image)
    assert rendered.reason is None
    assert (room.samples(rendered.original) == codes).all()
    assert rendered.display == rendered.original
    assert rendered.original.renditions == ["original", "display"]


def test_lzw_without_early_change_and_a_full_table_decodes(room: Any, noise: Any) -> None:
    codes = noise(90, 100)
    image = room.image(
        as_lzw(codes.tobytes(), early=0),
        100,
        90,
        ColorSpace=N.DeviceGray,
        BitsPerComponent=8,
        Filter=N.LZWDecode,
        DecodeParms=pikepdf.Dictionary(EarlyChange=0),
    )
    assert (room.samples(room.render(image).original) == codes[:, :, 0]).all()


@pytest.mark.parametrize("bits", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("width", [1, 7, 16])
def test_gray_of_each_depth_keeps_its_depth(room: Any, noise: Any, bits: int, width: int) -> None:
    codes = noise(5, width, 1, bits)
    image = room.image(pack(codes, bits).tobytes(), width, 5, ColorSpace=N.DeviceGray, BitsPerComponent=bits)
    rendered = room.render(image)
    opened = room.open(rendered.original)
    assert rendered.original.bits == bits
    assert rendered.original.mode == opened.mode
    scale = {1: 1, 2: 85, 4: 17, 8: 1, 16: 1}[bits]
    assert (np.asarray(opened).astype(int) == codes[:, :, 0].astype(int) * scale).all()


@pytest.mark.parametrize("bits", [1, 2, 4])
def test_rgb_of_few_bits_is_scaled_to_eight_and_is_no_palette(room: Any, noise: Any, bits: int) -> None:
    codes = noise(6, 9, 3, bits)
    image = room.image(pack(codes, bits).tobytes(), 9, 6, ColorSpace=N.DeviceRGB, BitsPerComponent=bits)
    rendered = room.render(image)
    assert rendered.original.mode == "RGB"
    assert (room.samples(rendered.original) == codes * (255 // ((1 << bits) - 1))).all()


def test_rgb_of_sixteen_bits_stays_sixteen(room: Any, noise: Any) -> None:
    codes = noise(6, 9, 3, 16)
    image = room.image(pack(codes, 16).tobytes(), 9, 6, ColorSpace=N.DeviceRGB, BitsPerComponent=16)
    rendered = room.render(image)
    assert rendered.original.bits == 16
    stored = (room.out / rendered.original.file).read_bytes()
    at = stored.index(b"IDAT")
    rows = zlib.decompress(stored[at + 4 : at + 4 + int.from_bytes(stored[at - 4 : at], "big")])
    rows = np.frombuffer(rows, np.uint8).reshape(6, 9 * 6 + 1)
    assert (np.cumsum(rows[:, 1:], axis=0, dtype=np.uint8) == pack(codes, 16)).all()


def paeth(left: int, above: int, corner: int) -> int:
    guess = left + above - corner
    return min((left, above, corner), key=lambda value: abs(guess - value))


def filtered(rows: Any, step: int, kinds: list[int]) -> bytes:
    """PNG-filter ``rows`` (height, bytes), one kind after the other."""
    out = b""
    before = np.zeros(rows.shape[1], int)
    for index, row in enumerate(rows.astype(int)):
        kind = kinds[index % len(kinds)]
        line = []
        for x in range(len(row)):
            left = row[x - step] if x >= step else 0
            corner = before[x - step] if x >= step else 0
            guess = (0, left, before[x], (left + before[x]) // 2, paeth(left, before[x], corner))[kind]
            line.append((row[x] - guess) % 256)
        out += bytes([kind, *line])
        before = row
    return out


PREDICTED = [
    (N.DeviceGray, 1, 1),
    (N.DeviceGray, 1, 2),
    (N.DeviceGray, 1, 4),
    (N.DeviceGray, 1, 8),
    (N.DeviceGray, 1, 16),
    (N.DeviceRGB, 3, 4),
    (N.DeviceRGB, 3, 8),
    (N.DeviceRGB, 3, 16),
    (N.DeviceCMYK, 4, 8),
    (N.DeviceCMYK, 4, 16),
]


@pytest.mark.parametrize("kinds", [[0], [1], [2], [3], [4], [4, 1, 3, 0, 2]])
@pytest.mark.parametrize(("space", "components", "bits"), PREDICTED)
def test_png_predictors_are_undone_exactly(
    room: Any, noise: Any, space: Any, components: int, bits: int, kinds: list[int]
) -> None:
    codes = noise(7, 11, components, bits)
    rows = pack(codes, bits)
    data = zlib.compress(filtered(rows, max(1, -(-components * bits // 8)), kinds))
    parms = pikepdf.Dictionary(Predictor=15, Columns=11, Colors=components, BitsPerComponent=bits)
    image = room.image(
        data, 11, 7, ColorSpace=space, BitsPerComponent=bits, Filter=N.FlateDecode, DecodeParms=pikepdf.Array([parms])
    )
    plain = room.image(rows.tobytes(), 11, 7, ColorSpace=space, BitsPerComponent=bits)
    rendered, expected = room.render(image), room.render(plain)
    assert rendered.reason is None
    assert rendered.original.pixel_sha256 == expected.original.pixel_sha256
    wrapped = components * bits not in (12,) and components != 4
    assert (data in (room.out / rendered.original.file).read_bytes()) == wrapped
    if bits != 16 or components == 1:
        assert (room.samples(rendered.original) == room.samples(expected.original)).all()


@pytest.mark.parametrize(("components", "bits"), [(1, 1), (1, 2), (3, 4), (1, 8), (3, 8), (4, 8), (3, 16)])
def test_tiff_predictor_is_undone_exactly(room: Any, noise: Any, components: int, bits: int) -> None:
    codes = noise(5, 13, components, bits)
    differences = codes.copy()
    differences[:, 1:] -= codes[:, :-1]
    differences &= (1 << bits) - 1
    parms = pikepdf.Dictionary(Predictor=2, Columns=13, Colors=components, BitsPerComponent=bits)
    space = {1: N.DeviceGray, 3: N.DeviceRGB, 4: N.DeviceCMYK}[components]
    keys = {"ColorSpace": space, "BitsPerComponent": bits}
    image = room.image(
        zlib.compress(pack(differences, bits).tobytes()), 13, 5, Filter=N.FlateDecode, DecodeParms=parms, **keys
    )
    plain = room.image(pack(codes, bits).tobytes(), 13, 5, **keys)
    assert room.render(image).original.pixel_sha256 == room.render(plain).original.pixel_sha256


def test_predictor_without_columns_uses_the_pictures_width_where_only_that_fits(room: Any, noise: Any) -> None:
    codes = noise(7, 11, 3)
    data = zlib.compress(filtered(codes.reshape(7, -1), 3, [1, 2, 4]))
    parms = pikepdf.Dictionary(Predictor=15, Colors=3)
    image = room.image(data, 11, 7, ColorSpace=N.DeviceRGB, BitsPerComponent=8, Filter=N.FlateDecode, DecodeParms=parms)
    assert (room.samples(room.render(image).original) == codes).all()


def test_null_parameters_beside_real_ones_are_no_predictor(room: Any, noise: Any) -> None:
    codes = noise(4, 6)
    null = pikepdf.Object.parse(b"[null <</Predictor 15 /Columns 6>>]")
    data = as_hex(zlib.compress(filtered(codes.reshape(4, -1), 1, [2])))
    filters = pikepdf.Array([N.ASCIIHexDecode, N.FlateDecode])
    image = room.image(data, 6, 4, ColorSpace=N.DeviceGray, BitsPerComponent=8, Filter=filters, DecodeParms=null)
    assert (room.samples(room.render(image).original) == codes[:, :, 0]).all()


@pytest.mark.parametrize("tail", [b"\n", b"\0\0\0", b"garbage behind the data"])
def test_bytes_behind_the_data_are_ignored_and_not_wrapped(room: Any, noise: Any, tail: bytes) -> None:
    codes = noise(4, 6)
    data = zlib.compress(filtered(codes.reshape(4, -1), 1, [1])) + tail
    parms = pikepdf.Dictionary(Predictor=15, Columns=6)
    image = room.image(data, 6, 4, ColorSpace=N.DeviceGray, BitsPerComponent=8, Filter=N.FlateDecode, DecodeParms=parms)
    rendered = room.render(image)
    assert (room.samples(rendered.original) == codes[:, :, 0]).all()
    assert data not in (room.out / rendered.original.file).read_bytes()


def test_wrong_checksum_behind_complete_rows_is_forgiven(room: Any, noise: Any) -> None:
    codes = noise(40, 60)
    data = zlib.compress(codes.tobytes())[:-4] + b"\x12\x34\x56\x78"
    image = room.image(data, 60, 40, ColorSpace=N.DeviceGray, BitsPerComponent=8, Filter=N.FlateDecode)
    assert (room.samples(room.render(image).original) == codes[:, :, 0]).all()


def test_extra_rows_are_left_out(room: Any, noise: Any) -> None:
    codes = noise(9, 6)
    image = room.image(
        zlib.compress(codes.tobytes()), 6, 4, ColorSpace=N.DeviceGray, BitsPerComponent=8, Filter=N.FlateDecode
    )
    assert (room.samples(room.render(image).original) == codes[:4, :, 0]).all()


@pytest.mark.parametrize(
    ("components", "bits", "mode"),
    [(4, 8, "CMYK"), (4, 16, None), (2, 8, None), (3, 8, "RGB"), (5, 8, None), (7, 8, None)],
)
def test_inks_that_png_cannot_hold_become_tiff_with_the_same_samples(
    room: Any, noise: Any, components: int, bits: int, mode: str | None
) -> None:
    codes = noise(6, 5, components, bits)
    names = pikepdf.Array([N(f"/Ink{index}") for index in range(components)])
    tint = pikepdf.Stream(room.pdf, b"{" + b" pop" * (components - 1) + b" dup dup }")
    tint.FunctionType, tint.Domain, tint.Range = 4, pikepdf.Array([0, 1] * components), pikepdf.Array([0, 1] * 3)
    space: Any = pikepdf.Array([N.DeviceN, names, N.DeviceRGB, room.pdf.make_indirect(tint)])
    if components == 4:
        space = N.DeviceCMYK
    image = room.image(pack(codes, bits).tobytes(), 5, 6, ColorSpace=space, BitsPerComponent=bits)
    rendered = room.render(image)
    assert rendered.reason is None
    assert rendered.original.media_type == "image/tiff"
    if mode is not None:
        assert rendered.original.mode == mode
        assert (room.samples(rendered.original) == codes).all()
    assert room.open(rendered.display).mode in ("RGB", "L")


def test_pixel_digest_is_what_pillow_decodes(room: Any, noise: Any) -> None:
    import hashlib

    for space, components, bits in (
        (N.DeviceGray, 1, 1),
        (N.DeviceGray, 1, 4),
        (N.DeviceGray, 1, 16),
        (N.DeviceRGB, 3, 8),
    ):
        codes = noise(6, 11, components, bits)
        image = room.image(pack(codes, bits).tobytes(), 11, 6, ColorSpace=space, BitsPerComponent=bits)
        picture = room.render(image).original
        with Image.open(room.out / picture.file) as opened:
            assert opened.mode == picture.mode
            assert hashlib.sha256(opened.tobytes()).hexdigest() == picture.pixel_sha256
