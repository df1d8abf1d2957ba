"""Pictures that few producers write, as a page shows them: held against what PDFium paints, but where a test says so.

Each page is one picture (or one pattern) at one point a pixel, so that PDFium's page is the display's own grid.
"""

from __future__ import annotations

import hashlib
import io
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pypdfium2
import pytest
from pikepdf import Array, Dictionary
from PIL import Image, ImageCms

import asset_pipeline
from asset_pipeline.extraction.engine import Request, load_engine
from asset_pipeline.model import Extraction, Placement
from asset_pipeline.policy import Policy
from asset_pipeline_tests.extraction.pictures.test_lossless_samples import as_85, as_hex, as_lzw, as_runs
from asset_pipeline_tests.extraction.pictures.test_one_bit_codecs import aligned_rows, fax

N = pikepdf.Name
WIDTH, HEIGHT = 32, 24
EXACT, ROUNDED, PROFILED = 0.0, 1.0, 3.0
"""Mean difference of a tone: none, of rounding alone, of two ways to reach sRGB."""


class Sheet:
    """A page as large as its picture, read by the engine and painted by PDFium."""

    def __init__(self, folder: Path, width: int = WIDTH, height: int = HEIGHT) -> None:
        self.folder, self.size = folder, (width, height)
        self.pdf = pikepdf.new()

    def stream(self, data: bytes, **entries: Any) -> Any:
        made = pikepdf.Stream(self.pdf, data)
        for key, value in entries.items():
            made["/" + key] = value
        return self.pdf.make_indirect(made)

    def picture(self, data: bytes, width: int = WIDTH, height: int = HEIGHT, **entries: Any) -> Any:
        return self.stream(data, Subtype=N.Image, Width=width, Height=height, **entries)

    def read(self, content: bytes, resources: dict[str, Any] | None = None) -> Extraction:
        width, height = self.size
        page = Dictionary(
            Type=N.Page,
            MediaBox=[0, 0, width, height],
            Resources=Dictionary({"/" + key: value for key, value in (resources or {}).items()}),
            Contents=self.stream(content),
        )
        self.pdf.pages.append(pikepdf.Page(self.pdf.make_indirect(page)))
        self.file = self.folder / "page.pdf"
        self.pdf.save(self.file)
        out = self.folder / "out"
        out.mkdir()
        data = self.file.read_bytes()
        request = Request(self.file, out, Policy(), hashlib.sha256(data).hexdigest(), len(data), figures=False)
        return load_engine("pdf").extract(request)

    def draw(self, image: Any) -> Placement:
        width, height = self.size
        content = f"{width} 0 0 {height} 0 0 cm /Im Do".encode()
        return self.only(self.read(content, {"XObject": Dictionary({"/Im": image})}))

    def only(self, answer: Extraction) -> Placement:
        self.answer = answer
        (row,) = answer.pages[0].placements
        return row

    def display(self, row: Placement) -> Any:
        """The display over white, as a page is."""
        assert row.reason is None
        file = next(picture.file for picture in self.answer.pictures if picture.sha256 == row.display)
        with Image.open(self.folder / "out" / file) as opened:
            shown = opened.convert("RGBA")
        return np.asarray(Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown).convert("RGB"))

    def painted(self) -> Any:
        document = pypdfium2.PdfDocument(self.file)
        try:
            return np.asarray(document[0].render(scale=1).to_pil().convert("RGB"))
        finally:
            document.close()

    def difference(self, row: Placement) -> float:
        return float(np.abs(self.display(row).astype(int) - self.painted()).mean())


@pytest.fixture
def sheet(tmp_path: Path) -> Sheet:
    return Sheet(tmp_path)


