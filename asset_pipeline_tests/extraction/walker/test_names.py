"""A picture under an oddly spelled name is found as viewers find it, or the page says that something is missing."""

from __future__ import annotations

import io
from pathlib import Path

import pikepdf
import pypdfium2
import pypdfium2.raw as raw
import pytest

from asset_pipeline import extract
from asset_pipeline.extraction.pdf.draws import PageDraws
from asset_pipeline.extraction.pdf.walker import walk_page
from asset_pipeline.model import Status
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason


def _document(names: list[bytes], drawn: list[bytes]) -> bytes:
    """One page, written by hand as no library would: pictures under ``names``, of which it draws ``drawn``."""
    resources = b"".join(name + b" %d 0 R " % (5 + index) for index, name in enumerate(names))
    content = b"".join(b"q 50 0 0 50 10 10 cm " + name + b" Do Q " for name in drawn)
    picture = b"<< /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /ColorSpace /DeviceGray /Length 1 >>"
    bodies = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents 4 0 R /Resources << /XObject << "
        + resources + b">> >> >>",
        b"<< /Length %d >>\nstream\n" % len(content) + content + b"\nendstream",
        *(picture + b"\nstream\n%c\nendstream" % (60 + index) for index in range(len(names))),
    ]  # fmt: skip
    out, offsets = b"%PDF-1.7\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    index = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(bodies) + 1, index, len(bodies) + 1, len(out)
    )  # fmt: skip


def _walk(data: bytes) -> PageDraws:
    with pikepdf.open(io.BytesIO(data)) as pdf:
        return walk_page(pdf, 1, Limits())


def _shown_by_pdfium(data: bytes) -> int:
    document = pypdfium2.PdfDocument(data)
    sheet = document[0]
    try:
        return len(list(sheet.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE])))
    finally:
        sheet.close()
        document.close()


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        (b"/A#42", b"/AB"), (b"/AB", b"/A#42"), (b"/a#20b", b"/a#20b"), (b"/a#2fb", b"/a#2Fb"), (b"/a#0Ab", b"/a#0ab"),
        (b"/a#23b", b"/a#23b"), (b"/a#7b", b"/a#7b"), (b"/a#80", b"/a#80"), (b"/\xc3\xa9", b"/#c3#a9"),
        (b"/a#zz", b"/a#zz"), (b"/a#", b"/a#"), (b"/a#4", b"/a#4"), (b"/A#", b"/A#23"), (b"/a##41", b"/a##41"),
        (b"/a#00b", b"/a#00b"), (b"/#00", b"/#00"), (b"/a#00b#0Ac#3Cscript#3E", b"/a#00b#0Ac#3Cscript#3E"),
        (b"/", b"/"), (b"/A#42", b"/AC"), (b"/a#00b", b"/b"),
        (b"/AB", b"(AB)"), (b"/AB", b"<41 4 2>"), (b"/AB", b"(A\\102)"), (b"/AB", b"(A#42)"), (b"/A", b"()"),
        (b"/AB", b"/AB 7"), (b"/AB", b"/C /AB"), (b"/AB", b"[/AB]"), (b"/a#20b", b"(a b)"),
    ],
)  # fmt: skip
def test_a_name_means_what_it_means_to_a_viewer(name: bytes, drawn: bytes) -> None:
    data = _document([name], [drawn])
    found = _walk(data)
    assert (len(found.draws), found.reason) == (_shown_by_pdfium(data), None)


def test_of_several_names_that_cannot_be_told_apart_the_page_says_that_something_is_missing() -> None:
    data = _document([b"/a#00b", b"/a#00c", b"/Plain"], [b"/a#00c", b"/Plain"])
    found = _walk(data)
    assert _shown_by_pdfium(data) == 2
    assert ([draw.object_id for draw in found.draws], found.reason) == ([7], Reason.MALFORMED_DOCUMENT)


def test_a_name_without_resource_is_nothing_to_miss() -> None:
    found = _walk(_document([b"/A"], [b"/a#00b", b"/Other", b"/A"]))
    assert ([draw.object_id for draw in found.draws], found.reason) == ([5], None)


def test_a_colour_space_whose_name_is_no_text_refuses_its_picture_alone(tmp_path: Path) -> None:
    data = _document([b"/A", b"/B"], [b"/A", b"/B"]).replace(b"/DeviceGray", b"/#ff#feGray", 1)
    (tmp_path / "document.pdf").write_bytes(data)
    report = extract(tmp_path / "document.pdf", tmp_path / "pictures")
    bad, good = report.pages[0].placements
    assert (bad.status, bad.reason) == (Status.QUARANTINED, Reason.MALFORMED_STREAM)
    assert good.status is Status.ARCHIVED
