"""ICC profiles: whether one is sound, what it is called, whether it is sRGB in all but name.

A profile is judged by what it does: colours spread over its range are converted to sRGB, and when none
moves by more than two steps the samples are taken as sRGB. Names and sizes of profiles say too little.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

_MOST = 16 * 1024 * 1024
_SPACES = {"GRAY": 1, "RGB ": 3, "Lab ": 3, "CMYK": 4}
_TOLERANCE = 2
_NAME_LENGTH = 120


@dataclass(frozen=True, slots=True)
class Profile:
    """A sound profile: components, its own description, whether its samples are sRGB (or plain gray)."""

    data: bytes
    components: int
    name: str
    plain: bool


@lru_cache(maxsize=16)
def read_profile(data: bytes) -> Profile | None:
    """The profile in ``data``, or None when it is corrupt, too large or of a kind no picture has."""
    if not 128 <= len(data) <= _MOST or data[36:40] != b"acsp":
        return None
    space = data[16:20].decode("latin-1")
    components = _SPACES.get(space)
    if components is None:
        return None
    try:
        profile = ImageCms.ImageCmsProfile(io.BytesIO(data))
        moved = _movement(profile, space)
        name = ImageCms.getProfileDescription(profile)
    except (OSError, ValueError, TypeError, ImageCms.PyCMSError):
        return None
    clean = "".join(letter for letter in name if letter.isprintable()).strip()[:_NAME_LENGTH]
    return Profile(data, components, clean or "unnamed profile", moved is not None and moved <= _TOLERANCE)


def _movement(profile: ImageCms.ImageCmsProfile, space: str) -> int | None:
    """Largest change, in steps of 255, that conversion to sRGB makes; None where it cannot be compared."""
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
    if space == "RGB ":
        steps = np.linspace(0, 255, 9).astype(np.uint8)
        grid = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(27, 27, 3)
        sent, mode = Image.fromarray(grid), "RGB"
    elif space == "GRAY":
        ramp = np.arange(256, dtype=np.uint8).reshape(16, 16)
        sent, mode = Image.fromarray(ramp), "L"
        grid = np.repeat(ramp[..., None], 3, axis=2)
    else:
        mode = "LAB" if space == "Lab " else "CMYK"
        ImageCms.buildTransform(profile, srgb, mode, "RGB")
        return None
    got = ImageCms.applyTransform(sent, ImageCms.buildTransform(profile, srgb, mode, "RGB"))
    if got is None:
        return None
    return int(np.abs(np.asarray(got).astype(int) - grid.astype(int)).max())
