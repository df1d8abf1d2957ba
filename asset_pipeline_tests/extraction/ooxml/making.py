"""Office packages for the tests, written part by part, so that every trap can be set exactly."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

from PIL import Image

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{name}"'
    for prefix, name in {
        "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
        "p": "http://schemas.openxmlformats.org/presentationml/2006/main",
        "r": OFFICE,
        "a": f"{_DRAWING}/main",
        "pic": f"{_DRAWING}/picture",
        "wp": f"{_DRAWING}/wordprocessingDrawing",
        "xdr": f"{_DRAWING}/spreadsheetDrawing",
        "c": f"{_DRAWING}/chart",
        "dgm": f"{_DRAWING}/diagram",
        "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "asvg": "http://schemas.microsoft.com/office/drawing/2016/SVG/main",
        "dsp": "http://schemas.microsoft.com/office/drawing/2008/diagram",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
    }.items()
)
MAIN = {
    "docx": ("word/document.xml", "wordprocessingml.document"),
    "pptx": ("ppt/presentation.xml", "presentationml.presentation"),
    "xlsx": ("xl/workbook.xml", "spreadsheetml.sheet"),
}
TYPES = {
    "rels": "application/vnd.openxmlformats-package.relationships+xml",
    "xml": "application/xml",
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "webp": "image/webp",
    "jp2": "image/jp2",
    "emf": "image/x-emf",
    "wmf": "image/x-wmf",
    "svg": "image/svg+xml",
    "eps": "image/eps",
}
CM = 360_000
"""EMU of a centimetre."""


def content_types(kind: str) -> str:
    main, name = MAIN[kind]
    defaults = "".join(f'<Default Extension="{key}" ContentType="{value}"/>' for key, value in TYPES.items())
    override = f"application/vnd.openxmlformats-officedocument.{name}.main+xml"
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        f'{defaults}<Override PartName="/{main}" ContentType="{override}"/></Types>'
    )


def relations(rows: Mapping[str, tuple[str, str]]) -> str:
    """Relationships: id to (kind, target); a target that begins with http or file is outside."""
    body = "".join(
        f'<Relationship Id="{id_}" Type="{OFFICE}/{kind}" Target="{target}"'
        + (' TargetMode="External"' if target.startswith(("http", "file")) else "")
        + "/>"
        for id_, (kind, target) in rows.items()
    )
    return f'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{body}</Relationships>'


def package(kind: str, parts: Mapping[str, str | bytes]) -> bytes:
    """A package of ``parts``; content types and the package's relationship are added where they are not given."""
    main, _ = MAIN[kind]
    whole: dict[str, str | bytes] = {
        "[Content_Types].xml": content_types(kind),
        "_rels/.rels": relations({"rId1": ("officeDocument", main)}),
        **parts,
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in whole.items():
            archive.writestr(name, body)
    return out.getvalue()


def picture(
    size: tuple[int, int] = (40, 30), kind: str = "PNG", mode: str = "RGB", seed: int = 1, **how: object
) -> bytes:
    """A picture without symmetry, so that every turn and crop of it differs."""
    width, height = size
    ramp = Image.linear_gradient("L").resize(size)
    side = ramp.transpose(Image.Transpose.ROTATE_90).resize(size)
    whole = Image.merge("RGB", (ramp, side, Image.new("L", size, 37 * seed % 256)))
    whole.paste((255, 0, 0), (0, 0, max(1, width // 4), max(1, height // 4)))
    out = io.BytesIO()
    (whole if mode == "RGB" else whole.convert(mode)).save(out, kind, **how)
    return out.getvalue()


def blip(id_: str = "rId1", inside: str = "", key: str = "r:embed") -> str:
    return f'<a:blip {key}="{id_}">{inside}</a:blip>'


def transform(x: float = 0, y: float = 0, width: float = 4, height: float = 3, attributes: str = "") -> str:
    """An ``a:xfrm`` in centimetres."""
    off, ext = f'x="{int(x * CM)}" y="{int(y * CM)}"', f'cx="{int(width * CM)}" cy="{int(height * CM)}"'
    return f"<a:xfrm {attributes}><a:off {off}/><a:ext {ext}/></a:xfrm>"


def pic(
    space: str = "pic",
    id_: str = "rId1",
    *,
    at: str | None = None,
    crop: str = "",
    described: str = "",
    inside: str = "",
    source: str | None = None,
    properties: str = "",
    outline: str = '<a:prstGeom prst="rect"/>',
) -> str:
    """A picture; ``space`` is the prefix of the format: pic, p or xdr."""
    described = f' descr="{described}"' if described else ""
    return (
        f'<{space}:pic><{space}:nvPicPr><{space}:cNvPr id="2" name="Picture 1"{described} {properties}/>'
        f"<{space}:cNvPicPr/>{inside}</{space}:nvPicPr><{space}:blipFill>{source or blip(id_)}{crop}"
        f"<a:stretch><a:fillRect/></a:stretch></{space}:blipFill>"
        f"<{space}:spPr>{transform() if at is None else at}{outline}</{space}:spPr></{space}:pic>"
    )


def inline(body: str, *, described: str = "", size: tuple[float, float] = (4, 3), properties: str = "") -> str:
    """A drawing in a line of a Word document."""
    extent = f'<wp:extent cx="{int(size[0] * CM)}" cy="{int(size[1] * CM)}"/>'
    said = f' descr="{described}"' if described else ""
    return (
        f'<w:drawing><wp:inline>{extent}<wp:docPr id="1" name="n"{said} {properties}/>'
        f'<a:graphic><a:graphicData uri="x">{body}</a:graphicData></a:graphic></wp:inline></w:drawing>'
    )


def paragraph(body: str = "", style: str = "", run: str = "") -> str:
    said = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{said}<w:r>{run}{body}</w:r></w:p>"


def text(words: str) -> str:
    return f"<w:t>{words}</w:t>"


def docx(body: str, media: Mapping[str, bytes] | None = None, extra: Mapping[str, str | bytes] | None = None) -> bytes:
    """A Word document; its pictures are ``rId1``, ``rId2`` … in the order of ``media``."""
    media = media if media is not None else {"image1.png": picture()}
    extra = dict(extra or {})
    rows = {f"rId{number}": ("image", f"media/{name}") for number, name in enumerate(media, start=1)}
    rows |= {id_: (str(kind), str(target)) for id_, (kind, target) in extra.pop("relations", {}).items()}  # type: ignore[union-attr]
    return package(
        "docx",
        {
            "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": relations(rows),
            **{f"word/media/{name}": data for name, data in media.items()},
            **extra,
        },
    )


def pptx(
    slides: list[str],
    *,
    media: Mapping[str, bytes] | None = None,
    layout: str = "",
    master: str = "",
    slide_attributes: str = "",
    backgrounds: Mapping[str, str] | None = None,
    extra: Mapping[str, str | bytes] | None = None,
) -> bytes:
    """A presentation of 20 by 15 cm. Every part names ``media`` as ``rId1``, ``rId2`` …; others are ``rId9x``."""
    media = media if media is not None else {"image1.png": picture()}
    backgrounds = backgrounds or {}
    pictures = {f"rId{number}": ("image", f"../media/{name}") for number, name in enumerate(media, start=1)}

    def sheet(tag: str, shapes: str, attributes: str = "", background: str = "") -> str:
        tree = f"<p:cSld>{background}<p:spTree><p:nvGrpSpPr/><p:grpSpPr/>{shapes}</p:spTree></p:cSld>"
        return f"<p:{tag} {NAMESPACES} {attributes}>{tree}</p:{tag}>"

    ids = "".join(f'<p:sldId id="{255 + n}" r:id="rId{n}"/>' for n in range(1, len(slides) + 1))
    parts: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {NAMESPACES}><p:sldIdLst>{ids}</p:sldIdLst>"
        f'<p:sldSz cx="{20 * CM}" cy="{15 * CM}"/></p:presentation>',
        "ppt/_rels/presentation.xml.rels": relations(
            {f"rId{n}": ("slide", f"slides/slide{n}.xml") for n in range(1, len(slides) + 1)}
        ),
        "ppt/slideLayouts/slideLayout1.xml": sheet("sldLayout", layout, background=backgrounds.get("layout", "")),
        "ppt/slideLayouts/_rels/slideLayout1.xml.rels": relations(
            pictures | {"rId90": ("slideMaster", "../slideMasters/slideMaster1.xml")}
        ),
        "ppt/slideMasters/slideMaster1.xml": sheet("sldMaster", master, background=backgrounds.get("master", "")),
        "ppt/slideMasters/_rels/slideMaster1.xml.rels": relations(
            pictures | {"rId91": ("theme", "../theme/theme1.xml")}
        ),
    }
    for number, shapes in enumerate(slides, start=1):
        background = backgrounds.get(f"slide{number}", "")
        parts[f"ppt/slides/slide{number}.xml"] = sheet("sld", shapes, slide_attributes, background)
        parts[f"ppt/slides/_rels/slide{number}.xml.rels"] = relations(
            pictures | {"rId90": ("slideLayout", "../slideLayouts/slideLayout1.xml")}
        )
    parts |= {f"ppt/media/{name}": data for name, data in media.items()}
    return package("pptx", parts | dict(extra or {}))


def anchor(body: str, *, kind: str = "twoCellAnchor", place: str | None = None) -> str:
    """An anchor from B2 to D6 unless ``place`` says otherwise."""
    corners = "".join(
        f"<xdr:{name}><xdr:col>{column}</xdr:col><xdr:colOff>0</xdr:colOff>"
        f"<xdr:row>{row}</xdr:row><xdr:rowOff>0</xdr:rowOff></xdr:{name}>"
        for name, column, row in (("from", 1, 1), ("to", 3, 5))
    )
    return f"<xdr:{kind}>{corners if place is None else place}{body}<xdr:clientData/></xdr:{kind}>"


def xlsx(
    drawings: list[str],
    *,
    media: Mapping[str, bytes] | None = None,
    sheet: str = "",
    states: Mapping[int, str] | None = None,
    extra: Mapping[str, str | bytes] | None = None,
    named: Mapping[str, tuple[str, str]] | None = None,
) -> bytes:
    """A workbook with one drawing a sheet. Sheets and drawings name ``media`` as ``rId1``, ``rId2`` …"""
    media = media if media is not None else {"image1.png": picture()}
    states = states or {}
    pictures = {f"rId{number}": ("image", f"../media/{name}") for number, name in enumerate(media, start=1)}
    numbers = range(1, len(drawings) + 1)
    tabs = "".join(
        f'<sheet name="Tab {n}" sheetId="{n}" r:id="rId{n}"' + (f' state="{states[n]}"' if n in states else "") + "/>"
        for n in numbers
    )
    parts: dict[str, str | bytes] = {
        "xl/workbook.xml": f"<workbook {NAMESPACES}><sheets>{tabs}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            {f"rId{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in numbers}
        ),
    }
    for n, drawing in zip(numbers, drawings, strict=True):
        parts[f"xl/worksheets/sheet{n}.xml"] = f'<worksheet {NAMESPACES}>{sheet}<drawing r:id="rId90"/></worksheet>'
        parts[f"xl/worksheets/_rels/sheet{n}.xml.rels"] = relations(
            pictures | {"rId90": ("drawing", f"../drawings/drawing{n}.xml")} | dict(named or {})
        )
        parts[f"xl/drawings/drawing{n}.xml"] = f"<xdr:wsDr {NAMESPACES}>{drawing}</xdr:wsDr>"
        parts[f"xl/drawings/_rels/drawing{n}.xml.rels"] = relations(pictures)
    parts |= {f"xl/media/{name}": data for name, data in media.items()}
    return package("xlsx", parts | dict(extra or {}))


def cell_values() -> dict[str, str]:
    """Parts that make ``image1.png`` the value of cells with ``vm`` 1 (placed) and 2 (fetched); 3 was not kept.

    Values 4 and 5 are a share and a value of an array. For a workbook of one or two sheets.
    """
    rich = "http://schemas.microsoft.com/office/spreadsheetml/2017"
    keys = {
        "_localImage": ("_rvRel:LocalImageIdentifier", "CalcOrigin", "Text"),
        "_webimage": ("WebImageIdentifier", "CalcOrigin"),
        "_linkedentitycore": ("Name", "Price"),
    }
    values = ((0, 0, 5, "The quay"), (1, 0, 1), (1, 1, 1), (2, 0, 0))
    structures = "".join(
        f'<s t="{kind}">' + "".join(f'<k n="{key}" t="s"/>' for key in row) + "</s>" for kind, row in keys.items()
    )
    rows = "".join(f'<rv s="{row[0]}">' + "".join(f"<v>{value}</v>" for value in row[1:]) + "</rv>" for row in values)
    blocks = "".join(
        f'<bk><extLst><ext uri="x"><xlrd:rvb i="{number}"/></ext></extLst></bk>' for number in range(len(values))
    )
    named = "".join(f'<bk><rc t="2" v="{number}"/></bk>' for number in range(len(values)))
    sheets = {f"rId{n}": ("worksheet", f"worksheets/sheet{n}.xml") for n in (1, 2)}
    kinds = ("sheetMetadata", "rdRichValue", "rdRichValueStructure", "richValueRel", "rdRichValueWebImage")
    files = ("metadata", "richData/rdrichvalue", "richData/structure", "richData/rel", "richData/web")
    others = {f"rId{n}": (kind, f"{file}.xml") for n, (kind, file) in enumerate(zip(kinds, files, strict=True), 10)}
    return {
        "xl/_rels/workbook.xml.rels": relations(sheets | others),
        "xl/metadata.xml": f'<metadata xmlns:xlrd="{rich}/richdata"><metadataTypes><metadataType name="XLDAPR"/>'
        f'<metadataType name="XLRICHVALUE"/></metadataTypes><futureMetadata name="XLDAPR"><bk/></futureMetadata>'
        f'<futureMetadata name="XLRICHVALUE">{blocks}</futureMetadata>'
        f'<valueMetadata>{named}<bk><rc t="1" v="0"/></bk></valueMetadata></metadata>',
        "xl/richData/rdrichvalue.xml": f'<rvData xmlns="{rich}/richdata">{rows}</rvData>',
        "xl/richData/structure.xml": f'<rvStructures xmlns="{rich}/richdata">{structures}</rvStructures>',
        "xl/richData/rel.xml": f'<richValueRels {NAMESPACES}><rel r:id="rId1"/></richValueRels>',
        "xl/richData/_rels/rel.xml.rels": relations({"rId1": ("image", "../media/image1.png")}),
        "xl/richData/web.xml": f'<webImagesSrd {NAMESPACES}><webImageSrd><address r:id="rId1"/><blip r:id="rId2"/>'
        '</webImageSrd><webImageSrd><address r:id="rId1"/></webImageSrd></webImagesSrd>',
        "xl/richData/_rels/web.xml.rels": relations(
            {"rId1": ("hyperlink", "https://example.org/quay.png"), "rId2": ("image", "../media/image1.png")}
        ),
    }
