"""Each thing that can be wrong with a picture has its exact reason, and nothing of it is published."""

from __future__ import annotations

import io
import zlib
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image

from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

N = pikepdf.Name


def array(*items: Any) -> pikepdf.Array:
    return pikepdf.Array(list(items))


def parse(text: str) -> Any:
    return pikepdf.Object.parse(text.encode())


RAW = bytes(range(48))
FLATE = zlib.compress(bytes(range(256)) * 200)
GRAY8 = {"ColorSpace": N.DeviceGray, "BitsPerComponent": 8}
RGB8 = {"ColorSpace": N.DeviceRGB, "BitsPerComponent": 8}

CASES: dict[str, tuple[Reason, bytes, int, int, dict[str, Any]]] = {
    "no width": (Reason.INVALID_DIMENSIONS, RAW, 0, 4, RGB8),
    "negative height": (Reason.INVALID_DIMENSIONS, RAW, 4, -4, RGB8),
    "width beyond any codec": (Reason.PIXEL_BUDGET_EXCEEDED, RAW, 2**31, 1, RGB8),
    "declared bomb": (Reason.PIXEL_BUDGET_EXCEEDED, RAW, 60000, 60000, RGB8),
    "kept outside": (Reason.EXTERNAL_REFERENCE, RAW, 4, 4, RGB8 | {"F": pikepdf.String("pixels.raw")}),
    "nothing stored": (Reason.TRUNCATED_STREAM, b"", 4, 4, RGB8),
    "short raw": (Reason.TRUNCATED_STREAM, RAW[:-1], 4, 4, RGB8),
    "short flate": (Reason.TRUNCATED_STREAM, zlib.compress(RAW[:-1]), 4, 4, RGB8 | {"Filter": N.FlateDecode}),
    "cut flate": (Reason.TRUNCATED_STREAM, FLATE[: len(FLATE) // 2], 256, 200, GRAY8 | {"Filter": N.FlateDecode}),
    "no flate": (Reason.MALFORMED_STREAM, b"\x78\x9c" + b"\xff" * 50, 4, 4, RGB8 | {"Filter": N.FlateDecode}),
    "no hex": (Reason.MALFORMED_STREAM, b"zz>", 4, 4, RGB8 | {"Filter": N.ASCIIHexDecode}),
    "no base 85": (Reason.MALFORMED_STREAM, b"\x80\x81~>", 4, 4, RGB8 | {"Filter": N.ASCII85Decode}),
    "short hex": (Reason.TRUNCATED_STREAM, b"0011", 4, 4, RGB8 | {"Filter": N.ASCIIHexDecode}),
    "short run": (Reason.TRUNCATED_STREAM, b"\x05ab", 4, 4, RGB8 | {"Filter": N.RunLengthDecode}),
    "impossible LZW code": (Reason.MALFORMED_STREAM, b"\x80\x7f\xff\xff", 4, 4, RGB8 | {"Filter": N.LZWDecode}),
    "short LZW": (Reason.TRUNCATED_STREAM, b"\x80\x00", 4, 4, RGB8 | {"Filter": N.LZWDecode}),
    "too many filters": (Reason.FILTER_BUDGET_EXCEEDED, RAW, 4, 4, RGB8 | {"Filter": array(*[N.FlateDecode] * 9)}),
    "unknown filter": (Reason.UNSUPPORTED_CODEC, RAW, 4, 4, RGB8 | {"Filter": N.BrotliDecode}),
    "filter that is no name": (Reason.MALFORMED_STREAM, RAW, 4, 4, RGB8 | {"Filter": array(7)}),
    "codec inside a chain": (
        Reason.UNSUPPORTED_CODEC,
        RAW,
        4,
        4,
        RGB8 | {"Filter": array(N.DCTDecode, N.FlateDecode)},
    ),
    "bits that do not exist": (Reason.MALFORMED_STREAM, RAW, 4, 4, {"ColorSpace": N.DeviceRGB, "BitsPerComponent": 7}),
    "no colour space": (Reason.UNSUPPORTED_COLOUR_SPACE, RAW, 4, 4, {"BitsPerComponent": 8}),
    "pattern as colour": (Reason.UNSUPPORTED_COLOUR_SPACE, RAW, 4, 4, {"ColorSpace": N.Pattern}),
    "unknown colour": (Reason.UNSUPPORTED_COLOUR_SPACE, RAW, 4, 4, {"ColorSpace": array(N.Fancy, 1)}),
    "more inks than any press": (
        Reason.UNSUPPORTED_COLOUR_SPACE,
        RAW,
        4,
        4,
        {"ColorSpace": array(N.DeviceN, array(*[N.A] * 40), N.DeviceGray, 1), "BitsPerComponent": 8},
    ),
    "palette of a palette": (
        Reason.UNSUPPORTED_COLOUR_SPACE,
        RAW,
        4,
        4,
        {"ColorSpace": parse("[/Indexed [/Indexed /DeviceRGB 1 <00>] 1 <00>]"), "BitsPerComponent": 8},
    ),
    "PNG under DCT": (Reason.SIGNATURE_MISMATCH, b"\x89PNG\r\n\x1a\n" + RAW, 4, 4, RGB8 | {"Filter": N.DCTDecode}),
    "page under DCT": (Reason.SIGNATURE_MISMATCH, b"<html><script>", 4, 4, RGB8 | {"Filter": N.DCTDecode}),
    "JPEG under JPX": (Reason.SIGNATURE_MISMATCH, b"\xff\xd8\xff\xe0" + RAW, 4, 4, {"Filter": N.JPXDecode}),
    "half a JPEG header": (
        Reason.TRUNCATED_STREAM,
        b"\xff\xd8\xff\xe0\x00\x10JF",
        4,
        4,
        RGB8 | {"Filter": N.DCTDecode},
    ),
    "predictor that does not exist": (
        Reason.MALFORMED_STREAM,
        zlib.compress(RAW),
        4,
        4,
        RGB8 | {"Filter": N.FlateDecode, "DecodeParms": parse("<</Predictor 15 /Colors 99>>")},
    ),
    "predictor of two thousand million columns": (
        Reason.MALFORMED_STREAM,
        zlib.compress(RAW),
        4,
        4,
        RGB8 | {"Filter": N.FlateDecode, "DecodeParms": parse("<</Predictor 15 /Columns 2000000000>>")},
    ),
    "filter type that does not exist": (
        Reason.MALFORMED_STREAM,
        zlib.compress(b"\x09" + bytes(12) + b"\x09" + bytes(12)),
        4,
        2,
        RGB8 | {"Filter": N.FlateDecode, "DecodeParms": parse("<</Predictor 15 /Columns 4 /Colors 3>>")},
    ),
    "fax of a thousand million rows": (
        Reason.PIXEL_BUDGET_EXCEEDED,
        RAW,
        8,
        8,
        {"ColorSpace": N.DeviceGray, "Filter": N.CCITTFaxDecode, "DecodeParms": parse("<</K -1 /Rows 1000000000>>")},
    ),
    "JBIG2 without its page": (
        Reason.TRUNCATED_STREAM,
        b"\0\0\0\0\x30\0\x01\0\0\0\x13",
        8,
        8,
        {"ColorSpace": N.DeviceGray, "Filter": N.JBIG2Decode},
    ),
    "decode array of words": (
        Reason.MALFORMED_STREAM,
        RAW,
        4,
        4,
        RGB8 | {"Decode": array(*[N.A] * 6)},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_fault_has_its_exact_reason_and_publishes_nothing(room: Any, name: str) -> None:
    reason, data, width, height, keys = CASES[name]
    rendered = room.render(room.image(data, width, height, **keys))
    assert rendered.reason is reason
    assert rendered.original is rendered.display is None
    assert list(room.out.iterdir()) == []


def jpeg(width: int = 32, height: int = 32, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (width, height), (9, 99, 199)).save(out, "JPEG", **options)
    return out.getvalue()


def jpeg_image(room: Any, data: bytes) -> Any:
    return room.image(data, 32, 32, Filter=N.DCTDecode, **RGB8)


def test_size_that_only_the_jpeg_header_tells_is_refused_before_decoding(room: Any) -> None:
    data = bytearray(jpeg())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = (65500).to_bytes(2, "big") * 2
    assert room.render(jpeg_image(room, bytes(data))).reason is Reason.PIXEL_BUDGET_EXCEEDED


def test_jpeg_with_too_many_scans_is_refused_before_decoding(room: Any) -> None:
    data = jpeg(progressive=True)
    start = data.rindex(b"\xff\xda")
    scan = data[start:-2]
    policy = Policy(limits=Limits(jpeg_scans=20))
    rendered = room.render(jpeg_image(room, data[:-2] + scan * 30 + data[-2:]), policy=policy)
    assert rendered.reason is Reason.FRAME_BUDGET_EXCEEDED


def test_metadata_larger_than_allowed_is_refused(room: Any) -> None:
    data = jpeg()
    junk = b"\xff\xe1\xff\xff" + b"x" * 65533
    rendered = room.render(jpeg_image(room, data[:2] + junk * 17 + data[2:]))
    assert rendered.reason is Reason.METADATA_TOO_LARGE


def test_encoded_bytes_beyond_the_limit_are_refused(room: Any) -> None:
    policy = Policy(limits=Limits(encoded_bytes=40))
    assert room.render(room.image(RAW, 4, 4, **RGB8), policy=policy).reason is Reason.PAYLOAD_TOO_LARGE


def test_samples_beyond_the_expanded_limit_are_refused_before_inflating(room: Any) -> None:
    policy = Policy(limits=Limits(expanded_bytes=1000))
    image = room.image(zlib.compress(bytes(1200)), 20, 20, Filter=N.FlateDecode, **RGB8)
    assert room.render(image, policy=policy).reason is Reason.EXPANDED_SIZE_EXCEEDED


@pytest.mark.parametrize("inner", [N.FlateDecode, N.RunLengthDecode, N.ASCIIHexDecode])
def test_layer_that_expands_beyond_the_limit_is_refused(room: Any, inner: Any) -> None:
    policy = Policy(limits=Limits(expanded_bytes=100_000))
    image = room.image(zlib.compress(bytes(2_000_000)), 4, 4, Filter=array(N.FlateDecode, inner), **RGB8)
    assert room.render(image, policy=policy).reason is Reason.EXPANDED_SIZE_EXCEEDED


def test_bomb_of_a_gigabyte_in_three_layers_takes_no_memory(room: Any) -> None:
    import tracemalloc

    once = zlib.compressobj(9)
    data = b"".join(once.compress(bytes(1 << 20)) for _ in range(200)) + once.flush()
    image = room.image(zlib.compress(zlib.compress(data, 9), 9), 300, 300, Filter=array(*[N.FlateDecode] * 3), **GRAY8)
    tracemalloc.start()
    rendered = room.render(image)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rendered.reason is None  # 90,000 zeros are all that the picture needs
    assert peak < 20_000_000


@pytest.mark.parametrize("predictor", [1, 15])
def test_samples_that_inflate_far_beyond_the_picture_and_the_limit_are_refused(room: Any, predictor: int) -> None:
    import tracemalloc

    once = zlib.compressobj(9)
    data = b"".join(once.compress(bytes(1 << 20)) for _ in range(40)) + once.flush()
    parms = pikepdf.Dictionary(Predictor=predictor, Columns=640)
    image = room.image(data, 640, 400, Filter=N.FlateDecode, DecodeParms=parms, **GRAY8)
    tracemalloc.start()
    rendered = room.render(image, policy=Policy(limits=Limits(expanded_bytes=32 << 20)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rendered.reason is Reason.EXPANDED_SIZE_EXCEEDED
    assert peak < 24_000_000
    again = room.image(data, 640, 400, Filter=N.FlateDecode, DecodeParms=parms, **GRAY8)
    assert room.render(again, policy=Policy(limits=Limits(expanded_bytes=48 << 20))).reason is None


def test_colour_space_that_contains_itself_is_a_loop(room: Any) -> None:
    space = room.pdf.make_indirect(array(N.Indexed, N.DeviceRGB, 1, pikepdf.String(b"\0\0\0\xff\xff\xff")))
    space[1] = space
    assert room.render(room.image(RAW, 4, 4, ColorSpace=space, BitsPerComponent=8)).reason is Reason.STRUCTURE_LOOP


@pytest.mark.parametrize(
    "keys",
    [
        {"Width": N.Height},
        {"BitsPerComponent": array(8)},
        {"ColorSpace": array()},
        {"ColorSpace": array(array())},
        {"ColorSpace": array(N.ICCBased, 5)},
        {"ColorSpace": array(N.Indexed, N.DeviceRGB, N.A, pikepdf.String(b"x"))},
        {"ColorSpace": array(N.Separation, N.A)},
        {"ColorSpace": pikepdf.Dictionary()},
        {"Filter": pikepdf.Dictionary()},
        {"DecodeParms": array(array()), "Filter": N.FlateDecode},
        {"Mask": array(N.A, N.B)},
        {"Decode": N.A},
        {"SMask": pikepdf.Dictionary()},
    ],
)
def test_dictionary_of_nonsense_never_raises(room: Any, keys: dict[str, Any]) -> None:
    image = room.image(RAW, 4, 4, **(RGB8 | keys))
    rendered = room.render(image)
    assert rendered.reason is not None or rendered.original is not None


def test_full_disk_is_not_told_as_a_bad_picture(room: Any) -> None:
    room.out = room.out / "missing"
    with pytest.raises(OSError, match="No such file"):
        room.render(room.image(RAW, 4, 4, **RGB8))


def test_one_bad_picture_does_not_touch_the_next(room: Any) -> None:
    bad = room.image(b"\x78\x9c" + b"\xff" * 50, 4, 4, Filter=N.FlateDecode, **RGB8)
    good = room.image(RAW, 4, 4, **RGB8)
    assert room.render(bad).reason is Reason.MALFORMED_STREAM
    assert (room.samples(room.render(good).original) == np.frombuffer(RAW, np.uint8).reshape(4, 4, 3)).all()
