"""Headers are read without decoding, and tell the truth about sizes, ends and hidden files."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from PIL import Image

from asset_pipeline.errors import Refusal
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.jbig2 import check_jbig2
from asset_pipeline.validation.jpeg import check_jpeg, read_jpeg
from asset_pipeline.validation.jpx import check_jpx
from asset_pipeline.validation.limits import (
    check_dimensions,
    check_encoded,
    check_expanded,
    check_filters,
    check_frames,
    check_metadata,
    check_pixels,
)
from asset_pipeline.validation.signatures import hides_a_file, sniff

LIMITS = Limits()


def encoded(kind: str, mode: str = "RGB", size: tuple[int, int] = (40, 30), **options: Any) -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").resize(size).convert(mode).save(out, kind, **options)
    return out.getvalue()


def reason_of(check: Any, *arguments: Any) -> Reason:
    with pytest.raises(Refusal) as caught:
        check(*arguments)
    return caught.value.reason


@pytest.mark.parametrize(
    ("check", "arguments", "reason"),
    [
        (check_dimensions, (0, 5), Reason.INVALID_DIMENSIONS),
        (check_dimensions, (5, -1), Reason.INVALID_DIMENSIONS),
        (check_pixels, (2**31, 1, LIMITS), Reason.PIXEL_BUDGET_EXCEEDED),
        (check_pixels, (40_000_001, 1, LIMITS), Reason.PIXEL_BUDGET_EXCEEDED),
        (check_encoded, (25 * 1024 * 1024 + 1, LIMITS), Reason.PAYLOAD_TOO_LARGE),
        (check_expanded, (512 * 1024 * 1024 + 1, LIMITS), Reason.EXPANDED_SIZE_EXCEEDED),
        (check_filters, (9, LIMITS), Reason.FILTER_BUDGET_EXCEEDED),
        (check_frames, (2, LIMITS), Reason.FRAME_BUDGET_EXCEEDED),
        (check_metadata, (1024 * 1024 + 1, LIMITS), Reason.METADATA_TOO_LARGE),
    ],
)
def test_one_beyond_each_limit_is_refused(check: Any, arguments: tuple[Any, ...], reason: Reason) -> None:
    assert reason_of(check, *arguments) is reason


def test_each_limit_itself_is_allowed() -> None:
    check_dimensions(1, 1)
    check_pixels(40_000_000, 1, LIMITS)
    check_encoded(25 * 1024 * 1024, LIMITS)
    check_expanded(512 * 1024 * 1024, LIMITS)
    check_filters(8, LIMITS)
    check_frames(1, LIMITS)
    check_metadata(1024 * 1024, LIMITS)


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        ("JPEG", "image/jpeg"),
        ("JPEG2000", "image/jp2"),
        ("PNG", "image/png"),
        ("GIF", "image/gif"),
        ("TIFF", "image/tiff"),
        ("WEBP", "image/webp"),
        ("BMP", "image/bmp"),
        ("PDF", "application/pdf"),
        ("EPS", "application/postscript"),
    ],
)
def test_signature_names_what_the_bytes_are(kind: str, media_type: str) -> None:
    assert sniff(encoded(kind)[:64]) == media_type


@pytest.mark.parametrize(
    ("head", "media_type"),
    [
        (b"\xff\x4f\xff\x51", "image/j2c"),
        (b"PK\x03\x04", "application/zip"),
        (b"\n<!DOCTYPE html><html>", "text/html"),
        (b'<?xml version="1.0"?><svg xmlns=', "image/svg+xml"),
        (b"\x7fELF", "application/x-elf"),
        (b"plain words", None),
        (b"", None),
    ],
)
def test_signature_of_other_things(head: bytes, media_type: str | None) -> None:
    assert sniff(head) == media_type


@pytest.mark.parametrize(
    ("tail", "hidden"),
    [
        (b"", False),
        (b"\0" * 500, False),
        (b"\r\n", False),
        (b"\xff\xd8\xff\xe0 a second frame", False),
        (b"camera notes", False),
        (b"PK\x03\x04", True),
        (b"\n\n<script>alert(1)</script>", True),
        (b"%PDF-1.4", True),
    ],
)
def test_file_behind_the_end_is_told_from_padding(tail: bytes, hidden: bool) -> None:
    assert hides_a_file(tail) is hidden


@pytest.mark.parametrize("mode", ["L", "RGB", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_jpeg_facts_are_read_from_the_markers(mode: str, progressive: bool) -> None:
    data = encoded("JPEG", mode, progressive=progressive)
    facts = check_jpeg(data, LIMITS)
    assert (facts.width, facts.height) == (40, 30)
    assert facts.components == {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    assert (facts.scans > 1) is progressive
    assert facts.end == len(data)
    assert (facts.adobe_transform is not None) is (mode == "CMYK")


def test_jpeg_metadata_and_orientation_are_found() -> None:
    tags = Image.Exif()
    tags[0x0112] = 6
    facts = read_jpeg(encoded("JPEG", exif=tags, icc_profile=b"p" * 70_000, comment=b"hello"))
    assert facts.orientation == 6
    assert facts.icc == b"p" * 70_000
    assert facts.metadata_bytes > 70_000


def test_jpeg_exif_directory_that_loops_or_lies_is_harmless() -> None:
    for exif in (
        b"II*\0\x08\0\0\0\xff\xff" + b"\0" * 20,
        b"MM\0*\xff\xff\xff\xff",
        b"II",
        b"II*\0\x08\0\0\0\1\0\x12\1\3\0",
    ):
        body = b"Exif\0\0" + exif
        data = encoded("JPEG")
        data = data[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + data[2:]
        assert check_jpeg(data, LIMITS).orientation == 1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"", Reason.TRUNCATED_STREAM),
        (lambda data: b"GIF89a", Reason.SIGNATURE_MISMATCH),
        (lambda data: data[:-2], Reason.TRUNCATED_STREAM),
        (lambda data: data[:30], Reason.TRUNCATED_STREAM),
        (lambda data: b"\xff\xd8\xff\xd9", Reason.MALFORMED_STREAM),
        (lambda data: data[:2] + b"\xff\xe0\x00\x01" + data[2:], Reason.MALFORMED_STREAM),
        (
            lambda data: data.replace(b"\xff\xc0\x00\x11\x08\x00\x1e", b"\xff\xc0\x00\x11\x08\x00\x00"),
            Reason.INVALID_DIMENSIONS,
        ),
        (lambda data: data.replace(b"\xff\xc0\x00\x11\x08", b"\xff\xc0\x00\x11\x0c"), Reason.UNSUPPORTED_CODEC),
        (lambda data: data.replace(b"\xff\xc0", b"\xff\xc9"), Reason.UNSUPPORTED_CODEC),
        (lambda data: data.replace(b"\xff\xc0", b"\xff\xc3"), Reason.UNSUPPORTED_CODEC),
    ],
)
def test_jpeg_header_faults_have_their_reason(change: Any, reason: Reason) -> None:
    assert reason_of(check_jpeg, change(encoded("JPEG")), LIMITS) is reason


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA"])
@pytest.mark.parametrize("raw", [False, True])
def test_jpx_facts_are_read_from_boxes_and_codestream(mode: str, raw: bool) -> None:
    facts = check_jpx(encoded("JPEG2000", mode, no_jp2=raw), LIMITS)
    assert (facts.width, facts.height, facts.bits, facts.raw) == (40, 30, 8, raw)
    assert facts.components == len(mode)
    if not raw:
        assert facts.colour == (17 if mode in ("L", "LA") else 16)


def test_jpx_with_many_small_tiles_is_followed_to_its_end() -> None:
    data = encoded("JPEG2000", "L", (200, 160), tile_size=(16, 16))
    assert check_jpx(data, LIMITS).tiles == 13 * 10
    assert reason_of(check_jpx, data[:-400], LIMITS) is Reason.TRUNCATED_STREAM


def siz(width: int, height: int, tile: int, components: int, depth: int = 7) -> bytes:
    body = struct.pack(">HIIIIIIIIH", 0, width, height, 0, 0, tile, tile, 0, 0, components)
    body += bytes([depth, 1, 1]) * components
    return b"\xff\x4f\xff\x51" + struct.pack(">H", len(body) + 2 & 0xFFFF) + body


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"JPEG", Reason.SIGNATURE_MISMATCH),
        (siz(60000, 60000, 60000, 1), Reason.PIXEL_BUDGET_EXCEEDED),
        (siz(0, 10, 10, 1), Reason.INVALID_DIMENSIONS),
        (siz(5000, 5000, 10, 1), Reason.MALFORMED_STREAM),
        (siz(10, 10, 0, 1), Reason.MALFORMED_STREAM),
        (siz(10, 10, 10, 16384), Reason.UNSUPPORTED_CODEC),
        (siz(10, 10, 10, 1, 31), Reason.UNSUPPORTED_CODEC),
        (siz(10, 10, 10, 1), Reason.TRUNCATED_STREAM),
        (siz(10, 10, 10, 1)[:20], Reason.TRUNCATED_STREAM),
    ],
)
def test_jpx_header_faults_have_their_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_jpx, data, LIMITS) is reason


def segment(kind: int, body: bytes, number: int = 0, length: int | None = None) -> bytes:
    return struct.pack(">IBBBI", number, kind, 0, 1, len(body) if length is None else length) + body


PAGE = struct.pack(">IIIIBH", 100, 60, 0, 0, 0, 0)
REGION = struct.pack(">IIIIB", 100, 60, 0, 0, 0) + b"\x01rows"


def test_jbig2_page_and_region_are_sound() -> None:
    check_jbig2(segment(48, PAGE) + segment(38, REGION, 1) + b"\0\0", LIMITS)
    check_jbig2(segment(48, PAGE) + segment(38, REGION, 1, 0xFFFFFFFF), LIMITS)
    check_jbig2(segment(0, b"symbols"), LIMITS, globals_=True)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", Reason.TRUNCATED_STREAM),
        (b"\x97JB2\r\n\x1a\n" + bytes(20), Reason.SIGNATURE_MISMATCH),
        (segment(48, PAGE), Reason.TRUNCATED_STREAM),
        (segment(48, PAGE)[:-1], Reason.TRUNCATED_STREAM),
        (segment(48, PAGE) + segment(38, REGION, 1)[:-1], Reason.TRUNCATED_STREAM),
        (segment(48, struct.pack(">IIIIBH", 60000, 60000, 0, 0, 0, 0)), Reason.PIXEL_BUDGET_EXCEEDED),
        (segment(48, PAGE[:10]), Reason.MALFORMED_STREAM),
        (segment(38, REGION), Reason.MALFORMED_STREAM),
        (
            segment(48, PAGE) + segment(38, struct.pack(">IIIIB", 60000, 60000, 0, 0, 0), 1),
            Reason.PIXEL_BUDGET_EXCEEDED,
        ),
    ],
)
def test_jbig2_faults_have_their_reason(data: bytes, reason: Reason) -> None:
    assert reason_of(check_jbig2, data, LIMITS) is reason
