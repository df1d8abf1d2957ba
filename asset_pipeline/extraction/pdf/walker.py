"""The walk over one page: every picture it draws, in paint order, where it lies and whether it can be seen.

The heart of extraction, our own because no library lists all placements (ENGINES: each loses pictures
in forms, patterns, annotations or under one name). Identity is the object, never the name. Forms,
patterns, soft-mask groups and annotations are entered here; operators belong in ``interpreter``. A
pattern used by the page counts once a picture, however often and in however many tiles it is painted.
Glyphs of Type 3 fonts are text: fonts are never entered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.annotations import appearances
from asset_pipeline.extraction.pdf.draws import Draw, PageDraws
from asset_pipeline.extraction.pdf.fills import fill_of
from asset_pipeline.extraction.pdf.geometry import (
    IDENTITY,
    UNIT_SQUARE,
    WHOLE,
    area_of,
    as_displayed,
    bounds,
    corners,
    intersect,
    is_mirrored,
    is_upright,
    move,
    multiply,
    orientation,
    overlap,
    tame,
    unit_crop,
)
from asset_pipeline.extraction.pdf.graphics import Clip, Colour, Path, State, clip_to_box
from asset_pipeline.extraction.pdf.inline import InlinePicture
from asset_pipeline.extraction.pdf.interpreter import Budget, Context, Interpreter
from asset_pipeline.extraction.pdf.labels import page_label
from asset_pipeline.extraction.pdf.optional_content import Layers
from asset_pipeline.extraction.pdf.page_content import expand_content
from asset_pipeline.extraction.pdf.page_frame import PageFrame, read_frame
from asset_pipeline.extraction.pdf.patterns import Tiling, lay_tiles
from asset_pipeline.extraction.pdf.resources import Key, Scope, box_of, entry, is_stencil, key_of, matrix_of, number
from asset_pipeline.model import Flag, Four, Kind, Six
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason

_NOTHING = 1e-9
_ALL = 1 - 1e-6

# Fills over pictures are facts for a flag, so a page made of very many costs no more than this.
_MOST_FILLS = 5_000
_MOST_LOOKS = 50_000
_MOST_RETURNS = 64


def walk_page(pdf: pikepdf.Pdf, page_number: int, limits: Limits) -> PageDraws:
    """All pictures that page ``page_number`` (from 1) draws. Never raises for what the page draws."""
    page = pdf.pages[page_number - 1].obj
    frame = read_frame(page)
    result = PageDraws(
        page=page_number, label=page_label(pdf, page_number - 1), rotate=frame.rotate, crop_box=frame.crop
    )
    walk = _PageWalk(pdf, frame, limits, result)
    try:
        walk.walk_content(page)
        walk.walk_annotations(page)
    except Refusal as refusal:  # a budget: what was found stays, but is not the whole account
        result.reason, result.counted = refusal.reason, False
    except pikepdf.PikepdfError:
        result.reason = Reason.MALFORMED_STREAM
    except RecursionError:
        result.reason = Reason.STRUCTURE_TOO_DEEP
    return result


@dataclass(frozen=True, slots=True)
class _Use:
    """A pattern painted somewhere: with which colour, onto what, how much of that is seen, in which context."""

    pattern: pikepdf.Stream
    colour: Colour
    area: Clip
    seen: Clip
    context: Context


class _PageWalk:
    """One page's walk: what was found, what is left of the budget, and what is being drawn right now."""

    def __init__(self, pdf: pikepdf.Pdf, frame: PageFrame, limits: Limits, result: PageDraws) -> None:
        self.budget = Budget(limits.operators, limits.content_bytes)
        self._pdf = pdf
        self._frame = frame
        self._limits = limits
        self.result = result
        self._scope = Scope(frame.resources)
        self._layers = Layers(pdf)
        self._active: set[Key] = set()
        self._scopes: dict[Key, Scope] = {}
        self._contents: dict[Key, bytes] = {}
        self._barren: set[tuple[Key, int]] = set()
        self._masks: set[tuple[Key, Six]] = set()
        self._inline: dict[tuple[int | None, int, int], pikepdf.Stream] = {}
        self._drawn_patterns: set[Key] = set()
        self._unseen_patterns: dict[Key, _Use] = {}
        self._activity = 0
        self._filled = 0
        self._covering: set[Key] = set()
        self._drawn_box: Four | None = None
        self._looks, self._returns = _MOST_LOOKS, _MOST_RETURNS

    def walk_content(self, page: pikepdf.Object) -> None:
        """The page's own content, then the patterns that were only used where nothing can be seen."""
        data, fault = expand_content(entry(page, "/Contents"), self.budget.content_bytes, self._limits)
        self._note_fault(fault)
        self._run(data, State.initial(IDENTITY, Clip(self._frame.crop), self._scope), Context(self._scope, IDENTITY))
        while self._unseen_patterns:
            key, use = self._unseen_patterns.popitem()
            self._drawn_patterns.add(key)
            self._draw_pattern(key, use)

    def walk_annotations(self, page: pikepdf.Object) -> None:
        """The appearances of annotations, painted over the content."""
        context = Context(self._scope, IDENTITY)
        for appearance in appearances(page, self._frame.rotate):
            state = State.initial(appearance.matrix, Clip(self._frame.crop), self._scope)
            hidden = appearance.hidden or not self.shows(appearance.layer)
            self.enter_form(appearance.form, state, replace(context, hidden=hidden, structure=appearance.structure))

    def shows(self, layer: Any) -> bool:
        """Whether content of ``layer`` is visible."""
        return layer is None or self._layers.shows(layer)

    def draw_picture(self, image: pikepdf.Stream, state: State, context: Context) -> None:
        """A picture object is drawn."""
        stencil = is_stencil(image)
        external = image.get("/F")
        outside = external is not None and not isinstance(external, (pikepdf.Name, pikepdf.Array))
        self._draw(
            image,
            image.objgen[0] or None,
            Kind.STENCIL if stencil else Kind.RASTER,
            state,
            context,
            stencil=stencil,
            refused=Reason.EXTERNAL_REFERENCE if outside else None,
        )

    def draw_inline(self, picture: InlinePicture, at: int, state: State, context: Context) -> None:
        """The inline picture that ends at ``at`` is drawn; in a form drawn twice it is one stream."""
        place = (context.form, at, id(context.scope))
        stream = self._inline.get(place)
        if stream is None:
            stream = self._inline[place] = picture.wrap(self._pdf)
        stencil = picture.is_stencil
        self._draw(stream, None, Kind.STENCIL if stencil else Kind.INLINE, state, context, stencil=stencil)

    def enter_form(self, form: pikepdf.Stream, state: State, context: Context) -> None:
        """A form is drawn: within its box, with its own resources or those around it."""
        key = _identity(form)
        scope = self._scope_inside(form, key, context.scope)
        plain = not state.fill.is_pattern and not state.stroke.is_pattern
        if plain and (key, id(scope)) in self._barren and not self._may_cover(key):
            return
        before, fills = self._activity, self._filled
        if state.veils and entry(form, "/Group") is not None:
            context = replace(context, veiled=True)
        structure = entry(form, "/StructParent")
        if isinstance(structure, int) and not isinstance(structure, bool):
            context = replace(context, structure=structure)
        inner = state.copy()
        inner.ctm = tame(multiply(matrix_of(form), state.ctm))
        self._enter(form, key, inner, replace(context, scope=scope, base=inner.ctm))
        if plain and self._activity == before:
            self._barren.add((key, id(scope)))
            if self._filled > fills:
                self._covering.add(key)

    def miss(self) -> None:
        """Something is drawn that cannot be found again: viewers show it, so the page is not whole."""
        self._activity += 1
        self._note_fault(Reason.MALFORMED_DOCUMENT)

    def fill_path(self, path: Path, even_odd: bool, state: State, context: Context) -> None:
        """A path is filled with a colour: kept when it may hide some of a picture drawn before."""
        self._filled += 1
        around = self._drawn_box
        veiled = state.veils or context.veiled or context.hidden or context.tiling or context.flags
        if around is None or veiled or state.clip.approximate or self._looks <= 0:
            return
        self._looks -= 1
        fill = fill_of(path, state.ctm, state.clip, len(self.result.draws), even_odd, around)
        if fill is not None and len(self.result.fills) < _MOST_FILLS:
            self._activity += 1
            self.result.fills.append(fill)

    def _may_cover(self, key: Key) -> bool:
        """Whether a form without pictures is worth another walk, for what it paints over pictures."""
        if key not in self._covering or self._drawn_box is None or self._returns <= 0:
            return False
        self._returns -= 1
        return True

    def enter_soft_mask(self, group: pikepdf.Stream, state: State, context: Context) -> None:
        """A soft mask made of a group is set; the same one in the same place counts once."""
        key = _identity(group)
        self._activity += 1
        if (key, state.ctm) in self._masks:
            return
        self._masks.add((key, state.ctm))
        scope = self._scope_inside(group, key, context.scope)
        inner = State.initial(tame(multiply(matrix_of(group), state.ctm)), state.clip, scope)
        flags = context.flags | {Flag.SOFT_MASK}
        self._enter(group, key, inner, replace(context, scope=scope, base=inner.ctm, flags=flags))

    def use_pattern(self, colour: Colour, area: Clip | None, state: State, context: Context) -> None:
        """Something is painted with a pattern: drawn where it is first seen, or at the end if it never is."""
        pattern = colour.scope.find("/Pattern", colour.pattern) if colour.pattern else None
        if not isinstance(pattern, pikepdf.Stream) or pattern.get("/PatternType") == 2:
            return
        key = _identity(pattern)
        self._activity += 1
        if key in self._drawn_patterns:
            return
        area = state.clip if area is None else area
        use = _Use(pattern, colour, area, state.clip.within(area), context)
        if context.hidden or use.seen.empty:
            self._unseen_patterns.setdefault(key, use)
            return
        self._unseen_patterns.pop(key, None)
        self._drawn_patterns.add(key)
        self._draw_pattern(key, use)

    def _draw_pattern(self, key: Key, use: _Use) -> None:
        matrix = tame(multiply(matrix_of(use.pattern), use.colour.base))
        steps = number(use.pattern.get("/XStep")), number(use.pattern.get("/YStep"))
        tiles = lay_tiles(box_of(use.pattern, "/BBox") or WHOLE, steps, matrix, use.area, use.seen)
        scope = self._scope_inside(use.pattern, key, use.colour.scope)
        state = State.initial(tiles.matrix, use.seen, scope)
        if use.pattern.get("/PaintType") == 2:
            state.fill = state.stroke = Colour(scope, tiles.matrix, fixed=use.colour.under_pattern())
        context = replace(use.context, scope=scope, base=tiles.matrix, tiling=tiles)
        self._enter(use.pattern, key, state, context)

    def _enter(self, stream: pikepdf.Stream, key: Key, state: State, context: Context) -> None:
        """Walk the content of ``stream`` unless it is being drawn already or lies too deep."""
        if key in self._active:
            self._activity += 1
            self.result.notes.add(Reason.STRUCTURE_LOOP)
            return
        if context.depth >= self._limits.form_depth:
            self._activity += 1
            self.result.reason = self.result.reason or Reason.STRUCTURE_TOO_DEEP
            return
        box = box_of(stream, "/BBox")
        if box is not None:
            state.clip = state.clip.within(clip_to_box(box, state.ctm))
        if key not in self._contents:
            self._contents[key], fault = expand_content(stream, self.budget.content_bytes, self._limits)
            self._note_fault(fault)
        self._active.add(key)
        try:
            self._run(self._contents[key], state, replace(context, form=key[0], depth=context.depth + 1))
        finally:
            self._active.discard(key)

    def _run(self, data: bytes, state: State, context: Context) -> None:
        self.budget.content_bytes -= len(data)
        if self.budget.content_bytes < 0:
            raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED)
        Interpreter(self, state, context).run(data)

    def _scope_inside(self, stream: pikepdf.Stream, key: Key, around: Scope) -> Scope:
        if key not in self._scopes:
            inside = around.inside(stream)
            if inside is around:
                return around
            self._scopes[key] = inside
        return self._scopes[key]

    def _note_fault(self, fault: Reason | None) -> None:
        self.result.reason = self.result.reason or fault

    def _draw(
        self,
        image: pikepdf.Stream,
        object_id: int | None,
        kind: Kind,
        state: State,
        context: Context,
        *,
        stencil: bool,
        refused: Reason | None = None,
    ) -> None:
        draws = self.result.draws
        self._activity += 1
        if len(draws) >= self._limits.placements:
            raise Refusal(Reason.PLACEMENT_BUDGET_EXCEEDED)
        matrix = state.ctm
        box, visible, crop = _place(matrix, state.clip, context.tiling)
        turn, mirrored = orientation(matrix, self._frame.rotate)
        draws.append(
            Draw(
                kind=Kind.PATTERN if context.tiling else kind,
                order=len(draws) + 1,
                image=image,
                object_id=object_id,
                matrix=matrix,
                bbox=box,
                display_bbox=as_displayed(box, self._frame.crop, self._frame.rotate),
                turn=turn,
                mirrored=mirrored,
                crop=crop,
                visible=visible,
                shown=visible > 0 and not context.hidden,
                flags=context.flags | _flags(matrix, state.clip, visible, context.hidden),
                paint=state.fill.paint() if stencil else None,
                mcid=context.mcid,
                mcid_form=context.mcid_form,
                refused=refused,
                opaque=not state.veils and not context.veiled,
                structure=context.structure,
                said=context.said,
                default_space=None if stencil else context.scope.default_space(image),
            )
        )
        if visible > 0 and not context.hidden:
            self._drawn_box = box if self._drawn_box is None else bounds((*corners(self._drawn_box), *corners(box)))


