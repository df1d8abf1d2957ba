"""Documents that carry a word of their own in every place where a document, its name or its path can hold one."""

from __future__ import annotations

import struct
import zipfile
import zlib
from pathlib import Path

import pikepdf
from pikepdf import Array, Dictionary, Name, String
from PIL import ImageCms

WANTED = ("caption", "alt", "label", "profile")
"""Texts that are archived on purpose (REQUIREMENTS R6.1, R6.5): in rows of pictures and pages, and in manifests."""

UNWANTED = (
    *("title", "author", "xmp", "body", "resource", "filter", "space", "layer", "font", "bookmark", "attachment"),
    *("javascript", "link", "comment", "broken", "officetitle", "officebody", "part", "relation", "content"),
    *("collection", "item"),
)


def canary(place: str) -> str:
    """The word that stands in ``place`` and nowhere else."""
    return f"canary{place}quetzal"


def write_pdf(path: Path) -> None:
    """A readable document with a good, a mislabelled and a broken picture, and words all around them."""
    with pikepdf.new() as pdf:
        page = pdf.add_blank_page(page_size=(300, 300))
        names = [Name(f"/{canary('resource')}{number}") for number in range(4)]
        pictures = [_picture(pdf, bytes(range(64)) * 3) for _ in names]
        pictures[0].ColorSpace = Array([Name.ICCBased, pdf.make_stream(colour_profile(canary("profile")), N=3)])
        pictures[1].write(b"words", filter=Name(f"/{canary('filter')}"))
        pictures[2].ColorSpace = Name(f"/{canary('space')}")
        pictures[3].write(f"{canary('broken')}".encode(), filter=Name.DCTDecode)
        font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name(f"/{canary('font')}"))
        layer = pdf.make_indirect(Dictionary(Type=Name.OCG, Name=String(canary("layer"))))
        page.Resources = Dictionary(
            XObject=Dictionary({str(name): picture for name, picture in zip(names, pictures, strict=True)}),
            Font=Dictionary(F1=font),
            Properties=Dictionary(L=layer),
        )
        draws = "".join(
            f"/Figure <</MCID {at}>> BDC q 60 0 0 60 {20 + 65 * at} 150 cm {name} Do Q EMC "
            for at, name in enumerate(names)
        )
        texts = f"BT /F1 9 Tf 20 138 Td (Figure 1. {canary('caption')} of the year) Tj ET "
        texts += f"BT /F1 9 Tf 20 40 Td ({canary('body')}) Tj ET /OC /L BDC EMC "
        page.Contents = pdf.make_stream((texts + draws + f"% {canary('comment')}").encode())
        _tag(pdf, page)
        pdf.Root.PageLabels = Dictionary(Nums=Array([0, Dictionary(S=Name.D, P=String(canary("label")))]))
        pdf.Root.OCProperties = Dictionary(OCGs=Array([layer]), D=Dictionary())
        pdf.Root.OpenAction = Dictionary(S=Name.JavaScript, JS=String(canary("javascript")))
        link = Dictionary(Type=Name.Annot, Subtype=Name.Link, Rect=Array([0, 0, 9, 9]))
        link.A = Dictionary(S=Name.URI, URI=String(f"https://example.org/{canary('link')}"))
        page.Annots = Array([link])
        with pdf.open_outline() as outline:
            outline.root.append(pikepdf.OutlineItem(canary("bookmark"), 0))
        pdf.attachments[canary("attachment")] = pikepdf.AttachedFileSpec(pdf, canary("attachment").encode())
        _make_portfolio(pdf)
        pdf.docinfo.Title, pdf.docinfo.Author = String(canary("title")), String(canary("author"))
        pdf.Root.Metadata = pdf.make_stream(f"<x>{canary('xmp')}</x>".encode(), Type=Name.Metadata, Subtype=Name.XML)
        pdf.save(path)


