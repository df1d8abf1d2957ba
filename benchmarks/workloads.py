"""The documents of the benchmark, made from nothing but a seed, so that two machines read the same bytes.

Pictures look like what documents hold: soft photographs with grain, scanned pages of text, charts. Each
workload is a folder of PDF files. What is timed, and how, belongs in ``extraction.py``.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

N = pikepdf.Name
SCAN = (1654, 2339)
_SENTENCE = "the water of a lake rises when wind from the west has been blowing for days and no rain is seen"
_WORDS = _SENTENCE.split()


def photo(width: int, height: int, seed: int, grain: float = 3.0) -> NDArray[np.uint8]:
    """Soft shapes with grain, as a camera gives them: ``(height, width, 3)``."""
    chance = np.random.default_rng(seed)
    coarse = Image.fromarray(chance.integers(30, 226, (8, 10, 3), np.uint8))
    fine = Image.fromarray(chance.integers(0, 256, (height // 16, width // 16, 3), np.uint8))
    size = (width, height)
    soft = np.asarray(coarse.resize(size, Image.Resampling.BICUBIC), np.float32)
    detail = np.asarray(fine.resize(size, Image.Resampling.BICUBIC), np.float32) - 128
    noise = chance.normal(0, grain, (height, width, 1)).astype(np.float32)
    return np.clip(soft + 0.15 * detail + noise, 0, 255).astype(np.uint8)


def screenshot(width: int, height: int, seed: int) -> NDArray[np.uint8]:
    """Windows of flat colour with text, and one smooth picture: what Flate pictures mostly hold."""
    chance = np.random.default_rng(seed)
    shown = Image.new("RGB", (width, height), (244, 245, 247))
    draw = ImageDraw.Draw(shown)
    font = ImageFont.load_default(13)
    for _ in range(12):
        left, top = int(chance.integers(0, width)), int(chance.integers(0, height))
        colour = (int(chance.integers(90, 256)), int(chance.integers(90, 256)), int(chance.integers(90, 256)))
        draw.rectangle((left, top, left + width // 3, top + height // 6), fill=colour, outline=(60, 60, 60))
        for line in range(height // 160):
            words = " ".join(_WORDS[index] for index in chance.integers(0, len(_WORDS), 8))
            draw.text((left + 6, top + 6 + 17 * line), words, fill=(20, 20, 30), font=font)
    soft = photo(max(16, width * 2 // 5), max(16, height * 2 // 5), seed, grain=0.0)
    shown.paste(Image.fromarray(soft), (width // 2, height // 2))
    return np.asarray(shown)


def scan(seed: int) -> Image.Image:
    """A page of text, one bit a pixel, with the specks of a scanner."""
    chance = np.random.default_rng(seed)
    page = Image.new("L", SCAN, 255)
    draw = ImageDraw.Draw(page)
    font = ImageFont.load_default(28)
    for line in range(44):
        words = " ".join(_WORDS[index] for index in chance.integers(0, len(_WORDS), 15))
        draw.text((150, 180 + 44 * line), words, fill=0, font=font)
    specks = chance.integers(0, (SCAN[0], SCAN[1]), (60, 2))
    for x, y in specks:
        draw.rectangle((int(x), int(y), int(x) + 1, int(y) + 1), fill=0)
    return page.point(lambda value: 255 * (value > 128)).convert("1")


def group_4(page: Image.Image) -> bytes:
    """``page`` as Group 4 data, black as black."""
    black = Image.eval(page.convert("L"), lambda value: 255 - value).convert("1")
    out = io.BytesIO()
    black.save(out, "TIFF", compression="group4", strip_size=2**30)
    with Image.open(out) as tiff:
        offset, size = tiff.tag_v2[273][0], tiff.tag_v2[279][0]  # type: ignore[attr-defined]
    return out.getvalue()[offset : offset + size]


def jbig2(page: Image.Image) -> bytes:
    """``page`` as an embedded JBIG2 stream: one generic region in MMR coding, which is Group 4 (T.88 6.2.6)."""
    width, height = page.size

    def segment(number: int, kind: int, body: bytes) -> bytes:
        return struct.pack(">IBBBI", number, kind, 0, 1, len(body)) + body

    region = struct.pack(">IIIIB", width, height, 0, 0, 0) + b"\x01" + group_4(page)
    return segment(0, 48, struct.pack(">IIIIBH", width, height, 0, 0, 0, 0)) + segment(1, 39, region)


def predicted(samples: NDArray[np.uint8]) -> bytes:
    """Rows under the PNG filter Up, in zlib: Flate with predictor 15."""
    height, width, channels = samples.shape
    rows = samples.reshape(height, width * channels)
    body = np.empty((height, rows.shape[1] + 1), np.uint8)
    body[:, 0] = 2
    body[0, 1:] = rows[0]
    np.subtract(rows[1:], rows[:-1], out=body[1:, 1:])
    return zlib.compress(body.tobytes(), 6)


def _image(pdf: pikepdf.Pdf, data: bytes, width: int, height: int, **entries: Any) -> Any:
    image = pikepdf.Stream(pdf, data)
    image.Type, image.Subtype, image.Width, image.Height = N.XObject, N.Image, width, height
    for key, value in entries.items():
        image[f"/{key}"] = value
    return pdf.make_indirect(image)


def _page(pdf: pikepdf.Pdf, pictures: dict[str, Any], content: bytes, font: Any = None) -> None:
    page = pdf.add_blank_page(page_size=(595, 842))
    page.obj.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(pictures))
    if font is not None:
        page.obj.Resources.Font = pikepdf.Dictionary(F=font)
    page.obj.Contents = pikepdf.Stream(pdf, content)


def _jpeg(pdf: pikepdf.Pdf, seed: int, width: int = 1600, height: int = 1200) -> Any:
    out = io.BytesIO()
    Image.fromarray(photo(width, height, seed)).save(out, "JPEG", quality=75)
    return _image(pdf, out.getvalue(), width, height, ColorSpace=N.DeviceRGB, BitsPerComponent=8, Filter=N.DCTDecode)


def _flate(pdf: pikepdf.Pdf, seed: int, width: int, height: int, predictor: bool) -> Any:
    samples = screenshot(width, height, seed)
    data = predicted(samples) if predictor else zlib.compress(samples.tobytes(), 6)
    entries = {"ColorSpace": N.DeviceRGB, "BitsPerComponent": 8, "Filter": N.FlateDecode}
    if predictor:
        entries["DecodeParms"] = pikepdf.Dictionary(Predictor=15, Colors=3, BitsPerComponent=8, Columns=width)
    return _image(pdf, data, width, height, **entries)


def _fax(pdf: pikepdf.Pdf, seed: int) -> Any:
    width, height = SCAN
    parms = pikepdf.Dictionary(K=-1, Columns=width, Rows=height)
    return _image(
        pdf,
        group_4(scan(seed)),
        width,
        height,
        ColorSpace=N.DeviceGray,
        BitsPerComponent=1,
        Filter=N.CCITTFaxDecode,
        DecodeParms=parms,
    )


def _jbig2(pdf: pikepdf.Pdf, seed: int) -> Any:
    width, height = SCAN
    data = jbig2(scan(seed))
    return _image(pdf, data, width, height, ColorSpace=N.DeviceGray, BitsPerComponent=1, Filter=N.JBIG2Decode)


def _pages_of(make: Callable[[pikepdf.Pdf, int], Any], count: int) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        with pikepdf.new() as pdf:
            for index in range(count):
                _page(pdf, {"/I": make(pdf, index)}, b"q 500 0 0 375 40 400 cm /I Do Q")
            _save(pdf, folder / "document.pdf")

    return write


def _text(chance: Any, lines: int, top: int = 780) -> bytes:
    shown = [b"BT /F 10 Tf 14 TL 60 %d Td" % top]
    for _ in range(lines):
        words = " ".join(_WORDS[index] for index in chance.integers(0, len(_WORDS), 14))
        shown.append(b"(%s) Tj T*" % words.encode())
    return b"\n".join([*shown, b"ET\n"])


def _chart(chance: Any) -> bytes:
    parts = [b"0.5 w 80 120 m 80 300 l S 80 120 m 400 120 l S"]
    parts += [
        b"0.2 0.4 %.2f rg %d 120 30 %d re f" % (0.1 * index, 100 + 45 * index, chance.integers(20, 170))
        for index in range(6)
    ]
    return b"\n".join([*parts, b"0 g\n"])


def _report(path: Path, seed: int) -> None:
    """Two pages: a photo with a caption, a logo with a soft mask, an inline picture, a chart."""
    chance = np.random.default_rng(seed)
    with pikepdf.new() as pdf:
        font = pdf.make_indirect(pikepdf.Dictionary(Type=N.Font, Subtype=N.Type1, BaseFont=N.Helvetica))
        mask = np.linspace(0, 255, 80 * 40).astype(np.uint8).tobytes()
        logo = _flate(pdf, seed + 1, 80, 40, predictor=False)
        logo.SMask = _image(
            pdf,
            zlib.compress(mask),
            80,
            40,
            ColorSpace=N.DeviceGray,
            BitsPerComponent=8,
            Filter=N.FlateDecode,
        )
        first = b"q 80 0 0 40 60 790 cm /L Do Q\n" + _text(chance, 18, 760)
        first += b"q 360 0 0 270 60 200 cm /P Do Q\nBT /F 9 Tf 60 184 Td (Figure 1. What the lake did.) Tj ET"
        _page(pdf, {"/L": logo, "/P": _jpeg(pdf, seed + 2, 480, 360)}, first, font)
        dots = bytes(chance.integers(0, 256, 8 * 8 * 3, np.uint8)).hex().encode()
        inline = b"q 20 0 0 20 500 60 cm BI /W 8 /H 8 /BPC 8 /CS /RGB /F /AHx ID " + dots + b"> EI Q\n"
        _page(pdf, {"/L": logo}, _text(chance, 20) + _chart(chance) + inline, font)
        _save(pdf, path)


def _reports(folder: Path) -> None:
    for index in range(300):
        _report(folder / f"report-{index:03d}.pdf", 10_000 + 10 * index)


def _bundle(pages: int) -> Callable[[Path], None]:
    """A long document: mostly text, each third page with a photo, each seventh with a scan, a logo on all."""

    def write(folder: Path) -> None:
        chance = np.random.default_rng(5)
        with pikepdf.new() as pdf:
            font = pdf.make_indirect(pikepdf.Dictionary(Type=N.Font, Subtype=N.Type1, BaseFont=N.Helvetica))
            logo = _flate(pdf, 1, 120, 60, predictor=True)
            photos = [_jpeg(pdf, 20_000 + index, 800, 600) for index in range(-(-pages // 3))]
            scans = [_fax(pdf, 30_000 + index) for index in range(9)]
            for index in range(pages):
                pictures, content = {"/L": logo}, b"q 60 0 0 30 500 790 cm /L Do Q\n" + _text(chance, 25)
                if index % 3 == 0:
                    pictures["/P"] = photos[index // 3]
                    content += b"q 320 0 0 240 60 150 cm /P Do Q\n"
                if index % 7 == 0:
                    pictures["/S"] = scans[index // 7 % len(scans)]
                    content += b"q 100 0 0 141 420 150 cm /S Do Q\n"
                _page(pdf, pictures, content, font)
            _save(pdf, folder / "document.pdf")

    return write


def _save(pdf: pikepdf.Pdf, path: Path) -> None:
    pdf.save(path, deterministic_id=True)


WORKLOADS: dict[str, Callable[[Path], None]] = {
    "one-page": _pages_of(lambda pdf, seed: _jpeg(pdf, seed, 400, 300), 1),
    "jpeg": _pages_of(_jpeg, 140),
    "flate-predictor": _pages_of(lambda pdf, seed: _flate(pdf, seed, 1000, 1000, predictor=True), 100),
    "flate-plain": _pages_of(lambda pdf, seed: _flate(pdf, seed, 1000, 1000, predictor=False), 100),
    "ccitt": _pages_of(_fax, 60),
    "jbig2": _pages_of(_jbig2, 40),
    "reports": _reports,
    "bundle-100": _bundle(100),
    "bundle-900": _bundle(900),
}
"""Name and maker of each workload: it fills an empty folder."""


def make(name: str, root: Path) -> list[Path]:
    """The documents of workload ``name`` below ``root``, made at first need."""
    folder = root / name
    done = root / f"{name}.made"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        WORKLOADS[name](folder)
        done.touch()
    return sorted(folder.glob("*.pdf"))
