"""What a decoder process would load late, loaded before: in its cage it can open no file of a library.

Called in the zygote, for each engine that is asked for, before any decoder of it is forked. A library
that imports something only at need belongs into the table; the test of this module reads documents and
fails for what is missing here.
"""

from __future__ import annotations

import encodings
import pkgutil
import sys
from contextlib import suppress
from importlib import import_module

from PIL import Image

from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import load_engine, version_of

# By the library that does it, where an engine has loaded that one.
_LATE = {
    "PIL": ("PIL.ImageChops", "PIL.ImageCms", "PIL.ImageOps"),
    "pikepdf": ("pikepdf.models.image",),
    "pypdf": (
        *("pypdf._codecs._codecs", "pypdf._codecs.core_font_metrics", "pypdf._text_extraction", "pypdf._writer"),
        *("pypdf.filters", "pypdf.generic._font", "pypdf.generic._image_inline", "pypdf.generic._image_xobject"),
        "pypdf.xmp",
    ),
    "zipfile": ("zlib", "bz2", "lzma"),
}
_OF_ANOTHER_SYSTEM = ("mbcs", "oem")

# All encodings and formats of Pillow take 0.1 s, which a short document waits for: an engine that names its own
# needs no others. XML may name any, and pypdf leaves the choice of a format to Pillow.
_ENCODINGS = {
    "pdf": (
        *("ascii", "latin_1", "utf_8", "utf_8_sig", "utf_16", "utf_16_be", "utf_16_le", "cp1252", "mac_roman"),
        *("charmap", "raw_unicode_escape", "unicode_escape"),
    )
}
_FORMATS = {"pdf": ("Jpeg2K", "Jpeg", "Mpo", "Png", "Tiff")}


def warm_up(name: str) -> str | None:
    """Import the engine ``name`` and all that it may import later; its version.

    None where there is no such engine, or a library of it is missing: its decoder tells that.
    """
    version = None
    with suppress(UsageError, ImportError):
        version = version_of(load_engine(name))
    _load_formats(name)
    for encoding in _ENCODINGS.get(name) or _all_encodings():
        import_module(f"encodings.{encoding}")
    for library, modules in _LATE.items():
        if library in sys.modules:
            for late in modules:
                with suppress(ImportError):
                    import_module(late)
    return version


def _load_formats(name: str) -> None:
    if name not in _FORMATS:
        Image.init()
        return
    Image.preinit()
    for plugin in _FORMATS[name]:
        import_module(f"PIL.{plugin}ImagePlugin")


def _all_encodings() -> list[str]:
    names = [module.name for module in pkgutil.iter_modules(encodings.__path__)]
    return [name for name in names if name not in _OF_ANOTHER_SYSTEM]
