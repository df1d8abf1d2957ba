"""Puts a bare raster into a document: as a stream of a PDF, as a media part of a docx."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pikepdf
from pikepdf import Array, Dictionary, Name

_FILTERS = {".jp2": Name.JPXDecode, ".j2k": Name.JPXDecode}
"""Whatever is not JPEG 2000 is said to be a JPEG: of the kinds of files that PDF knows, the one left."""

_FRAME_MARKERS = range(0xC0, 0xD0)
_NO_FRAME = (0xC4, 0xC8, 0xCC)


def wrap_in_pdf(raster: Path, place: Path) -> None:
    """A page that draws ``raster``; the dictionary says of a JPEG what its header says, else 8 x 8 gray."""
    data = raster.read_bytes()
    width, height = _jpeg_size(data) or (8, 8)
    with pikepdf.new() as pdf:
        picture = pdf.make_stream(b"")
        picture.write(data, filter=_FILTERS.get(raster.suffix, Name.DCTDecode))
        picture.Type, picture.Subtype = Name.XObject, Name.Image
        picture.Width, picture.Height, picture.BitsPerComponent = width, height, 8
        picture.ColorSpace = Name.DeviceGray
        page = pdf.add_blank_page(page_size=(200, 200))
        page.Resources = Dictionary(XObject=Dictionary(Im0=picture))
        page.MediaBox = Array([0, 0, 200, 200])
        page.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im0 Do Q")
        pdf.save(place, static_id=True, compress_streams=False, stream_decode_level=pikepdf.StreamDecodeLevel.none)


def wrap_in_docx(raster: Path, place: Path) -> None:
    """A text document with ``raster`` in one paragraph, an inch wide."""
    kind = raster.suffix.lstrip(".")
    types = (
        f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f'<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="{kind}" ContentType="image/{kind.replace("jpg", "jpeg").replace("tif", "tiff")}"/>'
        f'<Override PartName="/word/document.xml" ContentType='
        f'"application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
    )
    relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    drawing = "http://schemas.openxmlformats.org/drawingml/2006"
    document = (
        f'<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="{relations}" '
        f'xmlns:wp="{drawing}/wordprocessingDrawing" xmlns:a="{drawing}/main" xmlns:pic="{drawing}/picture"><w:body>'
        f'<w:p><w:r><w:drawing><wp:inline><wp:extent cx="914400" cy="914400"/><wp:docPr id="1" name="p"/><a:graphic>'
        f'<a:graphicData uri="{drawing}/picture"><pic:pic><pic:nvPicPr><pic:cNvPr id="1" name="p"/><pic:cNvPicPr/>'
        f'</pic:nvPicPr><pic:blipFill><a:blip r:embed="rId1"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>'
        f'<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext cx="914400" cy="914400"/></a:xfrm><a:prstGeom prst="rect"/>'
        f"</pic:spPr></pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p></w:body></w:document>"
    )
    parts = {
        "[Content_Types].xml": types,
        "_rels/.rels": f'<Relationships xmlns="{package}"><Relationship Id="rId1" Type="{relations}/officeDocument" '
        f'Target="word/document.xml"/></Relationships>',
        "word/document.xml": document,
        "word/_rels/document.xml.rels": f'<Relationships xmlns="{package}"><Relationship Id="rId1" '
        f'Type="{relations}/image" Target="media/image1.{kind}"/></Relationships>',
    }
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name), text)
        archive.writestr(zipfile.ZipInfo(f"word/media/image1.{kind}"), raster.read_bytes())


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Width and height of the first frame header."""
    at = 2
    while data[:2] == b"\xff\xd8" and at + 9 <= len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4])
        if marker in _FRAME_MARKERS and marker not in _NO_FRAME:
            return int.from_bytes(data[at + 7 : at + 9]), int.from_bytes(data[at + 5 : at + 7])
        at += 2 + length
    return None
