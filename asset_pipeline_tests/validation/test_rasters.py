"""Picture files of every type are judged by their headers alone, each fault for its own reason."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Callable

import pytest
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.gif import check_gif
from asset_pipeline.validation.png import SIGNATURE, check_png
from asset_pipeline.validation.rasters import check_bmp, check_raster, plain_type
from asset_pipeline.validation.tiff import check_tiff
from asset_pipeline.validation.webp import check_webp

LIMITS = Limits()
Gate = Callable[[bytes, Limits], object]
TYPES = {"PNG": "image/png", "GIF": "image/gif", "WEBP": "image/webp", "TIFF": "image/tiff", "BMP": "image/bmp"}


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **how: object) -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(out, kind, **how)
    return out.getvalue()


def animated(kind: str, frames: int = 2) -> bytes:
    out = io.BytesIO()
    pictures = [Image.new("RGB", (8, 8), (40 * n, 9, 9)) for n in range(frames)]
    pictures[0].save(out, kind, save_all=True, append_images=pictures[1:])
    return out.getvalue()


def reason_of(gate: Gate, data: bytes, limits: Limits = LIMITS) -> Reason:
    with pytest.raises(Refusal) as caught:
        gate(data, limits)
    return caught.value.reason


def chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def header(width: int = 8, height: int = 8, bits: int = 8, colour: int = 0, interlace: int = 0) -> bytes:
    return chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace))


ROWS = zlib.compress(bytes(72))
BODY = chunk(b"IDAT", ROWS)
END = chunk(b"IEND", b"")


def zeros(count: int) -> bytes:
    packer = zlib.compressobj(9)
    return b"".join([*(packer.compress(bytes(1 << 20)) for _ in range(count >> 20)), packer.flush()])


@pytest.mark.parametrize("kind", TYPES)
def test_a_sound_picture_passes_with_its_size(kind: str) -> None:
    found = check_raster(encoded(kind), TYPES[kind], LIMITS)
    assert (found.media_type, found.width, found.height) == (TYPES[kind], 40, 30)


@pytest.mark.parametrize("kind", TYPES)
def test_bytes_of_another_type_than_declared_are_refused(kind: str) -> None:
    declared = "image/jpeg"
    assert reason_of(lambda data, limits: check_raster(data, declared, limits), encoded(kind)) is (
        Reason.SIGNATURE_MISMATCH
    )


@pytest.mark.parametrize("kind", TYPES)
def test_more_pixels_than_allowed_are_refused(kind: str) -> None:
    few = Limits(pixels=1_199)
    assert reason_of(lambda data, limits: check_raster(data, None, limits), encoded(kind), few) is (
        Reason.PIXEL_BUDGET_EXCEEDED
    )


@pytest.mark.parametrize("kind", TYPES)
def test_every_cut_of_a_file_is_noticed(kind: str) -> None:
    data = encoded(kind)
    step = max(1, len(data) // 60)
    passed = []
    for length in range(0, len(data) - 1, step):
        try:
            check_raster(data[:length], TYPES[kind], LIMITS)
        except Refusal as refusal:
            assert refusal.reason in (Reason.TRUNCATED_STREAM, Reason.SIGNATURE_MISMATCH, Reason.MALFORMED_STREAM)
        else:
            passed.append(length)
    assert passed == []


@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP", "TIFF"])
def test_more_frames_than_allowed_are_refused(kind: str) -> None:
    gate = lambda data, limits: check_raster(data, None, limits)  # noqa: E731 - the shape that reason_of takes
    assert reason_of(gate, animated(kind)) is Reason.FRAME_BUDGET_EXCEEDED
    check_raster(animated(kind), None, Limits(frames=2))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"GIF89a", Reason.SIGNATURE_MISMATCH),
        (SIGNATURE, Reason.TRUNCATED_STREAM),
        (SIGNATURE + header(50_000, 50_000), Reason.PIXEL_BUDGET_EXCEEDED),
        (SIGNATURE + header(50_000, 50_000)[:-2], Reason.PIXEL_BUDGET_EXCEEDED),
        (SIGNATURE + header(0, 8) + BODY + END, Reason.INVALID_DIMENSIONS),
        (SIGNATURE + header(bits=3) + BODY + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + BODY + header() + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header() + header() + BODY + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header() + BODY, Reason.TRUNCATED_STREAM),
        (SIGNATURE + header() + END, Reason.TRUNCATED_STREAM),
        (SIGNATURE + header() + chunk(b"IDAT", zlib.compress(bytes(71))) + END, Reason.TRUNCATED_STREAM),
        (SIGNATURE + header() + chunk(b"IDAT", ROWS[:-3]) + END, Reason.TRUNCATED_STREAM),
        (SIGNATURE + header() + chunk(b"IDAT", zlib.compress(bytes(73))) + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header() + chunk(b"IDAT", b"\x78\x01\xff\xff\xff") + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header() + BODY[:-1] + b"\0" + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header(colour=3) + BODY + END, Reason.MALFORMED_STREAM),
        (SIGNATURE + header() + BODY + END + b"PK\x03\x04", Reason.TRAILING_DATA),
        (SIGNATURE + header() + BODY + END + b"the rest of a larger picture", Reason.TRAILING_DATA),
        (SIGNATURE + header() + chunk(b"IDAT", ROWS + b"hidden") + END, Reason.TRAILING_DATA),
        (SIGNATURE + header() + BODY + chunk(b"IDAT", b"hidden") + END, Reason.TRAILING_DATA),
        (SIGNATURE + header() + chunk(b"tEXt", b"k\0" + bytes(1 << 20)) + BODY + END, Reason.METADATA_TOO_LARGE),
        (SIGNATURE + header() + chunk(b"zTXt", b"k\0\0" + zeros(1 << 21)) + BODY + END, Reason.METADATA_TOO_LARGE),
        (SIGNATURE + header() + chunk(b"iCCP", b"k\0\0" + zeros(1 << 21)) + BODY + END, Reason.METADATA_TOO_LARGE),
        (
            SIGNATURE + header() + chunk(b"iTXt", b"k\0\1\0en\0k\0" + zeros(1 << 21)) + BODY + END,
            Reason.METADATA_TOO_LARGE,
        ),
        (
            SIGNATURE + header() + chunk(b"zTXt", b"k\0\0" + zlib.compress(bytes(600_000))) * 2 + BODY + END,
            Reason.METADATA_TOO_LARGE,
        ),
        (SIGNATURE + header() + chunk(b"acTL", struct.pack(">II", 9, 0)) + BODY + END, Reason.FRAME_BUDGET_EXCEEDED),
        (SIGNATURE + header() + chunk(b"fcTL", bytes(26)) * 2 + BODY + END, Reason.FRAME_BUDGET_EXCEEDED),
        (SIGNATURE + header() + chunk(b"a?c!", b"") + BODY + END, Reason.MALFORMED_STREAM),
    ],
)
def test_a_png_is_refused_for_the_exact_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_png, data) is reason


def test_zeros_behind_the_end_of_a_png_are_padding() -> None:
    check_png(SIGNATURE + header() + BODY + END + bytes(40), LIMITS)


def test_an_interlaced_png_is_counted_by_its_passes() -> None:
    rows = sum(count for _, count in ((1, 2), (1, 2), (1, 3), (2, 6), (2, 10), (4, 20), (4, 36)))
    check_png(SIGNATURE + header(interlace=1) + chunk(b"IDAT", zlib.compress(bytes(rows))) + END, LIMITS)


def test_a_gigabyte_of_zeros_is_not_expanded() -> None:
    bomb = SIGNATURE + header() + chunk(b"IDAT", zeros(1 << 30)) + END
    began = time.process_time()
    assert reason_of(check_png, bomb) is Reason.MALFORMED_STREAM
    assert time.process_time() - began < 0.2


def gif(
    width: int = 1, height: int = 1, frame: tuple[int, int] = (1, 1), tail: bytes = b";", inside: bytes = b""
) -> bytes:
    screen = b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0\0\0\0\xff\xff\xff"
    return screen + inside + b"\x2c\0\0\0\0" + struct.pack("<HH", *frame) + b"\0\x02\x02\x44\x01\0" + tail


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"GIF88a", Reason.SIGNATURE_MISMATCH),
        (gif()[:9], Reason.TRUNCATED_STREAM),
        (gif()[:-3], Reason.TRUNCATED_STREAM),
        (gif(0, 1), Reason.INVALID_DIMENSIONS),
        (gif(frame=(0, 1)), Reason.INVALID_DIMENSIONS),
        (gif(frame=(2, 1)), Reason.INVALID_DIMENSIONS),
        (gif(13_000, 13_000), Reason.PIXEL_BUDGET_EXCEEDED),
        (gif(tail=b";*/=1;alert(1)"), Reason.TRAILING_DATA),
        (gif(tail=b"?"), Reason.MALFORMED_STREAM),
        (gif()[:19] + b";", Reason.MALFORMED_STREAM),
        (gif(inside=b"\x21\xfe" + (b"\xff" + bytes(255)) * 5_000 + b"\0"), Reason.METADATA_TOO_LARGE),
    ],
)
def test_a_gif_is_refused_for_the_exact_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_gif, data) is reason


def webp(*chunks: tuple[bytes, bytes], size: int | None = None) -> bytes:
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks
    )
    return b"RIFF" + struct.pack("<I", len(body) if size is None else size) + body


LOSSLESS = (b"VP8L", b"\x2f\x00\x00\x00\x00\x00\x00\x00\x00\x00")
CANVAS = b"\0\0\0\0"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"RIFF\x04\0\0\0WAVE", Reason.SIGNATURE_MISMATCH),
        (webp(), Reason.MALFORMED_STREAM),
        (webp(LOSSLESS)[:-4], Reason.TRUNCATED_STREAM),
        (webp(LOSSLESS, size=900), Reason.TRUNCATED_STREAM),
        (webp((b"VP8 ", bytes(10))), Reason.MALFORMED_STREAM),
        (webp((b"VP8L", bytes(10))), Reason.MALFORMED_STREAM),
        (webp((b"VP8X", CANVAS + b"\xff\xff\xff" * 2), LOSSLESS), Reason.PIXEL_BUDGET_EXCEEDED),
        (webp((b"VP8L", b"\x2f\xff\xff\xff\xff" + bytes(5))), Reason.PIXEL_BUDGET_EXCEEDED),
        (webp((b"VP8X", CANVAS + bytes(6)), (b"VP8L", b"\x2f\x05\0\0\0" + bytes(5))), Reason.INVALID_DIMENSIONS),
        (webp(LOSSLESS, (b"EXIF", bytes(1 << 21))), Reason.METADATA_TOO_LARGE),
        (webp(LOSSLESS) + b"PK\x03\x04", Reason.TRAILING_DATA),
    ],
)
def test_a_webp_is_refused_for_the_exact_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_webp, data) is reason


def tiff(*changes: tuple[int, int, int, int], follow: int = 0, order: str = "<", body: int = 64) -> bytes:
    """One directory at 8 for an 8 by 8 gray picture, its samples behind it; ``changes`` replace entries by tag."""
    behind = 8 + 2 + 12 * 9 + 4
    entries = {
        256: (4, 1, 8), 257: (4, 1, 8), 258: (3, 1, 8), 259: (3, 1, 1), 262: (3, 1, 1),
        273: (4, 1, behind), 277: (3, 1, 1), 278: (4, 1, 8), 279: (4, 1, 64),
    }  # fmt: skip
    entries |= {tag: (kind, count, value) for tag, kind, count, value in changes}
    rows = b"".join(
        struct.pack(order + "HHI", tag, kind, count)
        + (struct.pack(order + "HH", value, 0) if kind == 3 and count == 1 else struct.pack(order + "I", value))
        for tag, (kind, count, value) in sorted(entries.items())
    )
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, len(entries))
    return head + rows + struct.pack(order + "I", follow) + bytes(body)


@pytest.mark.parametrize("order", "<>")
def test_a_tiff_passes_in_both_byte_orders(order: str) -> None:
    found = check_tiff(tiff(order=order), LIMITS)
    assert (found.width, found.height, found.bits, found.samples) == (8, 8, 8, 1)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"II*\0", Reason.TRUNCATED_STREAM),
        (b"JUNKJUNK", Reason.SIGNATURE_MISMATCH),
        (b"II+\0\x08\0\0\0", Reason.UNSUPPORTED_CODEC),
        (b"II*\0" + bytes(8), Reason.MALFORMED_STREAM),
        (tiff(follow=8), Reason.STRUCTURE_LOOP),
        (tiff(follow=20), Reason.FRAME_BUDGET_EXCEEDED),
        (tiff((256, 4, 1, 60_000), (257, 4, 1, 60_000)), Reason.PIXEL_BUDGET_EXCEEDED),
        (tiff((256, 4, 1, 0)), Reason.INVALID_DIMENSIONS),
        (tiff((258, 3, 1, 32)), Reason.UNSUPPORTED_CODEC),
        (tiff((277, 3, 1, 900)), Reason.UNSUPPORTED_COLOUR_SPACE),
        (tiff((273, 4, 0xFFFFFFF0, 8), (279, 4, 0xFFFFFFF0, 8)), Reason.MALFORMED_STREAM),
        (tiff((278, 4, 1, 4)), Reason.MALFORMED_STREAM),
        (tiff((279, 4, 1, 65)), Reason.TRUNCATED_STREAM),
        (tiff(body=63), Reason.TRUNCATED_STREAM),
        (tiff((700, 1, 1 << 21, 8)), Reason.METADATA_TOO_LARGE),
        (tiff((34675, 7, 4_000, 8)), Reason.TRUNCATED_STREAM),
    ],
)
def test_a_tiff_is_refused_for_the_exact_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_tiff, data) is reason


def test_an_archive_behind_a_tiff_is_noticed() -> None:
    assert reason_of(check_tiff, tiff() + b"PK\x03\x04" + bytes(40)) is Reason.TRAILING_DATA


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: data[:30], Reason.TRUNCATED_STREAM),
        (lambda data: data[:-1], Reason.TRUNCATED_STREAM),
        (lambda data: data[:14] + b"\x0c\0\0\0" + data[18:], Reason.UNSUPPORTED_CODEC),
        (lambda data: data[:18] + struct.pack("<ii", 30_000, -30_000) + data[26:], Reason.PIXEL_BUDGET_EXCEEDED),
        (lambda data: data[:18] + struct.pack("<ii", -1, 5) + data[26:], Reason.INVALID_DIMENSIONS),
    ],
)
def test_a_bitmap_is_refused_for_the_exact_reason(change: Callable[[bytes], bytes], reason: Reason) -> None:
    assert reason_of(check_bmp, change(encoded("BMP"))) is reason


@pytest.mark.parametrize(
    ("declared", "data", "reason"),
    [
        ("image/x-emf", b"\x01\0\0\0" + bytes(36) + b" EMF" + bytes(20), Reason.UNSUPPORTED_CODEC),
        ("image/x-emf", b"\x1f\x8b\x08" + bytes(20), Reason.UNSUPPORTED_CODEC),
        ("image/x-wmf", b"\x01\x00\x09\x00\x00\x03" + bytes(20), Reason.UNSUPPORTED_CODEC),
        ("image/svg+xml", b"<svg xmlns='x'/>", Reason.UNSUPPORTED_CODEC),
        ("image/x-emf", b"<svg xmlns='x'/>", Reason.SIGNATURE_MISMATCH),
        ("image/png", b"\x01\0\0\0" + bytes(36) + b" EMF" + bytes(20), Reason.SIGNATURE_MISMATCH),
        (None, b"\xd7\xcd\xc6\x9a" + bytes(40), Reason.UNSUPPORTED_CODEC),
        (None, b"%!PS-Adobe-3.0 EPSF-3.0", Reason.UNSUPPORTED_CODEC),
        ("image/vnd.adobe.photoshop", b"8BPS" + bytes(40), Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("application/octet-stream", b"MZ\x90\0", Reason.MEDIA_TYPE_NOT_ALLOWED),
        (None, b"plain words", Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("image/png", b"plain words", Reason.SIGNATURE_MISMATCH),
    ],
)
def test_what_no_decoder_may_see_is_told_apart(declared: str | None, data: bytes, reason: Reason) -> None:
    assert reason_of(lambda body, limits: check_raster(body, declared, limits), data) is reason


def test_a_picture_file_larger_than_allowed_is_refused_first() -> None:
    few = Limits(encoded_bytes=20)
    assert reason_of(lambda data, limits: check_raster(data, "image/png", limits), bytes(21), few) is (
        Reason.PAYLOAD_TOO_LARGE
    )


@pytest.mark.parametrize(
    ("declared", "plain"),
    [
        ("image/jpg", "image/jpeg"),
        ("IMAGE/PNG; q=1", "image/png"),
        ("image/x-emf", "image/emf"),
        (None, None),
        ("", None),
    ],
)
def test_old_names_of_types_are_known(declared: str | None, plain: str | None) -> None:
    assert plain_type(declared) == plain