def ramp(components: int = 1, levels: int = 256) -> Any:
    """Smooth codes below ``levels``, of which none repeats a row: ``(height, width, components)``."""
    rows, columns = np.indices((HEIGHT, WIDTH))
    planes = [(rows * (3 + plane) + columns * (5 - plane)) * levels // 256 % levels for plane in range(components)]
    return np.stack(planes, axis=2).astype(np.uint16 if levels > 256 else np.uint8)


def function(sheet: Sheet, inputs: int, outputs: int) -> Any:
    """A tint transform: each output the mean of the inputs, in steps of its number."""
    mean = " add " * (inputs - 1) + f" {inputs} div "
    code = "{" + mean + " ".join(f"dup {1 / (index + 1):.3f} mul exch" for index in range(outputs)) + " pop}"
    return sheet.stream(code.encode(), FunctionType=4, Domain=[0, 1] * inputs, Range=[0, 1] * outputs)


def base_of(sheet: Sheet, name: str) -> Any:
    if name == "Separation":
        return Array([N.Separation, N.Spot, N.DeviceRGB, function(sheet, 1, 3)])
    if name == "DeviceN":
        return Array([N.DeviceN, Array([N.One, N.Two]), N.DeviceRGB, function(sheet, 2, 3)])
    if name == "Lab":
        white = Dictionary(WhitePoint=[0.9505, 1, 1.089], Range=[-100, 100, -100, 100])
        return Array([N.Lab, white])
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return Array([N.ICCBased, sheet.stream(profile, N=3)])


@pytest.mark.parametrize("declared", [N.DeviceRGB, Array([N.DeviceRGB])], ids=["name", "array of one"])
@pytest.mark.parametrize("inside", [False, True], ids=["page", "form with resources of its own"])
def test_default_space_of_the_page_stands_in_for_the_device_space(sheet: Sheet, declared: Any, inside: bool) -> None:
    image = sheet.picture(ramp(3).tobytes(), ColorSpace=declared, BitsPerComponent=8)
    content, resources = f"{WIDTH} 0 0 {HEIGHT} 0 0 cm /Im Do".encode(), Dictionary({"/Im": image})
    if inside:
        form = sheet.stream(
            content, Subtype=N.Form, BBox=[0, 0, WIDTH, HEIGHT], Resources=Dictionary(XObject=resources)
        )
        content, resources = b"/Fm Do", Dictionary({"/Fm": form})
    spaces = Dictionary(DefaultRGB=base_of(sheet, "Lab"))
    row = sheet.only(sheet.read(content, {"XObject": resources, "ColorSpace": spaces}))
    assert row.colour_space == "DeviceRGB"
    assert sheet.difference(row) <= PROFILED
    original = next(picture for picture in sheet.answer.pictures if picture.sha256 == row.picture)
    assert np.array_equal(np.asarray(Image.open(sheet.folder / "out" / original.file)), ramp(3))


def test_default_space_of_inks_holds_for_jpeg(sheet: Sheet) -> None:
    out = io.BytesIO()
    Image.fromarray(ramp(4), "CMYK").save(out, "JPEG", quality=95)
    keys = {"ColorSpace": N.DeviceCMYK, "BitsPerComponent": 8, "Filter": N.DCTDecode}
    image = sheet.picture(out.getvalue(), **keys)
    swap = sheet.stream(b"{exch}", FunctionType=4, Domain=[0, 1] * 4, Range=[0, 1] * 4)
    inks = Array([N.DeviceN, Array([N.Cyan, N.Magenta, N.Yellow, N.Black]), N.DeviceCMYK, swap])
    spaces = Dictionary(DefaultCMYK=inks)
    content = f"{WIDTH} 0 0 {HEIGHT} 0 0 cm /Im Do".encode()
    row = sheet.only(sheet.read(content, {"XObject": Dictionary({"/Im": image}), "ColorSpace": spaces}))
    assert sheet.difference(row) <= ROUNDED


@pytest.mark.parametrize(("name", "within"), [("Separation", ROUNDED), ("Lab", PROFILED), ("ICC", EXACT)])
def test_a_space_that_only_the_resources_of_the_page_know_is_looked_up(sheet: Sheet, name: str, within: float) -> None:
    samples = ramp(1 if name == "Separation" else 3)
    image = sheet.picture(samples.tobytes(), ColorSpace=N.Cs1, BitsPerComponent=8)
    content = f"{WIDTH} 0 0 {HEIGHT} 0 0 cm /Im Do".encode()
    spaces = Dictionary(Cs1=base_of(sheet, name))
    row = sheet.only(sheet.read(content, {"XObject": Dictionary({"/Im": image}), "ColorSpace": spaces}))
    assert (row.colour_space, row.reason) == ("Cs1", None)
    assert sheet.difference(row) <= within


def test_default_space_of_another_number_of_components_is_passed_over(sheet: Sheet) -> None:
    image = sheet.picture(ramp(3).tobytes(), ColorSpace=N.DeviceRGB, BitsPerComponent=8)
    content = f"{WIDTH} 0 0 {HEIGHT} 0 0 cm /Im Do".encode()
    spaces = Dictionary(DefaultRGB=N.DeviceGray)
    row = sheet.only(sheet.read(content, {"XObject": Dictionary({"/Im": image}), "ColorSpace": spaces}))
    assert np.array_equal(sheet.display(row), ramp(3))


@pytest.mark.parametrize(("name", "within"), [
    ("Separation", ROUNDED), ("DeviceN", ROUNDED), ("Lab", PROFILED), ("ICC", EXACT),
])  # fmt: skip
def test_palette_over_another_colour_space(sheet: Sheet, name: str, within: float) -> None:
    base = base_of(sheet, name)
    components = {"Separation": 1, "DeviceN": 2}.get(name, 3)
    entries = np.stack([np.linspace(10 + 40 * plane, 250 - 30 * plane, 16) for plane in range(components)], axis=1)
    space = Array([N.Indexed, base, 15, pikepdf.String(entries.astype(np.uint8).tobytes())])
    row = sheet.draw(sheet.picture(ramp(levels=16).tobytes(), ColorSpace=space, BitsPerComponent=8))
    assert row.colour_space and row.colour_space.startswith("Indexed")
    assert sheet.difference(row) <= within


@pytest.mark.parametrize("decode", [None, [1, 0, 1, 0, 1, 0, 1, 0]], ids=["plain", "inverse"])
def test_jpeg_of_inks_by_its_decode_array(sheet: Sheet, decode: list[int] | None) -> None:
    data = io.BytesIO()
    Image.fromarray(ramp(4), "CMYK").save(data, "JPEG", quality=95)
    keys = {"Decode": Array(decode)} if decode else {}
    image = sheet.picture(data.getvalue(), ColorSpace=N.DeviceCMYK, BitsPerComponent=8, Filter=N.DCTDecode, **keys)
    assert sheet.difference(sheet.draw(image)) <= PROFILED


@pytest.mark.parametrize("bits", [8, 16])
def test_colour_key_hides_what_it_names(sheet: Sheet, bits: int) -> None:
    codes = ramp(levels=1 << bits)
    data = codes.astype(">u2").tobytes() if bits == 16 else codes.tobytes()
    key = Array([0, (1 << bits) // 2])
    row = sheet.draw(sheet.picture(data, ColorSpace=N.DeviceGray, BitsPerComponent=bits, Mask=key))
    assert ((sheet.display(row) == 255).all(axis=2) >= (codes[:, :, 0] <= (1 << bits) // 2)).all()
    if bits == 8:
        assert sheet.difference(row) <= EXACT


def test_matte_is_taken_out_before_the_mask(sheet: Sheet) -> None:
    alpha = np.maximum(ramp(), 40)[:, :, 0]
    colours = np.array([200, 120, 60])
    blended = (128 + (alpha[:, :, None] / 255) * (colours - 128)).round().astype(np.uint8)
    mask = sheet.picture(alpha.tobytes(), ColorSpace=N.DeviceGray, BitsPerComponent=8, Matte=Array([128 / 255] * 3))
    image = sheet.picture(blended.tobytes(), ColorSpace=N.DeviceRGB, BitsPerComponent=8, SMask=mask)
    assert sheet.difference(sheet.draw(image)) <= ROUNDED


@pytest.mark.parametrize("premultiplied", [False, True])
def test_alpha_inside_jpeg_2000(sheet: Sheet, premultiplied: bool) -> None:
    alpha = np.maximum(ramp(), 40).astype(int)
    colours = np.broadcast_to(np.array([200, 120, 60]), (HEIGHT, WIDTH, 3))
    stored = colours * alpha // 255 if premultiplied else colours
    samples = np.concatenate([stored, alpha], axis=2).astype(np.uint8)
    data = io.BytesIO()
    Image.fromarray(samples, "RGBA").save(data, "JPEG2000", irreversible=False)
    image = sheet.picture(data.getvalue(), ColorSpace=N.DeviceRGB, Filter=N.JPXDecode, SMaskInData=1 + premultiplied)
    wanted = colours * alpha / 255 + 255 - alpha
    assert np.abs(sheet.display(sheet.draw(image)) - wanted).mean() <= 1.5  # by the formula; not held against PDFium


@pytest.mark.parametrize("black_is_1", [False, True])
@pytest.mark.parametrize("kind", ["rows on whole bytes", "two dimensions"])
def test_fax_parameters_together(tmp_path: Path, kind: str, black_is_1: bool) -> None:
    sheet = Sheet(tmp_path, 100, 60)
    page = Image.new("1", (100, 60), 1)
    page.paste(0, (9, 7, 40, 50))
    page.paste(0, (60, 20, 93, 31))
    aligned = kind == "rows on whole bytes"
    data = aligned_rows(page) if aligned else fax(page, "group3", tags={292: 1})
    parms = {"Columns": 100, "Rows": 60, "BlackIs1": black_is_1, "K": 0 if aligned else 4}
    parms |= {"EncodedByteAlign": True} if aligned else {"EndOfLine": True}
    row = sheet.draw(
        sheet.picture(
            data, 100, 60, ColorSpace=N.DeviceGray, BitsPerComponent=1, Filter=N.CCITTFaxDecode,
            DecodeParms=Dictionary({"/" + key: value for key, value in parms.items()}),
        )
    )  # fmt: skip
    assert sheet.difference(row) <= EXACT


@pytest.mark.parametrize("early", [0, 1])
def test_lzw_of_either_change_under_a_predictor(sheet: Sheet, early: int) -> None:
    codes = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    left = np.concatenate([np.zeros((HEIGHT, 1, 3), np.uint8), codes[:, :-1]], axis=1)
    rows = np.concatenate([np.ones((HEIGHT, 1), np.uint8), (codes - left).reshape(HEIGHT, -1)], axis=1)
    parms = Dictionary(EarlyChange=early, Predictor=15, Colors=3, Columns=WIDTH)
    data = as_lzw(rows.tobytes(), early)
    image = sheet.picture(data, ColorSpace=N.DeviceRGB, BitsPerComponent=8, Filter=N.LZWDecode, DecodeParms=parms)
    row = sheet.draw(image)
    assert (sheet.display(row) == codes).all()
    assert sheet.difference(row) <= EXACT


def _jpeg(picture: Image.Image) -> bytes:
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=95)
    return out.getvalue()


GRAY, COLOURS = ramp().tobytes(), ramp(3).tobytes()
INLINE: dict[str, tuple[bytes, bytes]] = {
    "hex": (b"/CS /G /BPC 8 /F /AHx", as_hex(GRAY)),
    "85": (b"/CS /G /BPC 8 /F /A85", as_85(GRAY)),
    "LZW": (b"/CS /RGB /BPC 8 /F /LZW", as_lzw(COLOURS)),
    "LZW without early change": (b"/CS /RGB /BPC 8 /F /LZW /DP << /EarlyChange 0 >>", as_lzw(COLOURS, 0)),
    "Flate": (b"/CS /RGB /BPC 8 /F /Fl", zlib.compress(COLOURS)),
    "run lengths": (b"/CS /G /BPC 8 /F /RL", as_runs(GRAY)),
    "85 and Flate": (b"/CS /RGB /BPC 8 /F [/A85 /Fl]", as_85(zlib.compress(COLOURS))),
    "parameters of the second": (
        b"/CS /G /BPC 8 /F [/AHx /Fl] /DP [null << /Predictor 2 /Columns 32 >>]",
        as_hex(zlib.compress(np.diff(ramp()[:, :, 0], axis=1, prepend=np.uint8(0)).astype(np.uint8).tobytes())),
    ),
    "JPEG": (b"/CS /RGB /BPC 8 /F /DCT", _jpeg(Image.fromarray(ramp(3)))),
    "fax": (
        b"/CS /G /BPC 1 /F /CCF /DP << /K -1 /Columns 32 /Rows 24 >>",
        fax(Image.fromarray(ramp()[:, :, 0]).convert("1"), "group4"),
    ),
    "inks": (b"/CS /CMYK /BPC 8 /F /Fl", zlib.compress(ramp(4).tobytes())),
    "palette": (b"/CS [/I /RGB 3 <ff000000ff000000ff808080>] /BPC 8", ramp(levels=4).tobytes()),
    "inverted": (b"/CS /G /BPC 8 /D [1 0]", GRAY),
    "stencil": (b"/IM true /BPC 1 /D [1 0]", np.packbits(ramp()[:, :, 0] > 99, axis=1).tobytes()),
    "interpolated": (b"/CS /G /BPC 8 /I true", GRAY),
    "full names": (b"/ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /ASCIIHexDecode", as_hex(GRAY)),
}


@pytest.mark.parametrize("name", INLINE)
def test_inline_picture_of_every_abbreviation(sheet: Sheet, name: str) -> None:
    entries, data = INLINE[name]
    head = b"q 32 0 0 24 0 0 cm BI /W 32 /H 24 " + entries + b" ID "
    row = sheet.only(sheet.read(head + data + b"\nEI Q"))
    assert (row.object_id, row.width, row.height) == (None, WIDTH, HEIGHT)
    assert sheet.difference(row) <= (PROFILED if name in ("inks", "JPEG") else EXACT)


def test_pattern_inside_a_form_lies_where_it_is_painted(tmp_path: Path) -> None:
    sheet = Sheet(tmp_path, 90, 70)
    image = sheet.picture(bytes([30]) * 64, 8, 8, ColorSpace=N.DeviceGray, BitsPerComponent=8)
    tile = sheet.stream(
        b"10 0 0 10 0 0 cm /Im Do", PatternType=1, PaintType=1, TilingType=1, BBox=Array([0, 0, 10, 10]), XStep=10,
        YStep=10, Resources=Dictionary(XObject=Dictionary({"/Im": image})),
    )  # fmt: skip
    form = sheet.stream(
        b"/Pattern cs /P scn 0 0 30 20 re f", Subtype=N.Form, BBox=Array([0, 0, 99, 99]),
        Matrix=Array([2, 0, 0, 1, 10, 15]), Resources=Dictionary(Pattern=Dictionary({"/P": tile})),
    )  # fmt: skip
    row = sheet.only(sheet.read(b"1 0 0 1 5 5 cm /Fm Do", {"XObject": Dictionary({"/Fm": form})}))
    rows, columns = np.nonzero((sheet.painted() < 200).all(axis=2))
    seen = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert row.kind == "pattern"
    assert row.display_bbox == pytest.approx(seen, abs=1)


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
@pytest.mark.parametrize("depth", [2**31, -(2**40)])
def test_a_depth_beyond_any_number_costs_its_picture_alone(tmp_path: Path, engine: str, depth: int) -> None:
    """Read as the program reads, in another process, which tells no number that a ledger could not hold."""
    sheet = Sheet(tmp_path)
    good, odd = (
        sheet.picture(bytes(WIDTH * HEIGHT), ColorSpace=N.DeviceGray, BitsPerComponent=bits) for bits in (8, depth)
    )
    sheet.read(b"9 0 0 9 0 0 cm /Im Do /Odd Do", {"XObject": Dictionary({"/Im": good, "/Odd": odd})})
    (page,) = asset_pipeline.extract(sheet.file, tmp_path / "all", engine=engine).pages
    assert (page.reason, [row.bits for row in page.placements]) == (None, [8, None])
