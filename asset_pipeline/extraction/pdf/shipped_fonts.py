"""Only the fonts that PDFium ships, never those of the machine.

A document that does not embed a font would else be rendered with whatever is installed, and the same
figure would have another digest on another worker, which looks like an integrity incident.
"""

from __future__ import annotations

from functools import cache

from pypdfium2 import raw


@cache
def use_shipped_fonts() -> None:
    """Take the machine's fonts away from PDFium, for the whole process; before any page is loaded."""
    raw.FPDF_SetSystemFontInfo(None)
