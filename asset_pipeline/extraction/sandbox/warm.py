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


def warm_up(name: str) -> None:
    """Import the engine ``name`` and all that it may import later. A missing one is its decoder's to tell."""
    with suppress(UsageError, ImportError):
        version_of(load_engine(name))
    Image.init()
    for module in pkgutil.iter_modules(encodings.__path__):
        if module.name not in _OF_ANOTHER_SYSTEM:
            import_module(f"encodings.{module.name}")
    for library, modules in _LATE.items():
        if library in sys.modules:
            for late in modules:
                with suppress(ImportError):
                    import_module(late)