def write_broken_pdf(path: Path) -> None:
    """No document, but words."""
    path.write_bytes(f"%PDF-1.7\n1 0 obj <</Title ({canary('title')})>> {canary('broken')}\n%%EOF\n".encode())


def write_locked_pdf(path: Path) -> None:
    with pikepdf.new() as pdf:
        pdf.add_blank_page()
        pdf.docinfo.Title = String(canary("title"))
        pdf.save(path, encryption=pikepdf.Encryption(owner=canary("author"), user=canary("body")))


def write_docx(path: Path, wrapped: Path) -> None:
    """The docx ``wrapped`` around one picture, with words in all its parts."""
    with zipfile.ZipFile(wrapped) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in source.namelist():
            data = source.read(name)
            if name.endswith((".xml", ".rels")):
                text = data.decode().replace("media/image1", f"media/{canary('part')}")
                text = text.replace("rId1", canary("relation"))
                text = text.replace('id="1" name="p"', f'id="1" name="p" descr="{canary("alt")}"')
                text = text.replace("<w:body>", f"<w:body><w:p><w:r><w:t>{canary('officebody')}</w:t></w:r></w:p>")
                data = text.encode()
            archive.writestr(name.replace("image1", canary("part")), data)
        archive.writestr("docProps/core.xml", f"<core><title>{canary('officetitle')}</title></core>")
        archive.writestr(f"word/{canary('content')}.xml", f"<x>{canary('content')}</x>")


def colour_profile(description: str) -> bytes:
    """sRGB with a description of our own: a profile's tags are a table of name, place and size."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    text = description.encode("utf-16-be")
    tag = b"mluc" + struct.pack(">IIIHHII", 0, 1, 12, 0x656E, 0x5553, len(text), 28) + text
    (count,) = struct.unpack_from(">I", profile, 128)
    for at in range(132, 132 + 12 * count, 12):
        if profile[at : at + 4] == b"desc":
            struct.pack_into(">II", profile, at + 4, len(profile), len(tag))
    profile += tag + bytes(-len(tag) % 4)
    struct.pack_into(">I", profile, 0, len(profile))
    profile[84:100] = bytes(16)  # the digest of the profile as it was
    return bytes(profile)


def _make_portfolio(pdf: pikepdf.Pdf) -> None:
    """Show the attachments as a collection, with a column and what stands in it."""
    field = Dictionary(Type=Name.CollectionField, Subtype=Name.S, N=String(canary("collection")))
    schema = Dictionary({"/Type": Name.CollectionSchema, f"/{canary('collection')}": field})
    pdf.Root.Collection = Dictionary(Type=Name.Collection, Schema=schema, View=Name.D)
    item = Dictionary({"/Type": Name.CollectionItem, f"/{canary('collection')}": String(canary("item"))})
    pdf.attachments[canary("attachment")].obj.CI = item


def _picture(pdf: pikepdf.Pdf, samples: bytes) -> pikepdf.Object:
    picture = pdf.make_stream(b"")
    picture.write(zlib.compress(samples), filter=Name.FlateDecode)
    picture.Type, picture.Subtype = Name.XObject, Name.Image
    picture.Width, picture.Height, picture.BitsPerComponent = 8, 8, 8
    picture.ColorSpace = Name.DeviceRGB
    return picture


def _tag(pdf: pikepdf.Pdf, page: pikepdf.Page) -> None:
    """Make the first picture a tagged figure with an alternative text."""
    root = pdf.make_indirect(Dictionary(Type=Name.StructTreeRoot))
    figure = pdf.make_indirect(
        Dictionary(Type=Name.StructElem, S=Name.Figure, P=root, Pg=page.obj, K=0, Alt=String(canary("alt")))
    )
    root.K = Array([figure])
    root.ParentTree = Dictionary(Nums=Array([0, Array([figure, figure, figure, figure])]))
    page.StructParents = 0
    pdf.Root.StructTreeRoot = root
    pdf.Root.MarkInfo = Dictionary(Marked=True)
