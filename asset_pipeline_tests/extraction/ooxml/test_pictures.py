"""Picture files of every type: kept as they are where they may be, shown in sRGB, refused with the exact reason."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

import asset_pipeline
from asset_pipeline.model import Placement, Status, Withheld
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.extraction.ooxml.conftest import Read, Reader
from asset_pipeline_tests.extraction.ooxml.making import docx, inline, paragraph, pic, picture, transform

PLAIN = paragraph(inline(pic()))


def one(read: Reader, name: str, data: bytes, **how: object) -> tuple[Read, Placement]:
    found = read("docx", docx(PLAIN, {name: data}), **how)
    return found, found.rows[0]


def saved(image: Image.Image, kind: str, **how: object) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def drawn(mode: str = "RGB") -> Image.Image:
    return Image.open(io.BytesIO(picture((64, 48)))).convert(mode)


@pytest.mark.parametrize(
    ("name", "kind", "kept", "shown"),
    [
        ("image1.png", "PNG", "image/png", "image/png"),
        ("image1.jpg", "JPEG", "image/jpeg", "image/jpeg"),
        ("image1.webp", "WEBP", "image/webp", "image/webp"),
        ("image1.tif", "TIFF", "image/tiff", "image/png"),
        ("image1.gif", "GIF", "image/png", "image/png"),
        ("image1.bmp", "BMP", "image/png", "image/png"),
        ("image1.jp2", "JPEG2000", "image/jp2", "image/png"),
    ],
)
def test_what_is_kept_and_shown_of_each_type(read: Reader, name: str, kind: str, kept: str, shown: str) -> None:
    data = picture((64, 48), kind)
    found, row = one(read, name, data)
    types = {entry.sha256: entry.media_type for entry in found.answer.pictures}
    assert (row.status, types[row.picture], types[row.display]) == (Status.ARCHIVED, kept, shown)
    assert (found.file(row.picture).read_bytes() == data) == (name not in ("image1.gif", "image1.bmp"))
    with Image.open(io.BytesIO(data)) as expected:
        assert np.array_equal(found.pixels(row.display), np.asarray(expected.convert("RGB")))


def test_every_type_is_decoded_in_the_cage_as_well(tmp_path: Path) -> None:
    kinds = {"png": "PNG", "jpg": "JPEG", "webp": "WEBP", "tif": "TIFF", "gif": "GIF", "bmp": "BMP", "jp2": "JPEG2000"}
    media = {f"image{n}.{name}": picture((64, 48), kinds[name], seed=n) for n, name in enumerate(kinds)}
    turned = transform(attributes='rot="5400000"')
    body = "".join(paragraph(inline(pic(id_=f"rId{n}", at=turned))) for n in range(1, 8))
    (tmp_path / "a.docx").write_bytes(docx(body, media))
    answer = asset_pipeline.extract(tmp_path / "a.docx", tmp_path / "out", workers=1)
    assert [row.status for row in answer.pages[0].placements] == [Status.ARCHIVED] * 7


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGBA", "I;16"])
def test_every_kind_of_png_is_kept_and_is_its_own_display(read: Reader, mode: str) -> None:
    if mode == "I;16":
        image = Image.fromarray(np.arange(64 * 48, dtype=np.uint16).reshape(48, 64) * 20)
    else:
        image = drawn(mode)
        if mode in ("LA", "RGBA"):
            image.putalpha(Image.linear_gradient("L").resize(image.size))
    found, row = one(read, "image1.png", saved(image, "PNG"), pixels=True)
    (entry,) = found.answer.pictures
    assert row.picture == row.display == entry.sha256
    assert (entry.mode, entry.has_alpha) == (image.mode, mode in ("LA", "RGBA"))
    assert entry.pixel_sha256 == hashlib.sha256(image.tobytes()).hexdigest()


def test_alpha_that_hides_nothing_is_left_out_of_the_display(read: Reader) -> None:
    found, row = one(read, "image1.png", saved(drawn("RGBA"), "PNG"))
    files = {entry.sha256: entry for entry in found.answer.pictures}
    assert (files[row.picture].has_alpha, files[row.display].has_alpha) == (True, False)


def test_a_profile_is_applied_to_the_display_and_kept_in_the_original(read: Reader) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("XYZ")).tobytes()
    swapped = saved(drawn(), "PNG", icc_profile=profile)
    found, row = one(read, "image1.png", swapped)
    assert (row.status, row.picture == row.display) == (Status.ARCHIVED, True), "an XYZ profile is none of a picture"
    wide = _wide_gamut()
    found, row = one(read, "image1.png", saved(drawn(), "PNG", icc_profile=wide))
    target = ImageCms.profileToProfile(
        drawn(), ImageCms.ImageCmsProfile(io.BytesIO(wide)), ImageCms.createProfile("sRGB")
    )
    assert row.picture != row.display
    assert np.abs(found.pixels(row.display).astype(int) - np.asarray(target).astype(int)).mean() < 3


def _wide_gamut() -> bytes:
    """sRGB with red and green primaries exchanged: a profile that moves every colour."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    entries = {bytes(data[at : at + 4]): at for at in range(132, 132 + 12 * int.from_bytes(data[128:132], "big"), 12)}
    red, green = entries[b"rXYZ"], entries[b"gXYZ"]
    data[red + 4 : red + 12], data[green + 4 : green + 12] = data[green + 4 : green + 12], data[red + 4 : red + 12]
    return bytes(data)


