"""The texts of a page as lines with boxes, as PDFium reads them.

A line ends where PDFium ends it, and at gaps as wide as those between columns. Boxes are in a frame in
which the text of the line stands upright, so that a page of turned text reads like any other. Texts are
read only where a line of the page may begin a caption; nothing of them is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pypdfium2
from pypdfium2 import raw

from asset_pipeline.extraction.pdf.geometry import as_displayed
from asset_pipeline.model import Four

_MOST_CHARACTERS = 20_000
_COLUMN_GAP = 1.6
"""In heights of the line: wider gaps part columns."""

_HYPHEN = "\x02"
_FAR = 1e6


@dataclass(frozen=True, slots=True)
class Line:
    """One line: text, box (left, top, right, bottom) in the frame of its ``turn`` (see ``framed``), its marks."""

    text: str
    box: Four
    turn: int

    @property
    def height(self) -> float:
        return self.box[3] - self.box[1]


@dataclass(slots=True)
class _Glyph:
    character: str
    box: Four | None
    """In user space; None for what PDFium made up: spaces and line ends."""


def framed(box: Four, crop: Four, turn: int) -> Four:
    """``box`` of user space as seen on a page turned so that text of that ``turn`` stands upright."""
    return as_displayed(box, crop, turn)


def read_lines(page: Any, crop: Four, may_begin: Callable[[str], bool]) -> list[Line]:
    """The lines of ``page`` (a PDFium page); none where its text does not satisfy ``may_begin``."""
    texts = page.get_textpage()
    try:
        count = min(raw.FPDFText_CountChars(texts.raw), _MOST_CHARACTERS)
        if count <= 0 or not may_begin(texts.get_text_range(0, count)):
            return []
        lines: list[Line] = []
        run: list[_Glyph] = []
        for glyph in _glyphs(texts, count):
            if glyph.character in "\r\n":
                lines += _lines_of(run, crop)
                run = []
            else:
                run.append(glyph)
        return lines + _lines_of(run, crop)
    except (pypdfium2.PdfiumError, ValueError):
        return []
    finally:
        texts.close()


def read_marked(page: Any, marks: Collection[int]) -> str:
    """The text of ``page`` inside marked content with one of the numbers ``marks``."""
    texts = page.get_textpage()
    try:
        count = min(raw.FPDFText_CountChars(texts.raw), _MOST_CHARACTERS)
        kept: list[str] = []
        inside = False
        for index in range(max(0, count)):
            character = _character(texts, index)
            if not raw.FPDFText_IsGenerated(texts.raw, index):
                thing = raw.FPDFText_GetTextObject(texts.raw, index)
                inside = bool(thing) and raw.FPDFPageObj_GetMarkedContentID(thing) in marks
            if inside:
                kept.append(character)
        return "".join(kept)
    finally:
        texts.close()


def joined(texts: list[str]) -> str:
    """Lines as running text: one space between words, words that a line end parts put together."""
    whole = ""
    for text in texts:
        whole += text if not whole or whole.endswith(_HYPHEN) else f" {text}"
        if whole.endswith(_HYPHEN):
            whole = whole[:-1] + _HYPHEN
    clean = "".join(" " if letter.isspace() else letter for letter in whole.replace(_HYPHEN, ""))
    return " ".join("".join(letter for letter in clean if letter.isprintable()).split())


def _character(texts: Any, index: int) -> str:
    code = raw.FPDFText_GetUnicode(texts.raw, index)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else " "


def _glyphs(texts: Any, count: int) -> list[_Glyph]:
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    glyphs = []
    for index in range(count):
        character = _character(texts, index)
        box = None
        if not character.isspace() and raw.FPDFText_GetCharBox(texts.raw, index, left, right, bottom, top):
            box = left.value, bottom.value, right.value, top.value
            if not (-_FAR < min(box) <= max(box) < _FAR) or box[2] < box[0] or box[3] < box[1]:
                box = None
        glyphs.append(_Glyph(character, box))
    return glyphs


def _lines_of(run: list[_Glyph], crop: Four) -> list[Line]:
    placed = [glyph.box for glyph in run if glyph.box is not None]
    if not placed:
        return []
    turn = _turn_of(placed)
    boxes = [framed(box, crop, turn) for box in placed]
    height = max(1.0, sorted(box[3] - box[1] for box in boxes)[len(boxes) * 3 // 4])
    building = _Building(turn)
    lines = []
    for glyph in run:
        box = None if glyph.box is None else framed(glyph.box, crop, turn)
        if box is not None and building.right is not None and box[0] - building.right > _COLUMN_GAP * height:
            lines.append(building.line())
            building = _Building(turn)
        building.add(glyph.character, box)
    lines.append(building.line())
    return [line for line in lines if line is not None]


@dataclass(slots=True)
class _Building:
    """A line while its characters come."""

    turn: int
    characters: list[str] = field(default_factory=list)
    boxes: list[Four] = field(default_factory=list)
    right: float | None = None

    def add(self, character: str, box: Four | None) -> None:
        """One more character; ``box`` is None for spaces."""
        self.characters.append(character)
        if box is not None:
            self.boxes.append(box)
            self.right = box[2]

    def line(self) -> Line | None:
        """The line, None when nothing is printed."""
        if not self.boxes:
            return None
        lefts, tops, rights, bottoms = zip(*self.boxes, strict=True)
        box = (min(lefts), min(tops), max(rights), max(bottoms))
        return Line("".join(self.characters).strip(), box, self.turn)


def _turn_of(boxes: list[Four]) -> int:
    """The /Rotate that would make text along these boxes run from left to right."""
    (ax, ay), (bx, by) = (((box[0] + box[2]) / 2, (box[1] + box[3]) / 2) for box in (boxes[0], boxes[-1]))
    across, up = bx - ax, by - ay
    if abs(across) >= abs(up):
        return 0 if across >= 0 else 180
    return 90 if up > 0 else 270
