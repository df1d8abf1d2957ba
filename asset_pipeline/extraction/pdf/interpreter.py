"""What the operators of a content stream mean, as far as they place, cut, hide or colour a picture.

One ``Interpreter`` walks one content stream: graphics state, current path, marked content. What becomes
of a picture, form or pattern that it meets is the business of ``walker``, which stands behind
``Canvas``. Operators in a wrong place and operands of a wrong kind are passed over, as viewers do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.content import ContentReader, floats, last_name, parse_object, resource_name
from asset_pipeline.extraction.pdf.draws import PageDraws
from asset_pipeline.extraction.pdf.geometry import WHOLE, multiply, tame
from asset_pipeline.extraction.pdf.graphics import Clip, Colour, Path, State, clip_to_box, veils_after
from asset_pipeline.extraction.pdf.inline import InlinePicture, read_inline
from asset_pipeline.extraction.pdf.inline_data import EndFinder
from asset_pipeline.extraction.pdf.patterns import Tiling
from asset_pipeline.extraction.pdf.resources import Scope, entry, is_name, is_stencil, number
from asset_pipeline.model import Flag, Six
from asset_pipeline.reasons import Reason

_DEEPEST = 10_000


@dataclass(frozen=True, slots=True)
class Context:
    """What holds for a stretch of content besides the graphics state.

    ``base`` is the matrix at the start of the content stream; ``form`` the object number of the form it
    belongs to; ``tiling`` is set inside patterns; ``veiled`` in groups that let something through;
    ``structure`` and ``said`` are what tags say about the form or marked content around (see ``Draw``).
    """

    scope: Scope
    base: Six
    form: int | None = None
    depth: int = 0
    hidden: bool = False
    mcid: int | None = None
    mcid_form: int | None = None
    flags: frozenset[Flag] = frozenset()
    tiling: Tiling | None = None
    veiled: bool = False
    structure: int | None = None
    said: str | None = None


@dataclass(slots=True)
class Budget:
    """What is left of the page's limits on content (REQUIREMENTS R3.3)."""

    operators: int
    content_bytes: int


class Canvas(Protocol):
    """What an interpreter tells of."""

    budget: Budget
    result: PageDraws

    def shows(self, layer: Any) -> bool:
        """Whether content of ``layer`` is visible."""
        ...

    def draw_picture(self, image: pikepdf.Stream, state: State, context: Context) -> None:
        """A picture object is drawn."""
        ...

    def miss(self) -> None:
        """Something is drawn that can no longer be told from others."""
        ...

    def fill_path(self, path: Path, even_odd: bool, state: State, context: Context) -> None:
        """A path is filled with a colour."""
        ...

    def draw_inline(self, picture: InlinePicture, at: int, state: State, context: Context) -> None:
        """The inline picture that ends at ``at`` is drawn."""
        ...

    def enter_form(self, form: pikepdf.Stream, state: State, context: Context) -> None:
        """A form is drawn."""
        ...

    def enter_soft_mask(self, group: pikepdf.Stream, state: State, context: Context) -> None:
        """A soft mask made of a group is set."""
        ...

    def use_pattern(self, colour: Colour, area: Clip | None, state: State, context: Context) -> None:
        """Something within ``area`` (None: not known) is painted with a pattern."""
        ...


