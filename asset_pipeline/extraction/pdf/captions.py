"""Captions of pictures: the nearest block of text that starts like one, never anything else.

"Figure 3", "Abb. 2:", "Photo:" start a caption; other words near a picture are not taken, however likely,
since a caption is shown to people as what the document says. Blocks lie below or above their picture, or
beside it; one caption belongs to one picture. Documents put all captions of a page on the same side, so
both ways are tried and the one that gives more is taken, below where both fit alike.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from asset_pipeline.extraction.pdf.page_texts import Line, framed, joined
from asset_pipeline.model import Four

CHARACTERS = 500
_LINES = 12

_BELOW_POINTS = 42.0
_NUMBERED_BELOW_POINTS = 64.0
"""Numbered ones are looked for further down: plots often come with a margin."""

_ABOVE_POINTS = 30.0
_BESIDE_POINTS = 30.0
_OVER_POINTS = 4.0
"""How far a block may reach into its picture: boxes of text and of pictures are not exact."""

_LABELLED, _RUN_IN_RANK = 3, 4
_SMALL_TYPE = 0.85
_OTHER_SIDE = 24.0
_BESIDE_COST = 18.0
_USUALLY_BELOW = 6.0
"""Text set solid between two pictures is as near to either, give or take its descenders: the upper one's, then."""

_SHARED = 0.3
_LONG_LINE = 30
_LABEL_CHARACTERS, _LABEL_GAP = 16, 4.0
_LEADING = 1.1
"""Gap to the next line of a block, in heights of the line."""
_PARAGRAPH_GAP = 0.45

