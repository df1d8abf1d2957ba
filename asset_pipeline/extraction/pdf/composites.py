"""Finds pictures that a producer cut into strips or tiles: which placements of a page are parts of one.

Parts lie on one grid: same turn, colour space, bits and mask setting, the same scale, edges that meet
within half a pixel, and together they fill a rectangle exactly. Anything less is left alone: a wrong
join invents a picture, a missing one costs a reader a moment. Two photos that merely touch can pass all
that, so what is on both sides of an edge decides as well (``seams``); thin slices of equal depth need no
such proof, since nobody lays photos like that. Geometry only: files belong in ``joining``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from asset_pipeline.extraction.pdf.draws import Draw
from asset_pipeline.extraction.pdf.geometry import is_upright
from asset_pipeline.extraction.pdf.showing import has_mask
from asset_pipeline.model import Flag, Four, Kind, Placement, Status

TOLERANCE_PIXELS = 0.5
"""Edges this far apart, or further, do not meet."""

SCALE_TOLERANCE = 0.01
"""Relative difference of scale: producers round each strip's matrix by itself ..."""

SCALE_TOLERANCE_PIXELS = 0.1
"""... which weighs more in a strip of a few rows: or that many pixels over its whole side."""

PLAIN_GAP_POINTS, SHORT_EDGE_PIXELS = 1.0, 8
"""Half a pixel of a swatch of a few pixels is a gap that anybody sees: there, edges must meet as people see it."""

THIN = 6
"""Slices at least so many times wider than deep are slices, whatever they show."""

JOINABLE = frozenset({Kind.RASTER, Kind.INLINE, Kind.STENCIL})
_STATUSES = frozenset({Status.ARCHIVED, Status.DECORATIVE, Status.NOT_SHOWN})
_MOST_COMPARISONS = 1_000_000


class Seam(Enum):
    """What the pixels on both sides of an edge say."""

    CONTINUES = "continues"
    PARTS = "parts"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Piece:
    """A placement that may be a part: its row, how it lies, and the box shown, in pixels as displayed."""

    row: Placement
    turn: int
    mirrored: bool
    masked: bool
    width: int
    height: int
    seen: tuple[int, int, int, int]

    @property
    def scale_x(self) -> float:
        """Points to a pixel, across."""
        return (self.row.display_bbox[2] - self.row.display_bbox[0]) / self.width

    @property
    def scale_y(self) -> float:
        """Points to a pixel, down."""
        return (self.row.display_bbox[3] - self.row.display_bbox[1]) / self.height


@dataclass(frozen=True, slots=True)
class Tile:
    """A piece on the joined grid: pixels, origin at the top left as displayed."""

    piece: Piece
    left: int
    top: int

    @property
    def right(self) -> int:
        return self.left + self.piece.width

    @property
    def bottom(self) -> int:
        return self.top + self.piece.height


@dataclass(frozen=True, slots=True)
class Composite:
    """Tiles that fill ``width`` x ``height`` pixels exactly, in paint order; ``stacked`` lie under or over them."""

    tiles: tuple[Tile, ...]
    width: int
    height: int
    stacked: tuple[Piece, ...] = ()


Judge = Callable[[Piece, Piece, bool, int], Seam]
"""(first, second, stacked, offset) -> what their common edge says. ``stacked``: first above second, else first
left of second; ``offset``: pixels along the edge from the start of first to the start of second."""


def piece_of(row: Placement, draw: Draw) -> Piece | None:
    """``row`` as a possible part; None for what can never be one."""
    left, top, right, bottom = row.display_bbox
    if row.kind not in JOINABLE or row.status not in _STATUSES or row.picture is None:
        return None
    if not is_upright(draw.matrix) or right <= left or bottom <= top or min(row.width, row.height) <= 0:
        return None
    if Flag.CLIP_APPROXIMATE in row.flags or Flag.SOFT_MASK in row.flags or Flag.HIDDEN_LAYER in row.flags:
        return None
    width, height = (row.height, row.width) if draw.turn % 2 else (row.width, row.height)
    masked = row.kind is Kind.STENCIL or has_mask(draw.image)
    seen = (0, 0, 0, 0) if row.display is None else _seen(draw, width, height)
    return Piece(row, draw.turn % 4, draw.mirrored, masked, width, height, seen)


