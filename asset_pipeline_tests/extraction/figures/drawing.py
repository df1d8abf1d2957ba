"""A small pen for content streams, in the habits of the programs whose pages the tests imitate."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pikepdf
from pikepdf import Array, Dictionary, Name

Box = tuple[float, float, float, float]

_WORDS = (
    *("the", "survey", "of", "river", "banks", "shows", "that", "reed", "beds", "return", "where", "cattle", "are"),
    *("kept", "away", "from", "the", "water", "and", "volunteers", "count", "nests", "each", "spring", "along"),
    *("marked", "stretches", "between", "old", "weirs", "and", "new", "fish", "ladders"),
)
_K = 0.5523


@dataclass
class Pen:
    """Collects operators; coordinates in points from the lower left."""

    operators: list[str] = field(default_factory=list)
    words: random.Random = field(default_factory=lambda: random.Random(7))

    def put(self, *operators: str) -> Pen:
        self.operators.extend(operators)
        return self

    def fill(self, red: float, green: float, blue: float) -> Pen:
        return self.put(f"{red:.3f} {green:.3f} {blue:.3f} rg")

    def stroke(self, gray: float, width: float = 0.75) -> Pen:
        return self.put(f"{gray} G {width} w")

    def bar(self, x: float, y: float, width: float, height: float, paint: str = "f") -> Pen:
        return self.put(f"{x:.2f} {y:.2f} {width:.2f} {height:.2f} re {paint}")

    def line(self, x: float, y: float, u: float, v: float) -> Pen:
        return self.put(f"{x:.2f} {y:.2f} m {u:.2f} {v:.2f} l S")

    def path(self, points: list[tuple[float, float]], paint: str = "S") -> Pen:
        (x, y), *rest = points
        return self.put(f"{x:.2f} {y:.2f} m " + " ".join(f"{u:.2f} {v:.2f} l" for u, v in rest) + f" {paint}")

    def circle(self, x: float, y: float, r: float, paint: str = "f", ratio: float = 1.0) -> Pen:
        s = r * ratio
        k, h = r * _K, s * _K
        return self.put(
            f"{x + r:.2f} {y:.2f} m {x + r:.2f} {y + h:.2f} {x + k:.2f} {y + s:.2f} {x:.2f} {y + s:.2f} c "
            f"{x - k:.2f} {y + s:.2f} {x - r:.2f} {y + h:.2f} {x - r:.2f} {y:.2f} c "
            f"{x - r:.2f} {y - h:.2f} {x - k:.2f} {y - s:.2f} {x:.2f} {y - s:.2f} c "
            f"{x + k:.2f} {y - s:.2f} {x + r:.2f} {y - h:.2f} {x + r:.2f} {y:.2f} c h {paint}"
        )

    def round_box(self, x: float, y: float, w: float, h: float, r: float = 6, paint: str = "B") -> Pen:
        k = r * (1 - _K)
        return self.put(
            f"{x + r} {y} m {x + w - r} {y} l {x + w - k} {y} {x + w} {y + k} {x + w} {y + r} c "
            f"{x + w} {y + h - r} l {x + w} {y + h - k} {x + w - k} {y + h} {x + w - r} {y + h} c "
            f"{x + r} {y + h} l {x + k} {y + h} {x} {y + h - k} {x} {y + h - r} c "
            f"{x} {y + r} l {x} {y + k} {x + k} {y} {x + r} {y} c h {paint}"
        )

    def slice(self, x: float, y: float, r: float, start: float, end: float) -> Pen:
        """A sector of a pie between two angles in degrees, as arcs of at most 90 degrees."""
        a, b = math.radians(start), math.radians(end)
        parts = [f"{x:.2f} {y:.2f} m {x + r * math.cos(a):.2f} {y + r * math.sin(a):.2f} l"]
        steps = max(1, math.ceil((end - start) / 90))
        for number in range(steps):
            s, e = a + (b - a) * number / steps, a + (b - a) * (number + 1) / steps
            k = 4 / 3 * math.tan((e - s) / 4) * r
            points = (
                (x + r * math.cos(s) - k * math.sin(s), y + r * math.sin(s) + k * math.cos(s)),
                (x + r * math.cos(e) + k * math.sin(e), y + r * math.sin(e) - k * math.cos(e)),
                (x + r * math.cos(e), y + r * math.sin(e)),
            )
            parts.append(" ".join(f"{u:.2f} {v:.2f}" for u, v in points) + " c")
        return self.put(" ".join(parts) + " h f")

    def arrow(self, x: float, y: float, u: float, v: float, head: float = 5) -> Pen:
        angle = math.atan2(v - y, u - x)
        wings = [(u - head * math.cos(angle + t), v - head * math.sin(angle + t)) for t in (0.4, -0.4)]
        return self.line(x, y, u, v).path([(u, v), *wings], "h f")

    def text(self, x: float, y: float, words: str, size: float = 8, turn: bool = False) -> Pen:
        place = f"0 1 -1 0 {x:.2f} {y:.2f}" if turn else f"1 0 0 1 {x:.2f} {y:.2f}"
        return self.put(f"0 g BT /F1 {size} Tf {place} Tm ({words}) Tj ET")

    def paragraph(self, x: float, top: float, width: float, lines: int, size: float = 9) -> Pen:
        for number in range(lines):
            line = ""
            while len(line) * size * 0.5 < width * (0.5 if number == lines - 1 else 0.93):
                line += self.words.choice(_WORDS) + " "
            self.text(x, top - (number + 1) * size * 1.25, line.strip(), size)
        return self

    def bytes(self) -> bytes:
        return "\n".join(self.operators).encode()


def add_page(
    pdf: pikepdf.Pdf,
    content: bytes,
    *,
    size: tuple[float, float] = (595, 842),
    xobjects: dict[str, pikepdf.Object] | None = None,
    shadings: dict[str, pikepdf.Object] | None = None,
    **entries: object,
) -> None:
    """A page of ``content`` with Helvetica as F1 and whatever else it names."""
    page = pdf.add_blank_page(page_size=size)
    page.obj.Resources = resources(xobjects, shadings)
    page.obj.Contents = pdf.make_stream(content)
    for key, value in entries.items():
        page.obj["/" + key] = Array(value) if isinstance(value, list) else value


def resources(
    xobjects: dict[str, pikepdf.Object] | None = None, shadings: dict[str, pikepdf.Object] | None = None
) -> Dictionary:
    font = Dictionary(Type=Name.Font, Subtype=Name.Type1, BaseFont=Name.Helvetica)
    return Dictionary(
        Font=Dictionary(F1=font), XObject=Dictionary(**(xobjects or {})), Shading=Dictionary(**(shadings or {}))
    )


def form(pdf: pikepdf.Pdf, content: bytes, box: list[float]) -> pikepdf.Object:
    return pdf.make_stream(content, Type=Name.XObject, Subtype=Name.Form, BBox=Array(box), Resources=resources())


def photo(pdf: pikepdf.Pdf, width: int = 60, height: int = 40) -> pikepdf.Object:
    noise = random.Random(3)
    data = bytes(noise.randrange(40, 200) for _ in range(width * height))
    return pdf.make_stream(
        data,
        Type=Name.XObject,
        Subtype=Name.Image,
        Width=width,
        Height=height,
        ColorSpace=Name.DeviceGray,
        BitsPerComponent=8,
    )


def axial(box: Box) -> Dictionary:
    """A shading from blue to pale blue along ``box``."""
    blend = Dictionary(FunctionType=2, Domain=[0, 1], C0=[0.1, 0.3, 0.6], C1=[0.7, 0.8, 1.0], N=1)
    return Dictionary(
        ShadingType=2, ColorSpace=Name.DeviceRGB, Coords=Array(list(box)), Function=blend, Extend=[True, True]
    )
