"""Documents that draw one picture in parts, and what the engine says of them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
from numpy.typing import NDArray
from pikepdf import Array, Dictionary, Name
from PIL import Image

from asset_pipeline.model import Extraction, Page, Picture, Placement

Pixels = NDArray[np.uint8]


def photo(width: int, height: int, seed: int = 1) -> Pixels:
    """Something with the statistics of a photo: smooth shapes of many sizes, a little grain."""
    random = np.random.default_rng(seed)
    out = np.zeros((height, width, 3))
    for size in (3, 7, 15, 40):
        coarse = random.uniform(0, 255, (size, size, 3)).astype(np.uint8)
        smooth = Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)
        out += np.asarray(smooth, float) / 4
    return (out + random.normal(0, 2, out.shape)).clip(0, 255).astype(np.uint8)


def text_scan(width: int, height: int, seed: int = 1) -> Pixels:
    """A 1-bit scan, 0 black: ragged rows of marks on white, with white lines between."""
    random = np.random.default_rng(seed)
    page = np.ones((height, width), np.uint8)
    for top in range(5, height - 9, 14):
        marks = random.integers(0, 2, (8, width // 3)).repeat(3, axis=1)
        page[top : top + 8, : marks.shape[1]] = marks
    return page


@dataclass
class Sheet:
    """A page of 400 x 400 points being written: pictures in the order in which they are drawn."""

    pdf: pikepdf.Pdf
    size: tuple[float, float] = (400, 400)
    content: list[str] = field(default_factory=list)
    pictures: dict[str, pikepdf.Object] = field(default_factory=dict)

    def stream(self, data: bytes, width: int, height: int, **keys: Any) -> pikepdf.Object:
        made = self.pdf.make_stream(data)
        given = {"Type": Name.XObject, "Subtype": Name.Image, "Width": width, "Height": height, **keys}
        for key, value in given.items():
            made["/" + key] = value
        return made

    def raw(self, pixels: Pixels, **keys: Any) -> pikepdf.Object:
        """An uncompressed picture of ``pixels``."""
        height, width = pixels.shape[:2]
        space = Name.DeviceGray if pixels.ndim == 2 else {3: Name.DeviceRGB, 4: Name.DeviceCMYK}[pixels.shape[2]]
        return self.stream(pixels.tobytes(), width, height, **({"ColorSpace": space, "BitsPerComponent": 8} | keys))

    def bits(self, pixels: Pixels, **keys: Any) -> pikepdf.Object:
        """A 1-bit picture."""
        height, width = pixels.shape
        keys = {"ColorSpace": Name.DeviceGray, "BitsPerComponent": 1} | keys
        return self.stream(np.packbits(pixels, axis=1).tobytes(), width, height, **keys)

    def fax(self, pixels: Pixels, **keys: Any) -> pikepdf.Object:
        """A 1-bit picture compressed as a scanner does (CCITT group 4)."""
        height, width = pixels.shape
        out = io.BytesIO()
        scan = Image.fromarray(pixels * np.uint8(255)).convert("1")
        scan.save(out, "TIFF", compression="group4", strip_size=1 << 24)
        with Image.open(io.BytesIO(out.getvalue())) as tiff:
            tags: Any = tiff.tag_v2  # type: ignore[attr-defined]
            start, length, photometric = tags[273][0], tags[279][0], tags[262]
        parameters = Dictionary(K=-1, Columns=width, Rows=height, BlackIs1=photometric == 1)
        keys = {"ColorSpace": Name.DeviceGray, "BitsPerComponent": 1} | keys
        data = out.getvalue()[start : start + length]
        return self.stream(data, width, height, Filter=Name.CCITTFaxDecode, DecodeParms=parameters, **keys)

    def jpeg(self, pixels: Pixels, **keys: Any) -> pikepdf.Object:
        """A JPEG."""
        height, width = pixels.shape[:2]
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "JPEG", quality=92, subsampling=0)
        space = Name.DeviceRGB if pixels.ndim == 3 else Name.DeviceGray
        keys = {"ColorSpace": space, "BitsPerComponent": 8} | keys
        return self.stream(out.getvalue(), width, height, Filter=Name.DCTDecode, **keys)

    def draw(self, picture: pikepdf.Object, *matrix: float, before: str = "") -> None:
        """Draw with a whole matrix, or upright in the box x, y, width, height."""
        if len(matrix) == 4:
            x, y, width, height = matrix
            matrix = (width, 0, 0, height, x, y)
        name = f"P{len(self.pictures)}"
        self.pictures["/" + name] = picture
        self.content.append(f"q {before} {' '.join(f'{number:.4f}' for number in matrix)} cm /{name} Do Q\n")

    def finish(self, **entries: Any) -> None:
        """Make it a page of the document."""
        page = self.pdf.add_blank_page(page_size=self.size)
        page.Resources = Dictionary(XObject=Dictionary(self.pictures))
        page.Contents = self.pdf.make_stream("".join(self.content).encode())
        for key, value in entries.items():
            page["/" + key] = Array(value) if isinstance(value, list) else value


@dataclass
class Answer:
    """What the engine said, and its files."""

    extraction: Extraction
    out: Path

    @property
    def page(self) -> Page:
        return self.extraction.pages[0]

    @property
    def composites(self) -> list[Placement]:
        return [row for page in self.extraction.pages for row in page.placements if row.kind == "composite"]

    @property
    def statuses(self) -> list[str]:
        return [row.status.value for row in self.page.placements if row.kind != "composite"]

    def picture(self, digest: str | None) -> Picture:
        return next(picture for picture in self.extraction.pictures if picture.sha256 == digest)

    def pixels(self, digest: str | None) -> Any:
        with Image.open(self.out / self.picture(digest).file) as opened:
            return np.asarray(opened)


Read = Callable[..., Answer]