def _seen(draw: Draw, width: int, height: int) -> tuple[int, int, int, int]:
    """The crop of ``draw`` as displayed, in the whole pixels that the display holds."""
    left, top, right, bottom = draw.crop
    if draw.mirrored:
        left, right = 1 - right, 1 - left
    for _ in range(draw.turn % 4):
        left, top, right, bottom = 1 - bottom, left, 1 - top, right
    (first, last), (high, low) = _span(left, right, width), _span(top, bottom, height)
    return first, high, last, low


def _span(low: float, high: float, size: int) -> tuple[int, int]:
    first = min(max(int(low * size + 1e-4), 0), size - 1)
    return first, min(max(-int(-(high * size - 1e-4) // 1), first + 1), size)


def find_composites(pieces: Iterable[Piece], judge: Judge) -> list[Composite]:
    """The pictures among one page's ``pieces``, given in paint order, that were cut into parts."""
    alike: dict[tuple[object, ...], list[Piece]] = defaultdict(list)
    order: dict[str, int] = {}
    for piece in pieces:
        row = piece.row
        order[row.name] = len(order)
        stencil = row.kind is Kind.STENCIL
        alike[piece.turn, piece.mirrored, piece.masked, stencil, row.colour_space, row.bits].append(piece)
    budget = [_MOST_COMPARISONS]
    found = []
    for group in alike.values():
        singles, stacked = _unstack(group)
        for members in _components(singles, budget):
            found += _judged(members, judge, budget, order)
        found = [_with_stacked(composite, stacked) for composite in found]
    return sorted(found, key=lambda composite: order[composite.tiles[0].piece.row.name])


def _unstack(pieces: list[Piece]) -> tuple[list[Piece], dict[str, list[Piece]]]:
    """Each picture once a place, and what else lies there: some producers draw everything twice."""
    first: dict[tuple[str | None, Four], Piece] = {}
    stacked: dict[str, list[Piece]] = defaultdict(list)
    for piece in pieces:
        left, bottom, right, top = (round(side, 1) for side in piece.row.bbox)
        known = first.setdefault((piece.row.picture, (left, bottom, right, top)), piece)
        if known is not piece:
            stacked[known.row.name].append(piece)
    return list(first.values()), stacked


def _with_stacked(composite: Composite, stacked: dict[str, list[Piece]]) -> Composite:
    extra = [piece for tile in composite.tiles for piece in stacked.get(tile.piece.row.name, ())]
    return Composite(composite.tiles, composite.width, composite.height, tuple(extra)) if extra else composite


@dataclass(frozen=True, slots=True)
class _Edge:
    """Two pieces that meet."""

    first: Piece
    second: Piece
    stacked: bool
    offset: int


def _components(pieces: list[Piece], budget: list[int]) -> list[tuple[list[Piece], list[_Edge]]]:
    """Pieces that hang together by edges that meet, with those edges."""
    edges = [*_edges(pieces, False, budget), *_edges(pieces, True, budget)]
    return _split(pieces, edges, edges)


def _split(pieces: list[Piece], edges: list[_Edge], joining: list[_Edge]) -> list[tuple[list[Piece], list[_Edge]]]:
    parent = {piece.row.name: piece.row.name for piece in pieces}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for edge in joining:
        parent[root(edge.second.row.name)] = root(edge.first.row.name)
    groups: dict[str, tuple[list[Piece], list[_Edge]]] = defaultdict(lambda: ([], []))
    for piece in pieces:
        groups[root(piece.row.name)][0].append(piece)
    for edge in edges:
        if root(edge.first.row.name) == root(edge.second.row.name):
            groups[root(edge.first.row.name)][1].append(edge)
    return [group for group in groups.values() if len(group[0]) > 1]


def _edges(pieces: list[Piece], stacked: bool, budget: list[int]) -> list[_Edge]:
    """Pairs whose facing sides meet: the second's near side looked up among all near sides."""
    near, far, start, end = (1, 3, 0, 2) if stacked else (0, 2, 1, 3)
    ordered = sorted(pieces, key=lambda piece: piece.row.display_bbox[near])
    sides = [piece.row.display_bbox[near] for piece in ordered]
    found = []
    for first in pieces:
        across, along = (first.scale_y, first.scale_x) if stacked else (first.scale_x, first.scale_y)
        here, reach = first.row.display_bbox, TOLERANCE_PIXELS * across
        low, high = bisect_left(sides, here[far] - reach), bisect_right(sides, here[far] + reach)
        budget[0] -= high - low
        if budget[0] < 0:  # a page made to cost time, not one cut by a producer
            return []
        for second in ordered[low:high]:
            there = second.row.display_bbox
            shared = min(here[end], there[end]) - max(here[start], there[start])
            gap = abs(there[near] - here[far])
            if second is first or gap >= reach or shared <= TOLERANCE_PIXELS * along:
                continue
            if gap > PLAIN_GAP_POINTS and shared < SHORT_EDGE_PIXELS * along:
                continue
            if _same_scale(first, second):
                found.append(_Edge(first, second, stacked, round((there[start] - here[start]) / along)))
    return found


def _same_scale(one: Piece, other: Piece) -> bool:
    for pixels, scale, wanted in (
        (other.width, other.scale_x, one.scale_x),
        (other.height, other.scale_y, one.scale_y),
    ):
        if abs(scale / wanted - 1) > max(SCALE_TOLERANCE, SCALE_TOLERANCE_PIXELS / pixels):
            return False
    return True


def _judged(
    members: tuple[list[Piece], list[_Edge]], judge: Judge, budget: list[int], order: dict[str, int]
) -> list[Composite]:
    pieces, edges = members
    whole = _fill(pieces, budget)
    if whole is not None and _is_sliced(whole):
        return [whole]
    verdicts = {id(edge): judge(edge.first, edge.second, edge.stacked, edge.offset) for edge in edges}
    holding = [edge for edge in edges if verdicts[id(edge)] is not Seam.PARTS]
    found = []
    for parts, inner in _split(pieces, edges, holding):
        composite = _fill(parts, budget)
        if composite is None or _is_wallpaper(composite):
            continue
        proved = sum(verdicts[id(edge)] is Seam.CONTINUES for edge in inner)
        if 2 * proved >= len(inner) or _is_consecutive(parts, order):
            found.append(composite)
    return found


def _is_sliced(composite: Composite) -> bool:
    """Whether three or more thin slices of one depth, the last perhaps less, make up the picture."""
    boxes = [(tile.left, tile.top, tile.piece.width, tile.piece.height) for tile in composite.tiles]
    if all(width == composite.width for _, _, width, _ in boxes):
        depths = [height for _, top, _, height in sorted(boxes, key=lambda box: box[1])]
        length = composite.width
    elif all(height == composite.height for _, _, _, height in boxes):
        depths = [width for left, _, width, _ in sorted(boxes)]
        length = composite.height
    else:
        return False
    # Strips may be counted from either end, as displayed.
    depth, ends = max(depths), (depths[0], depths[-1])
    equal = sum(one != depth for one in depths) <= 1 and (min(depths) == depth or min(depths) in ends)
    return len(depths) >= 3 and equal and length >= THIN * depth and not _is_one_picture(composite)


def _is_one_picture(composite: Composite) -> bool:
    return len({tile.piece.row.picture for tile in composite.tiles}) == 1


def _is_wallpaper(composite: Composite) -> bool:
    """Whether a few pictures are repeated side by side, which is a pattern and not a cut picture."""
    return 2 * len({tile.piece.row.picture for tile in composite.tiles}) <= len(composite.tiles)


def _is_consecutive(parts: Sequence[Piece], order: dict[str, int]) -> bool:
    """Whether nothing else that could be a part was drawn in between."""
    places = [order[piece.row.name] for piece in parts]
    return max(places) - min(places) < len(places)


def _fill(group: Sequence[Piece], budget: list[int]) -> Composite | None:
    """The composite, when the pieces cover their common rectangle exactly once; else None."""
    boxes = [piece.row.display_bbox for piece in group]
    left, top = min(box[0] for box in boxes), min(box[1] for box in boxes)
    scale_x = sum(box[2] - box[0] for box in boxes) / sum(piece.width for piece in group)
    scale_y = sum(box[3] - box[1] for box in boxes) / sum(piece.height for piece in group)
    tiles = tuple(
        Tile(piece, round((box[0] - left) / scale_x), round((box[1] - top) / scale_y))
        for piece, box in zip(group, boxes, strict=True)
    )
    width, height = max(tile.right for tile in tiles), max(tile.bottom for tile in tiles)
    if sum(tile.piece.width * tile.piece.height for tile in tiles) != width * height or _overlap(tiles, budget):
        return None
    return Composite(tiles, width, height)


def _overlap(tiles: tuple[Tile, ...], budget: list[int]) -> bool:
    ordered = sorted(tiles, key=lambda tile: tile.top)
    for index, tile in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.top >= tile.bottom:
                break
            budget[0] -= 1
            if budget[0] < 0 or (other.left < tile.right and tile.left < other.right):
                return True
    return False
