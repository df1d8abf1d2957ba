"""DrawingML: shapes, groups, pictures and picture fills, as Word, PowerPoint and Excel share it.

Finds every picture that a tree of shapes draws and where. Of alternatives (``mc:AlternateContent``) the
first that draws a picture counts, so that what stands in for a newer drawing is neither lost nor counted
twice. An SVG with a raster beside it is that raster, as the program that saved it drew it. Charts and
diagrams are drawings of their own: only pictures inside them are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from xml.etree.ElementTree import Element

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.ooxml.package import Package
from asset_pipeline.extraction.ooxml.placed import (
    UNCUT,
    Crop,
    Placed,
    Sink,
    box_frame,
    cropped_frame,
    group_frame,
    turned_frame,
    window_of,
)
from asset_pipeline.extraction.pdf.geometry import multiply
from asset_pipeline.model import Flag, Four, Kind, Six
from asset_pipeline.reasons import Reason

_GROUPS = frozenset({"grpSp", "wgp", "lockedCanvas", "wpc", "spTree"})
_SHAPES = frozenset({"sp", "wsp", "cxnSp"})
_PLAIN = frozenset({"alphaModFix", "extLst"})
_RECTANGLES = frozenset({None, "rect"})

Transform = tuple[Four, float, bool, bool]
"""Box (x, y, width, height), degrees clockwise, flipped left-right, flipped top-bottom."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Reads the shapes of one part into ``sink``.

    ``places`` tells where a placeholder lies that says nothing itself; ``skips_placeholders`` is for
    masters and layouts, whose placeholders are not drawn. ``on_text`` reads a text box of a shape.
    """

    package: Package
    part: str
    sink: Sink
    hidden: bool = False
    alt: str | None = None
    places: Callable[[Element], Transform | None] | None = None
    skips_placeholders: bool = False
    on_text: Callable[[Element, bool], None] | None = None

    def walk(self, elements: Iterable[Element], frame: Six) -> None:
        """Read ``elements`` and what is inside them. ``frame`` maps their coordinates to points."""
        for element in elements:
            self._visit(element, frame)

    def fill(self, owner: Element | None, shape: Six, *, approximate: bool = False, kind: Kind = Kind.RASTER) -> None:
        """The picture that fills ``shape``, where ``owner`` holds such a fill."""
        fill = owner.find("blipFill") if owner is not None else None
        blip = fill.find("blip") if fill is not None else None
        if fill is None or blip is None:
            return
        part, reason = self._source(blip)
        if part is None and reason is None:
            return
        tiled = fill.find("tile") is not None
        crop, inset = _crop(fill.find("srcRect")), _crop(fill.find("stretch/fillRect"))
        flags = {Flag.COLOUR_FALLBACK} if any(change.tag not in _PLAIN for change in blip) else set()
        if approximate:
            flags |= {Flag.CLIPPED, Flag.CLIP_APPROXIMATE}
        self.sink.add(
            Placed(
                kind=Kind.PATTERN if tiled else kind,
                part=part,
                reason=reason,
                frame=shape if tiled else cropped_frame(shape, crop, inset),
                window=window_of(shape),
                hidden=self.hidden,
                flags=frozenset(flags),
                alt=self.alt,
            )
        )

    def _visit(self, element: Element, frame: Six) -> None:
        tag = element.tag
        if tag == "AlternateContent":
            first_that_draws(element, self.sink, lambda branch: self.walk(branch, frame))
        elif tag == "pic":
            self._picture(element, frame)
        elif tag in _SHAPES:
            self._shape(element, frame)
        elif tag in _GROUPS:
            self._group(element, frame)
        elif tag == "graphicFrame":
            self._graphic_frame(element, frame)
        else:
            self.walk(element, frame)

    def _picture(self, element: Element, frame: Six) -> None:
        reader, place = self._named(element), self._place(element)
        if self.skips_placeholders and is_placeholder(element):
            return
        shape = multiply(_shape_frame(place), frame)
        outline = element.find("spPr/prstGeom")
        drawn = outline.get("prst") if outline is not None else None
        approximate = drawn not in _RECTANGLES or element.find("spPr/custGeom") is not None
        reader.fill(element.find("spPr"), shape, approximate=approximate)
        reader.fill(element, shape, approximate=approximate)

    def _shape(self, element: Element, frame: Six) -> None:
        if self.skips_placeholders and is_placeholder(element):
            return
        reader = self._named(element)
        shape = multiply(_shape_frame(self._place(element)), frame)
        outline = element.find("spPr/prstGeom")
        drawn = outline.get("prst") if outline is not None else None
        reader.fill(element.find("spPr"), shape, approximate=drawn not in _RECTANGLES)
        letters = {
            _named_by(blip): text
            for text in element.iterfind(".//r/rPr")
            if (blip := text.find("blipFill/blip")) is not None
        }
        for text in letters.values():
            reader.fill(text, shape, approximate=True)
        for bullet in element.iterfind(".//buBlip"):
            holder = Element("bullet")
            holder.append(_as_fill(bullet))
            reader.fill(holder, box_frame(shape[4], shape[5], 0.0, 0.0))
        if reader.on_text is not None:
            for text in element.iterfind("txbx/txbxContent"):
                reader.on_text(text, reader.hidden)

    def _group(self, element: Element, frame: Six) -> None:
        reader = self._named(element)
        properties = element.find("grpSpPr")
        transform = properties.find("xfrm") if properties is not None else None
        if transform is None:
            reader.walk(element, frame)
            return
        shape = multiply(_shape_frame(read_transform(transform)), frame)
        reader.fill(properties, shape, approximate=True)
        origin, size = _pair(transform.find("chOff"), "x", "y"), _pair(transform.find("chExt"), "cx", "cy")
        reader.walk(element, multiply(group_frame(box_frame(0, 0, 1, 1), origin, size), shape))

    def _graphic_frame(self, element: Element, frame: Six) -> None:
        reader = self._named(element)
        shape = multiply(_shape_frame(self._place(element, "xfrm")), frame)
        before = len(self.sink)
        for data in element.iterfind("graphic/graphicData"):
            reader.graphic(data, shape, frame)
        embedded = next(element.iter("oleObj"), None)
        if embedded is not None and len(self.sink) == before:
            reader._old_preview(embedded.get("spid"), shape)

    def _old_preview(self, id_: str | None, shape: Six) -> None:
        """The picture of an embedded object that stands only in the old drawing beside a slide."""
        for part in self.package.parts_of(self.part, "vmlDrawing") if id_ else ():
            root = self._other(part)
            for drawn in root.iter() if root is not None else ():
                if id_ not in (drawn.get("id"), drawn.get("o:spid")):
                    continue
                for data in drawn.iterfind("imagedata"):
                    source = data.get("r:id") or data.get("o:relid")
                    if source:
                        self._add(*source_of(self.package, part, source), shape)

    def graphic(self, data: Element, shape: Six, frame: Six) -> None:
        """What a graphic frame holds: a table, chart, diagram, embedded object or, in Word, a picture or shapes."""
        for element in data:
            if element.tag == "chart":
                self._chart(self.package.part_of(self.part, element.get("r:id")), shape)
            elif element.tag == "relIds":
                self._diagram(element.get("r:dm"), shape)
            elif element.tag == "tbl":
                for cell in element.iterfind(".//tcPr"):
                    self.fill(cell, shape, approximate=True)
            else:
                self._visit(element, frame)

    def _chart(self, part: str | None, shape: Six) -> None:
        root = self._other(part)
        if root is None or part is None:
            return
        inside = replace(self, part=part)
        for owner in root.iter():
            inside.fill(owner, shape, approximate=True)
        for drawn in self.package.parts_of(part, "chartUserShapes"):
            shapes = self._other(drawn)
            if shapes is not None:
                replace(self, part=drawn).walk(shapes, _at_corner(shape))

    def _diagram(self, id_: str | None, shape: Six) -> None:
        source = self.package.part_of(self.part, id_)
        data = self._other(source)
        said = next(data.iter("dataModelExt"), None) if data is not None else None
        part = self.package.part_of(self.part, said.get("relId")) if said is not None else None
        root = self._other(part)
        if root is not None and part is not None:
            replace(self, part=part).walk(root, _at_corner(shape))
        elif data is not None and source is not None:  # the first version kept no drawing beside the model
            inside = replace(self, part=source)
            for owner in data.iter():
                inside.fill(owner, shape, approximate=True)

    def _other(self, part: str | None) -> Element | None:
        """Root of another part; None where it does not come: what surrounds it must not suffer."""
        if part is None:
            return None
        try:
            return self.package.markup(part)
        except Refusal as refusal:
            if refusal.reason is Reason.MALFORMED_DOCUMENT:
                return None
            raise

    def _named(self, element: Element) -> Shapes:
        """The reader for what is inside ``element``: hidden and described as it says."""
        properties = next((row for child in element for row in child if row.tag in ("cNvPr", "docPr")), None)
        if properties is None:
            properties = element.find("cNvPr")
        if properties is None:
            return self
        hidden = self.hidden or properties.get("hidden") in ("1", "true")
        return replace(self, hidden=hidden, alt=properties.get("descr") or properties.get("title") or self.alt)

    def _add(self, part: str | None, reason: Reason | None, shape: Six) -> None:
        self.sink.add(
            Placed(
                kind=Kind.RASTER,
                part=part,
                reason=reason,
                frame=shape,
                window=window_of(shape),
                hidden=self.hidden,
                alt=self.alt,
            )
        )

    def _place(self, element: Element, path: str = "spPr/xfrm") -> Transform | None:
        said = read_transform(element.find(path))
        if (said is None or not any(said[0][2:])) and self.places is not None:
            return self.places(element) or said
        return said

    def _source(self, blip: Element) -> tuple[str | None, Reason | None]:
        """Part and reason of a picture; both None where nothing is named, so nothing is drawn."""
        drawn = next(blip.iter("svgBlip"), None)
        for holder, key in ((blip, "r:embed"), (blip, "r:link"), (drawn, "r:embed"), (drawn, "r:link")):
            id_ = holder.get(key) if holder is not None else None
            if id_:
                return source_of(self.package, self.part, id_)
        return None, None


def source_of(package: Package, part: str, id_: str) -> tuple[str | None, Reason | None]:
    """The part that relationship ``id_`` of ``part`` names, or why there are no bytes."""
    relation = package.relations(part).get(id_)
    if relation is None:
        return None, Reason.TRUNCATED_STREAM
    if relation.target is None or relation.external:
        return None, Reason.EXTERNAL_REFERENCE
    return relation.target, None


def first_that_draws(element: Element, sink: Sink, read: Callable[[Element], None]) -> None:
    """Read the branches of an alternative, in order, until one has drawn a picture."""
    before = len(sink)
    for branch in element:
        read(branch)
        if len(sink) > before:
            return


def is_placeholder(element: Element) -> bool:
    """Whether a shape or picture is a placeholder of a slide, layout or master."""
    return placeholder_of(element) is not None


def placeholder_of(element: Element) -> Element | None:
    """The placeholder that a shape or picture fills."""
    return next((found for child in element if (found := child.find("nvPr/ph")) is not None), None)


def read_transform(element: Element | None) -> Transform | None:
    """An ``xfrm``, or None where it says no size."""
    if element is None or element.find("ext") is None:
        return None
    x, y = _pair(element.find("off"), "x", "y")
    width, height = _pair(element.find("ext"), "cx", "cy")
    degrees = number(element.get("rot")) / 60_000
    return (x, y, width, height), degrees, _yes(element.get("flipH")), _yes(element.get("flipV"))


def number(text: str | None) -> float:
    """A number of the markup; 0 for what is none or is beyond all measure."""
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if abs(value) < 1e12 else 0.0


def _shape_frame(place: Transform | None) -> Six:
    if place is None:
        return box_frame(0, 0, 0, 0)
    box, degrees, flip_x, flip_y = place
    return turned_frame(box, degrees, flip_x=flip_x, flip_y=flip_y)


def _at_corner(shape: Six) -> Six:
    """EMU from the top left corner of ``shape``."""
    return 1 / 12_700, 0.0, 0.0, 1 / 12_700, shape[4], shape[5]


def _named_by(blip: Element) -> str | None:
    return blip.get("r:embed") or blip.get("r:link")


def _as_fill(bullet: Element) -> Element:
    fill = Element("blipFill")
    fill.extend(bullet)
    return fill


def _crop(element: Element | None) -> Crop:
    if element is None:
        return UNCUT
    left, top, right, bottom = (_share(element.get(side)) for side in ("l", "t", "r", "b"))
    return left, top, right, bottom


def _share(text: str | None) -> float:
    """A percentage: thousandths of a percent, or with a percent sign as the strict form writes it."""
    if text is not None and text.endswith("%"):
        return number(text[:-1]) / 100
    return number(text) / 100_000


def _pair(element: Element | None, first: str, second: str) -> tuple[float, float]:
    if element is None:
        return 0.0, 0.0
    return number(element.get(first)), number(element.get(second))


def _yes(text: str | None) -> bool:
    return text in ("1", "true", "on")