_NUMBERED = (
    r"fig(?:ure|ura|uur)?s?|abb(?:ildung)?(?:en)?|bild(?:er)?|images?|photo(?:s|graph)?|foto|plates?|tafel|illustration|"
    r"ill|exhibit|charts?|diagrams?|diagramm|grafik|graphic|graph|gr[aá]fico|maps?|karte|schemes?|schema|pictures?|pic|"
    r"afbeelding|ilustraci[oó]n|panel|screenshot|obr|ris|рис|рисунок|図"
)
_COLONED = (
    r"photos?|photograph(?:y|s)?|fotos?|images?|pictures?|bild(?:er)?|illustrations?|graphics?|grafik|karte|map|"
    r"above|below|left|right|top|bottom|oben|unten|links|rechts|cover|titelbild|titelfoto|opposite|overleaf"
)
_CREDITED = (
    r"(?:sources?|quellen?|(?:photo |image |picture )?credits?|bildnachweis|fotografie)\s*:|"
    r"(?:photo(?:graph)?|image|picture|foto)s? (?:by|courtesy of|von)\b|courtesy of\b"
)
_ANY_LABEL = (
    r"(?!(?:Table|Tab|Tabelle|Section|Chapter|Kapitel|Part|Teil|Page|Seite|Step|Schritt|Article|Artikel|Appendix|Anhang|"
    r"Note|Question|Day|Week|Year|Volume|Issue|No|Nr|Item|Phase|Level|Stage|Equation|Example|Theorem|Lemma|Annex|Grade|"
    r"Version|Box|Listing|Algorithm|Exercise|Problem|Unit|Lesson|Module|Rule|Act|Title|January|February|March|April|May|"
    r"June|July|August|September|October|November|December)\b)[A-Z][a-z]{2,14} \d{1,3}[a-z]?(?:[.:] +\S|[.:]?\s*$)"
)
_RUN_IN = r"[A-Z][\w'’ -]{1,24}\. +[A-Z0-9]"
_NUMBER = r"(?:[A-Z]{1,2}[.\-]?)?\d{1,4}(?:[.\-–]\d{1,3}){0,3}[a-z]?\b|[IVXLC]{1,6}\b|[A-Z]\b"
_NUMBERS = rf"(?:{_NUMBER})(?:\s*(?:,|&|–|-|and|und|to|bis)\s*(?:{_NUMBER}))*"
_NUMBERED_START = re.compile(
    rf"(?P<word>{_NUMBERED})(?![^\W\d_])(?P<dot>\.?)\s*(?P<number>(?-i:{_NUMBERS}))(?P<rest>.*)",
    re.IGNORECASE | re.DOTALL,
)
_COLONED_START = re.compile(rf"(?:{_COLONED})(?:\s+\([^)]{{1,20}}\))?\s*:\s*\S", re.IGNORECASE)
_CREDITED_START = re.compile(rf"(?:{_CREDITED})\s*\S", re.IGNORECASE)
_LABELLED_START = re.compile(_ANY_LABEL)
_RUN_IN_START = re.compile(_RUN_IN)
_ANYWHERE = re.compile(
    rf"(?<!\w)(?:(?:{_NUMBERED})(?![^\W\d_])\.?\s*(?-i:{_NUMBER})|(?:{_COLONED})(?:\s+\([^)]{{1,20}}\))?\s*:|(?:{_CREDITED}))",
    re.IGNORECASE,
)
_ANYWHERE_LABELLED = re.compile(rf"(?:^|(?<=\s)){_ANY_LABEL}|^{_RUN_IN}", re.MULTILINE)
_SEPARATED = re.compile(r"\s*(?:\([a-z0-9]\)\s*)?[:.|–—\-•]|\s*$|\)")
_TOLD = re.compile(
    r"\s*(?:[a-z]|\([a-z]\))?\s*[,;]|\s*\)|\s*(?:and|or|to|und|bis)\s+\d|"
    r"\s+(?:also\s+|clearly\s+)?(?:shows?|illustrates?|presents?|depicts?|gives|is|are|was|were|has|have|displays?|"
    r"compares?|plots?|summari[sz]es|demonstrates?|indicates?|reveals?|suggests?|provides?|in|on|of|we|can|below|above|"
    r"zeigt|zeigen|ist|sind|stellt|gibt)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Caption:
    """A block that starts like a caption. ``rank``: 0 numbered, 1 named, 2 only a source or credit, 3 any label with a
    number ("Site 4."), 4 a few words and a full stop ("The basin. Last year's regatta"): captions only where type
    and place say so too."""

    text: str
    box: Four
    turn: int
    rank: int
    lines: tuple[Line, ...] = ()


def may_begin(text: str) -> bool:
    """Whether a caption may begin anywhere in ``text``: a quick look, so that most pages need no other."""
    return _ANYWHERE.search(text) is not None or _ANYWHERE_LABELLED.search(text.replace("\r", "")) is not None


def rank_of(text: str) -> int | None:
    """How ``text`` starts like a caption; None when it does not."""
    text = text.lstrip("▲▼◄►◀▶↑↓←→■●• ")
    numbered = _NUMBERED_START.match(text)
    if numbered is not None and numbered["word"][:1].isupper() | (not numbered["word"].isascii()):
        if _SEPARATED.match(numbered["rest"]) or not _TOLD.match(numbered["rest"]):
            return 0
        return None
    if text[:1].isupper() and _COLONED_START.match(text):
        return 1
    if text[:1].isupper() and _CREDITED_START.match(text):
        return 2
    if _LABELLED_START.match(text):
        return _LABELLED
    return _RUN_IN_RANK if _RUN_IN_START.match(text) else None


def is_named_caption(text: str) -> bool:
    """Whether ``text`` starts like a caption by its words alone."""
    rank = rank_of(text)
    return rank is not None and rank < _LABELLED


def find_captions(lines: Sequence[Line]) -> list[Caption]:
    """Blocks among ``lines`` that start like captions, as far as they go."""
    starts = [(line, rank) for line in lines if (rank := rank_of(line.text)) is not None]
    first_lines = {id(line) for line, _ in starts}
    found = []
    for line, rank in starts:
        others = [other for other in lines if other.turn == line.turn and other is not line]
        if _continues_a_paragraph(line, rank, others):
            continue
        free = [other for other in others if id(other) not in first_lines]
        block = _block(_with_what_follows(line, free), free)
        text = joined([part.text for part in block])[:CHARACTERS].strip()
        found.append(Caption(text, _around([part.box for part in block]), line.turn, rank, tuple(block)))
    return found


def _continues_a_paragraph(line: Line, rank: int, others: Sequence[Line]) -> bool:
    """Whether a line of running text lies right above: then the words are a mention, unless they are set off."""
    numbered = _NUMBERED_START.match(line.text)
    if (
        rank == 0
        and numbered is not None
        and _SEPARATED.match(numbered["rest"])
        and not numbered["rest"].startswith(")")
    ):
        rest = numbered["rest"].lstrip(" .:|–—-")
        if rest[:1].isupper() or not rest:
            return False
    for other in others:
        gap = line.box[1] - other.box[3]
        close = -0.4 * line.height < gap < 0.7 * line.height and abs(other.height / line.height - 1) < 0.35
        if close and _shared(other.box, line.box, 0) > 0.5 and len(other.text) >= _LONG_LINE:
            return True
    return False


def _with_what_follows(label: Line, others: Sequence[Line]) -> Line:
    """A label set apart ("Exhibit 4") with the text on its height, which PDFium takes for another line."""
    if len(label.text) > _LABEL_CHARACTERS:
        return label
    for other in others:
        gap = other.box[0] - label.box[2]
        if 0 <= gap < _LABEL_GAP * label.height and _shared(label.box, other.box, 1) > 0.6:
            return Line(f"{label.text} {other.text}", _around([label.box, other.box]), label.turn)
    return label


def _block(first: Line, others: Sequence[Line]) -> list[Line]:
    """``first`` and the lines that go on below it."""
    block = [first]
    pitch: float | None = None
    characters = len(first.text)
    while len(block) < _LINES and characters < CHARACTERS:
        last = block[-1]
        below = [line for line in others if _goes_on(block, line, pitch)]
        if not below:
            break
        following = min(below, key=lambda line: line.box[1])
        pitch = pitch or (following.box[3] - last.box[3])
        block.append(following)
        characters += len(following.text)
    return block


def _goes_on(block: list[Line], line: Line, pitch: float | None) -> bool:
    last, first = block[-1], block[0]
    tall = max(first.height, last.height)
    step = line.box[3] - last.box[3]
    if step < 0.5 * tall or line.box[1] - last.box[3] > _LEADING * tall or (pitch is not None and step > 1.25 * pitch):
        return False
    if not 0.7 < line.height / tall < 1.4 or _is_at_its_end(last, line):
        return False
    # A caption's lines begin at one edge, hang from one, or are centred.
    aligned = abs(line.box[0] - last.box[0]) < 2 * tall or abs(line.box[0] - first.box[0]) < 2 * tall
    hanging = 0 < line.box[0] - first.box[0] < 12 * tall and line.box[2] < first.box[2] + 2 * tall
    centred = abs((line.box[0] + line.box[2]) - (last.box[0] + last.box[2])) < 2 * tall
    return (aligned or hanging or centred) and _shared(last.box, line.box, 0) > _SHARED


def _is_at_its_end(last: Line, line: Line) -> bool:
    """Whether ``last`` ends a sentence and was not broken for want of room: what follows is a new paragraph."""
    if not last.text.endswith((".", "!", "?")) or len(last.text) <= _LABEL_CHARACTERS:
        return False
    if line.box[1] - last.box[3] < _PARAGRAPH_GAP * min(last.height, line.height):
        return False
    word = len(line.text.split(maxsplit=1)[0]) + 2
    return line.box[2] - last.box[2] > word * (line.box[2] - line.box[0]) / max(1, len(line.text))


@dataclass(frozen=True, slots=True)
class _Fit:
    cost: float
    caption: int
    picture: int


def match_captions(
    pictures: Sequence[Four], captions: Sequence[Caption], lines: Sequence[Line], crop: Four
) -> dict[int, str]:
    """Texts by index of ``pictures``, boxes in user space."""
    attempts = []
    for above in (False, True):
        fits = [
            fit
            for number, caption in enumerate(captions)
            if (fit := _nearest(number, caption, pictures, lines, crop, above)) is not None
        ]
        best: dict[int, _Fit] = {}
        for fit in sorted(fits, key=lambda fit: (captions[fit.caption].rank, fit.cost)):
            best.setdefault(fit.picture, fit)
        cost = sum(fit.cost + (_USUALLY_BELOW if above else 0.0) for fit in best.values())
        attempts.append((len(best), -cost, best))
    *_, best = max(attempts, key=lambda attempt: attempt[:2])
    return {picture: captions[fit.caption].text for picture, fit in best.items()}


def _nearest(
    number: int, caption: Caption, pictures: Sequence[Four], lines: Sequence[Line], crop: Four, above: bool
) -> _Fit | None:
    fits = []
    boxes = [framed(picture, crop, caption.turn) for picture in pictures]
    for index, box in enumerate(boxes):
        below = _BELOW_POINTS if caption.rank else _NUMBERED_BELOW_POINTS
        cost = _cost(caption.box, box, above, below)
        if caption.rank >= _LABELLED and not _is_set_as_caption(caption, box, lines):
            continue
        if cost is not None and not _is_between(caption, box, lines):
            fits.append(_Fit(cost, number, index))
    # Of several as near, the one that the caption lies under for the longest.
    return min(fits, key=lambda fit: (round(fit.cost), -_span(caption.box, boxes[fit.picture], 0)), default=None)


def _is_set_as_caption(caption: Caption, picture: Four, lines: Sequence[Line]) -> bool:
    """Whether type and place say what the words do not: right below, no wider, no larger than the page's text.

    A few words and a full stop begin many a paragraph: there, the type must be smaller, and aligned.
    """
    first = caption.lines[0]
    heights = sorted(line.height for line in lines if len(line.text) >= _LONG_LINE) or [first.height]
    tight = -_OVER_POINTS <= first.box[1] - picture[3] <= 1.6 * first.height
    slack = 2 * first.height
    within = caption.box[0] >= picture[0] - slack and caption.box[2] <= picture[2] + slack
    usual = heights[len(heights) // 2]
    if caption.rank == _LABELLED:
        return tight and within and first.height <= 1.05 * usual
    aligned = abs(first.box[0] - picture[0]) < 3 or abs(sum(first.box[::2]) - sum(picture[::2])) < 6
    return tight and within and aligned and first.height <= _SMALL_TYPE * usual


def _cost(text: Four, picture: Four, above: bool, below: float = _BELOW_POINTS) -> float | None:
    """How far the caption is from the picture; None for too far or on no side of it."""
    if _shared(text, picture, 0) > _SHARED:
        under, over = text[1] - picture[3], picture[1] - text[3]
        if -_OVER_POINTS <= under <= below:
            return max(0.0, under) + (_OTHER_SIDE if above else 0.0)
        if -_OVER_POINTS <= over <= _ABOVE_POINTS:
            return max(0.0, over) + (0.0 if above else _OTHER_SIDE)
        return None
    beside = max(text[0] - picture[2], picture[0] - text[2])
    if -_OVER_POINTS <= beside <= _BESIDE_POINTS and _shared(text, picture, 1) > 0.5:
        return max(0.0, beside) + _BESIDE_COST
    return None


def _is_between(caption: Caption, picture: Four, lines: Sequence[Line]) -> bool:
    """Whether running text parts the caption from the picture."""
    low, high = sorted((caption.box[1], caption.box[3], picture[1], picture[3]))[1:3]
    own = {id(line) for line in caption.lines}
    for line in lines:
        middle = (line.box[1] + line.box[3]) / 2
        if line.turn != caption.turn or id(line) in own or len(line.text) < _LONG_LINE or not low < middle < high:
            continue
        if _span(line.box, caption.box, 0) > 0 and _span(line.box, picture, 0) > 0:
            return True
    return False


def _span(one: Four, other: Four, axis: int) -> float:
    return min(one[axis + 2], other[axis + 2]) - max(one[axis], other[axis])


def _shared(one: Four, other: Four, axis: int) -> float:
    """What two boxes share along an axis, as a part of the shorter side."""
    shorter = min(one[axis + 2] - one[axis], other[axis + 2] - other[axis])
    return _span(one, other, axis) / shorter if shorter > 0 else 0.0


def _around(boxes: Sequence[Four]) -> Four:
    lefts, tops, rights, bottoms = zip(*boxes, strict=True)
    return min(lefts), min(tops), max(rights), max(bottoms)