class Interpreter:
    """Walks one content stream from its first operator to its last."""

    def __init__(self, canvas: Canvas, state: State, context: Context) -> None:
        self.canvas = canvas
        self.state = state
        self.context = context
        self.path = Path()
        self.clipping = False
        self.text_clips = False
        self.ends = EndFinder()
        self.saved: list[State] = []
        self.is_saved = False
        self.marks: list[Context] = []
        self.unsaved = 0
        self.unmarked = 0

    def run(self, data: bytes) -> None:
        """Interpret ``data``. Raises Refusal when the page's budget of operators is used up."""
        budget, reader, path = self.canvas.budget, ContentReader(data), self.path
        for operator, numbers, operands in reader:
            budget.operators -= 1
            if budget.operators < 0:
                raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED)
            if operator in _PATH:
                path.add(operator, b" ".join((*operands, numbers)) if operands else numbers)
                continue
            handler = _HANDLERS.get(operator)
            if handler is not None:
                handler(self, numbers, operands)
            elif operator == b"BI":
                self._inline(reader)

    def _inline(self, reader: ContentReader) -> None:
        picture, reader.position = read_inline(reader.data, reader.position, self.context.scope, self.ends)
        if picture is not None:
            self.canvas.draw_inline(picture, reader.position, self.state, self.context)
            if picture.is_stencil:
                self._paint_with_pattern()

    def _save(self, _numbers: bytes, _operands: list[bytes]) -> None:
        if len(self.saved) < _DEEPEST:
            self.saved.append(self.state)
            self.is_saved = True
        else:
            self.unsaved += 1

    def _restore(self, _numbers: bytes, _operands: list[bytes]) -> None:
        if self.unsaved:
            self.unsaved -= 1
        elif self.saved:
            self.state = self.saved.pop()
            self.is_saved = True  # perhaps: saved twice, it is still there once

    def _changing(self) -> State:
        """The state to write to. Copied only here: much is saved that nothing changes."""
        if self.is_saved:
            self.state = self.state.copy()
            self.is_saved = False
        return self.state

    def _concatenate(self, numbers: bytes, operands: list[bytes]) -> None:
        values = floats(b" ".join((*operands, numbers)) if operands else numbers)
        if len(values) >= 6:
            a, b, c, d, e, f = values[-6:]
            self._changing().ctm = tame(multiply((a, b, c, d, e, f), self.state.ctm))

    def _set_graphics_state(self, numbers: bytes, operands: list[bytes]) -> None:
        name = resource_name(numbers, operands)
        parameters = self.context.scope.find("/ExtGState", name) if name else None
        width = entry(parameters, "/LW")
        if width is not None:
            self._changing().line_width = number(width, 1.0)
        self._changing().veils = veils_after(self.state.veils, parameters)
        group = entry(entry(parameters, "/SMask"), "/G")
        if isinstance(group, pikepdf.Stream):
            self.canvas.enter_soft_mask(group, self.state, self.context)

    def _set_line_width(self, numbers: bytes, _operands: list[bytes]) -> None:
        values = floats(numbers)
        if values:
            self._changing().line_width = values[-1]

    def _draw_object(self, numbers: bytes, operands: list[bytes]) -> None:
        name = resource_name(numbers, operands)
        thing = self.context.scope.find("/XObject", name) if name else None
        if not isinstance(thing, pikepdf.Stream):
            if thing is None and name:
                self.canvas.result.missed = True
                if b"#" in name and self.context.scope.may_hide("/XObject", name):
                    self.canvas.miss()
            return
        subtype = thing.get("/Subtype")
        context = self.context
        if not context.hidden and not self.canvas.shows(thing.get("/OC")):
            context = replace(context, hidden=True)
        if is_name(subtype, "/Image"):
            self.canvas.draw_picture(thing, self.state, context)
            if is_stencil(thing):
                self._paint_with_pattern()
        elif is_name(subtype, "/Form"):
            self.canvas.enter_form(thing, self.state, context)

    def _paint_with_pattern(self) -> None:
        if self.state.fill.is_pattern:
            self.canvas.use_pattern(self.state.fill, clip_to_box(WHOLE, self.state.ctm), self.state, self.context)

    def _paint(self, fill: bool, stroke: bool, even_odd: bool = False) -> None:
        state = self.state
        if fill or stroke:
            self.canvas.result.paints = True
        if fill and state.fill.is_pattern:
            area = self.path.clip(state.ctm)
            if area is not None:
                self.canvas.use_pattern(state.fill, area, state, self.context)
        elif fill:
            self.canvas.fill_path(self.path, even_odd, state, self.context)
        if stroke and state.stroke.is_pattern:
            scale = math.sqrt(abs(state.ctm[0] * state.ctm[3] - state.ctm[1] * state.ctm[2]))
            box = self.path.box(state.ctm, max(0.5, state.line_width * scale / 2))
            if box is not None:
                self.canvas.use_pattern(state.stroke, Clip(box, approximate=True), state, self.context)
        if self.clipping:
            clip = self.path.clip(state.ctm)
            if clip is not None:
                self._changing().clip = state.clip.within(clip)
            self.clipping = False
        self.path.clear()

    def _clip(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self.clipping = True

    def _fill(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=True, stroke=False)

    def _fill_even_odd(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=True, stroke=False, even_odd=True)

    def _stroke(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=False, stroke=True)

    def _fill_and_stroke(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=True, stroke=True)

    def _fill_even_odd_and_stroke(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=True, stroke=True, even_odd=True)

    def _end_path(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self._paint(fill=False, stroke=False)

    def _shade(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self.canvas.result.paints = True

    def _begin_text(self, _numbers: bytes, _operands: list[bytes]) -> None:
        self.text_clips = False

    def _end_text(self, _numbers: bytes, _operands: list[bytes]) -> None:
        if self.text_clips:
            self._changing().clip = self.state.clip.vaguely()
            self.text_clips = False

    def _set_text_mode(self, numbers: bytes, _operands: list[bytes]) -> None:
        values = floats(numbers)
        if values and values[-1] in range(8):
            self._changing().text_mode = int(values[-1])

    def _show_text(self, _numbers: bytes, _operands: list[bytes]) -> None:
        state = self.state
        self.canvas.result.writes = True
        if state.text_mode >= 4:
            self.text_clips = True
        if state.fill.is_pattern and state.text_mode % 4 in (0, 2):
            self.canvas.use_pattern(state.fill, None, state, self.context)
        if state.stroke.is_pattern and state.text_mode % 4 in (1, 2):
            self.canvas.use_pattern(state.stroke, None, state, self.context)

    def _begin_marked(self, _numbers: bytes, operands: list[bytes]) -> None:
        if len(self.marks) >= _DEEPEST:
            self.unmarked += 1
            return
        self.marks.append(self.context)
        if len(operands) >= 2:
            self.context = self._marked(operands[-2], operands[-1])

    def _marked(self, tag: bytes, written: bytes) -> Context:
        properties = (
            self.context.scope.find("/Properties", written) if written.startswith(b"/") else parse_object(written)
        )
        context = self.context
        if tag == b"/OC" and not context.hidden and not self.canvas.shows(properties):
            context = replace(context, hidden=True)
        said = entry(properties, "/Alt") or entry(properties, "/ActualText")
        if isinstance(said, pikepdf.String):
            context = replace(context, said=str(said).strip() or None)
        mcid = entry(properties, "/MCID")
        if isinstance(mcid, int) and not isinstance(mcid, bool):
            context = replace(context, mcid=mcid, mcid_form=context.form)
        return context

    def _end_marked(self, _numbers: bytes, _operands: list[bytes]) -> None:
        if self.unmarked:
            self.unmarked -= 1
        elif self.marks:
            self.context = self.marks.pop()

    def _colour(self, space: bytes, components: bytes | None = None, pattern: bytes | None = None) -> Colour:
        return Colour(self.context.scope, self.context.base, space, components, pattern)


Handler = Callable[[Interpreter, bytes, list[bytes]], None]


def _device(attribute: str, space: bytes) -> Handler:
    def handle(self: Interpreter, numbers: bytes, _operands: list[bytes]) -> None:
        setattr(self._changing(), attribute, self._colour(space, numbers))

    return handle


def _space(attribute: str) -> Handler:
    def handle(self: Interpreter, _numbers: bytes, operands: list[bytes]) -> None:
        name = last_name(operands)
        if name is not None:
            setattr(self._changing(), attribute, self._colour(name))

    return handle


def _components(attribute: str) -> Handler:
    def handle(self: Interpreter, numbers: bytes, operands: list[bytes]) -> None:
        before: Colour = getattr(self.state, attribute)
        pattern = last_name(operands)
        given = b" ".join((*operands[: -1 if pattern else None], numbers)) if operands else numbers
        after = self._colour(before.space, given, pattern)
        after.scope = before.scope if pattern is None else after.scope
        setattr(self._changing(), attribute, after)

    return handle


_PATH = frozenset((b"re", b"m", b"l", b"c", b"v", b"y", b"h"))
_HANDLERS: dict[bytes, Handler] = {
    b"q": Interpreter._save,
    b"Q": Interpreter._restore,
    b"cm": Interpreter._concatenate,
    b"gs": Interpreter._set_graphics_state,
    b"w": Interpreter._set_line_width,
    b"Do": Interpreter._draw_object,
    b"W": Interpreter._clip,
    b"W*": Interpreter._clip,
    b"n": Interpreter._end_path,
    **dict.fromkeys((b"f", b"F"), Interpreter._fill),
    b"f*": Interpreter._fill_even_odd,
    **dict.fromkeys((b"S", b"s"), Interpreter._stroke),
    **dict.fromkeys((b"B", b"b"), Interpreter._fill_and_stroke),
    **dict.fromkeys((b"B*", b"b*"), Interpreter._fill_even_odd_and_stroke),
    b"sh": Interpreter._shade,
    b"BT": Interpreter._begin_text,
    b"ET": Interpreter._end_text,
    b"Tr": Interpreter._set_text_mode,
    **dict.fromkeys((b"Tj", b"TJ", b"'", b'"'), Interpreter._show_text),
    **dict.fromkeys((b"BMC", b"BDC"), Interpreter._begin_marked),
    b"EMC": Interpreter._end_marked,
    b"g": _device("fill", b"/DeviceGray"),
    b"G": _device("stroke", b"/DeviceGray"),
    b"rg": _device("fill", b"/DeviceRGB"),
    b"RG": _device("stroke", b"/DeviceRGB"),
    b"k": _device("fill", b"/DeviceCMYK"),
    b"K": _device("stroke", b"/DeviceCMYK"),
    b"cs": _space("fill"),
    b"CS": _space("stroke"),
    **dict.fromkeys((b"sc", b"scn"), _components("fill")),
    **dict.fromkeys((b"SC", b"SCN"), _components("stroke")),
}
