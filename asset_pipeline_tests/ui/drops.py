"""What people drop in while Dagster's pages are open: a document of 200 bytes, one of 200 MB, and one in a wrong place.

The large one is a picture, a damaged one, and a stream of zeros that nothing draws: written in a moment, and read like
any other.
"""

from __future__ import annotations

from pathlib import Path

SMALL, LARGE = 200, 200_000_000
"""Bytes. More than 200 MiB (209,715,200) is refused."""

WRONG_PLACE = "press-desk/September/cover.pdf"

_HEAD = b"<</Type/XObject/Subtype/Image/Width 8/Height 8/BitsPerComponent 8/ColorSpace/DeviceRGB/Length %d>>stream\n"
_DRAWING = b"q 80 0 0 80 10 20 cm /Im0 Do Q q 80 0 0 80 110 20 cm /Im1 Do Q"
_PAGE = (
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</XObject<</Im0 5 0 R/Im1 6 0 R>>>>>>",
    b"<</Length %d>>stream\n%s\nendstream" % (len(_DRAWING), _DRAWING),
    _HEAD % 192 + bytes(range(192)) + b"\nendstream",
    _HEAD % 5 + b"short\nendstream",
)


def drop_all(inbox: Path, month: str) -> None:
    """Drop the three documents; the good ones in ``month``."""
    place = inbox / "press-desk" / month
    place.mkdir(parents=True)
    (place / "small.pdf").write_bytes(small_pdf())
    write_large_pdf(place / "large.pdf")
    wrong = inbox / WRONG_PLACE
    wrong.parent.mkdir()
    wrong.write_bytes(small_pdf())


def small_pdf() -> bytes:
    """A document of one empty page."""
    objects = b"1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    objects += b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>endobj\n"
    return (b"%PDF-1.4\n" + objects + b"trailer<</Root 1 0 R>>\n").ljust(SMALL - 6, b"\n") + b"%%EOF\n"


def write_large_pdf(path: Path) -> None:
    """A document of one page with two pictures. Its zeros take no room on a disk that can leave them out."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[3 0 R]/Count 1>>", *_PAGE]
    offsets = []
    with path.open("wb") as file:
        file.write(b"%PDF-1.4\n")
        for number, body in enumerate(objects, start=1):
            offsets.append(file.tell())
            file.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
        offsets.append(file.tell())
        zeros = LARGE - file.tell() - 1_000
        file.write(b"%d 0 obj\n<</Length %d>>stream\n" % (len(offsets), zeros))
        file.seek(zeros, 1)
        file.write(b"\nendstream\nendobj\n")
        table = file.tell()
        file.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1))
        file.writelines(b"%010d 00000 n \n" % offset for offset in offsets)
        trailer = b"trailer<</Size %d/Root 1 0 R>>\n" % (len(offsets) + 1)
        end = b"startxref\n%d\n%%%%EOF\n" % table
        file.write(trailer + end.rjust(LARGE - file.tell() - len(trailer), b"\n"))