@pytest.mark.parametrize(("name", "kind"), [("image1.jpg", "JPEG"), ("image1.tif", "TIFF")])
def test_inks_are_shown_in_srgb(read: Reader, name: str, kind: str) -> None:
    image = Image.new("CMYK", (32, 32), (0, 255, 255, 0))
    found, row = one(read, name, saved(image, kind))
    red, green, blue = found.pixels(row.display)[16, 16][:3]
    assert red > 180 and green < 80 and blue < 80


def test_sixteen_bits_a_sample_are_kept(read: Reader) -> None:
    from asset_pipeline.extraction.pdf.png import encode_png

    data = encode_png(np.arange(48, dtype=np.uint16).reshape(4, 4, 3) * 1_000, 16)
    found, _ = one(read, "image1.png", data)
    assert [(entry.bits, entry.mode) for entry in found.answer.pictures] == [(16, "RGB;16B")]
    assert found.file(found.rows[0].picture).read_bytes() == data


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("image1.png", picture(kind="GIF"), Reason.SIGNATURE_MISMATCH),
        ("image1.png", b"%!PS-Adobe-3.0 EPSF-3.0\n", Reason.SIGNATURE_MISMATCH),
        ("image1.png", b"<svg xmlns='http://www.w3.org/2000/svg'/>", Reason.SIGNATURE_MISMATCH),
        ("image1.png", b"", Reason.TRUNCATED_STREAM),
        ("image1.png", picture()[:-30], Reason.TRUNCATED_STREAM),
        ("image1.jpg", picture((200, 200), "JPEG")[:-900], Reason.TRUNCATED_STREAM),
        ("image1.gif", picture(kind="GIF", size=(90, 90))[:-400], Reason.TRUNCATED_STREAM),
        ("image1.webp", picture(kind="WEBP")[:-40], Reason.TRUNCATED_STREAM),
        ("image1.tif", picture(kind="TIFF")[:100], Reason.TRUNCATED_STREAM),
        ("image1.bmp", picture(kind="BMP")[:-100], Reason.TRUNCATED_STREAM),
        ("image1.bmp", b"8BPS" + bytes(40), Reason.SIGNATURE_MISMATCH),
    ],
)
def test_what_is_no_sound_picture_is_quarantined_with_the_reason(read, name, data, reason) -> None:
    found, row = one(read, name, data)
    assert (row.status, row.reason, row.picture, row.display) == (Status.QUARANTINED, reason, None, None)
    kept = [(found.folder / Withheld.file_of(held.sha256)).read_bytes() for held in found.answer.withheld]
    assert kept == ([data] if data else [])
    assert len(list(found.folder.iterdir())) == len(kept)


def test_damage_inside_compressed_data_is_found(read: Reader) -> None:
    for kind, name in (("GIF", "image1.gif"), ("TIFF", "image1.tif"), ("WEBP", "image1.webp")):
        how = {"compression": "tiff_adobe_deflate"} if kind == "TIFF" else {}
        data = bytearray(picture((120, 90), kind, **how))
        data[len(data) // 2 : len(data) // 2 + 40] = bytes(range(7, 47))
        _, row = one(read, name, bytes(data))
        if row.status is not Status.QUARANTINED:
            # A lossy stream may decode whatever its bytes say; then both viewers see the same picture.
            assert kind in ("GIF", "WEBP")
        else:
            assert row.reason in (Reason.MALFORMED_STREAM, Reason.TRUNCATED_STREAM)
