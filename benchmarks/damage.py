"""How much damage inside a JPEG is found: of 200 copies with eight random scan bytes changed, how many are refused.

    .venv/bin/python benchmarks/damage.py [--tries N]

By kind of picture, made from seeds. What is not found decodes without a warning, ends exactly where its data
ends and stays within what samples can be: it is the JPEG of another picture, and only the difference from
what should be there could tell. Why, and what the figures mean, is in ``README.md``.
"""

from __future__ import annotations

import argparse
import io
import random
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

BYTES = 8


class Kind(NamedTuple):
    """A kind of picture: contrast and grain in tones, the mode, how it is encoded."""

    name: str
    contrast: float = 60
    grain: float = 0
    colour_grain: float = 0
    mode: str = "RGB"
    size: tuple[int, int] = (640, 480)
    options: dict[str, Any] = {"quality": 90}  # noqa: RUF012 - never changed


KINDS = (
    Kind("soft"),
    Kind("soft, 1600 x 1200", size=(1600, 1200)),
    Kind("soft, quality 75", options={"quality": 75}),
    Kind("soft, gray", mode="L"),
    Kind("soft, CMYK", mode="CMYK"),
    Kind("soft, progressive", options={"quality": 90, "progressive": True}),
    Kind("soft, own Huffman tables", options={"quality": 90, "optimize": True}),
    Kind("soft, restart markers", options={"quality": 90, "restart_marker_rows": 1}),
    Kind("low contrast", contrast=12),
    Kind("low contrast, gray", contrast=12, mode="L"),
    Kind("grain of film", grain=10),
    Kind("grain of film, quality 75", grain=10, options={"quality": 75}),
    Kind("coarse grain, quality 75", grain=25, options={"quality": 75}),
    Kind("coarse grain, gray", grain=25, mode="L"),
    Kind("coarse grain, gray, quality 75", grain=25, mode="L", options={"quality": 75}),
    Kind("noise of a sensor", colour_grain=20),
    Kind("noise of a sensor, quality 75", colour_grain=20, options={"quality": 75}),
)


def main() -> None:
    """Print the table."""
    from asset_pipeline.errors import Refusal
    from asset_pipeline.extraction.pdf.jpeg import check_scan
    from asset_pipeline.policy import Limits
    from asset_pipeline.validation.jpeg import check_jpeg

    def is_found(data: bytes) -> bool:
        try:
            check_scan(data, check_jpeg(data, Limits()))
        except Refusal:
            return True
        return False

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=200, help="copies of each kind (default 200)")
    tries = parser.parse_args().tries
    print(f"| picture | KB | refused of {tries} |\n|---|---|---|")
    for kind in KINDS:
        data = _encoded(kind)
        if is_found(data):
            raise SystemExit(f"{kind.name}: refused undamaged")
        chance = random.Random(3)
        found = sum(is_found(_damaged(data, chance)) for _ in range(tries))
        print(f"| {kind.name} | {len(data) // 1024} | {found} |", flush=True)


def _encoded(kind: Kind) -> bytes:
    """Soft blobs, as a photo out of focus; grain of one tone for all colours, or noise of each alone."""
    width, height = kind.size
    noise = np.random.default_rng(1)
    blobs = noise.normal(0, 1, (height // 8 + 2, width // 8 + 2, 3)).astype(np.float32)
    planes = [Image.fromarray(blobs[:, :, plane]).resize(kind.size, Image.Resampling.BICUBIC) for plane in range(3)]
    tones = 128 + kind.contrast * np.stack([np.asarray(plane) for plane in planes], 2)
    tones = tones + kind.grain * noise.normal(0, 1, (height, width, 1))
    tones = tones + kind.colour_grain * noise.normal(0, 1, (height, width, 3))
    out = io.BytesIO()
    Image.fromarray(np.clip(tones, 0, 255).astype(np.uint8)).convert(kind.mode).save(out, "JPEG", **kind.options)
    return out.getvalue()


def _damaged(data: bytes, chance: random.Random) -> bytes:
    copy = bytearray(data)
    start = data.index(b"\xff\xda") + 14
    for _ in range(BYTES):
        copy[chance.randrange(start, len(copy) - 2)] = chance.randrange(256)
    return bytes(copy)


if __name__ == "__main__":
    main()
