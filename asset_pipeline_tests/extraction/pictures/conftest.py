"""Small pictures made in the test, and the room they are rendered in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pikepdf
import pytest
from PIL import Image, ImageCms

from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.pictures import PictureCache, Rendered, render_picture
from asset_pipeline.model import Kind, Picture
from asset_pipeline.policy import Policy


@dataclass
class Room:
    """A document, a folder and the two verbs of these tests: ``image`` makes a stream, ``render`` renders it."""

    out: Path
    pdf: pikepdf.Pdf = field(default_factory=pikepdf.new)
    cache: PictureCache = field(default_factory=PictureCache)

    def image(self, data: bytes, width: int, height: int, **keys: Any) -> pikepdf.Stream:
        stream: Any = pikepdf.Stream(self.pdf, data)
        stream.Width = width
        stream.Height = height
        for key, value in keys.items():
            stream["/" + key] = value
        return self.pdf.make_indirect(stream)

    def render(
        self, image: pikepdf.Stream, *, policy: Policy | None = None, pixels: bool = False, **place: Any
    ) -> Rendered:
        number = image.objgen[0] if image.is_indirect else None
        place = {"kind": Kind.RASTER, "object_id": number} | place
        draw = Draw(
            order=0, image=image, matrix=(1, 0, 0, 1, 0, 0), bbox=(0, 0, 1, 1), display_bbox=(0, 0, 1, 1), **place
        )
        rendered = render_picture(self.pdf, draw, self.out, policy or Policy(), pixels=pixels, cache=self.cache)
        for picture in (rendered.original, rendered.display):
            if picture is not None:
                assert hashlib.sha256((self.out / picture.file).read_bytes()).hexdigest() == picture.sha256
        return rendered

    def open(self, picture: Picture | None) -> Image.Image:
        assert picture is not None
        opened = Image.open(self.out / picture.file)
        opened.load()
        assert opened.size == (picture.width, picture.height)
        return opened

    def samples(self, picture: Picture | None, mode: str | None = None) -> Any:
        opened = self.open(picture)
        return np.asarray(opened.convert(mode) if mode else opened)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


@pytest.fixture
def noise() -> Callable[..., Any]:
    """Random codes below ``2 ** bits``, the same for the same seed."""

    def make(height: int, width: int, components: int = 1, bits: int = 8, seed: int = 0) -> Any:
        dtype = np.uint16 if bits == 16 else np.uint8
        return np.random.default_rng(seed).integers(0, 1 << bits, (height, width, components)).astype(dtype)

    return make


@pytest.fixture
def photo() -> Callable[..., Image.Image]:
    """A smooth coloured picture with a little noise, as photographs compress."""

    def make(width: int = 96, height: int = 80, mode: str = "RGB", seed: int = 1) -> Image.Image:
        random = np.random.default_rng(seed)
        coarse = Image.fromarray(random.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8))
        smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
        grain = random.integers(-10, 11, (height, width, 3))
        return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8)).convert(mode)

    return make


@pytest.fixture(scope="session")
def linear_profile() -> bytes:
    """sRGB with straight curves: the same primaries, far other tones."""
    data = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    at = data.index(b"para")
    while at > 0:
        data[at : at + 16] = b"para\0\0\0\0\0\0\0\0\0\1\0\0"
        at = data.find(b"para", at + 16)
    return bytes(data)