def _place(matrix: Six, clip: Clip, tiling: Tiling | None) -> tuple[Four, float, Four]:
    """Box, visible share and visible part of a picture; of one that repeats in a pattern, of all repeats."""
    covered = tiling.covered(matrix) if tiling else None
    if tiling is None or covered is None:
        return bounds(move(matrix, UNIT_SQUARE)), *_visible(matrix, clip)
    left, bottom, right, top = covered
    return covered, _visible((right - left, 0.0, 0.0, top - bottom, left, bottom), tiling.seen)[0], WHOLE


def _visible(matrix: Six, clip: Clip) -> tuple[float, Four]:
    """The share of the picture inside ``clip``, and the box of that part in its own unit square."""
    square = move(matrix, UNIT_SQUARE)
    whole = area_of(square)
    if whole <= 0 or clip.empty:
        return 0.0, WHOLE
    if clip.region is None and is_upright(matrix):
        part = corners(overlap(bounds(square), clip.box))
    else:
        part = intersect(square, clip.outline)
    share = area_of(part) / whole if part else 0.0
    if share < _NOTHING:
        return 0.0, WHOLE
    return (1.0, WHOLE) if share > _ALL else (share, unit_crop(matrix, part))


def _flags(matrix: Six, clip: Clip, visible: float, hidden: bool) -> set[Flag]:
    facts = {
        Flag.NOT_VISIBLE: visible == 0,
        Flag.CLIPPED: visible > 0 and (visible < 1 or clip.approximate),
        Flag.CLIP_APPROXIMATE: visible > 0 and clip.approximate,
        Flag.HIDDEN_LAYER: hidden,
        Flag.MIRRORED: is_mirrored(matrix),
    }
    return {flag for flag, holds in facts.items() if holds}


def _identity(stream: pikepdf.Stream) -> Key:
    """Streams are always indirect, so each has a key of its own."""
    return key_of(stream) or (0, 0)
