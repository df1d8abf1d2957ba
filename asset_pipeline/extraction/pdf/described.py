"""What a page's text says about its pictures, put into its rows: captions and alternative texts.

Tags come first, since the author wrote them; then the nearest block that starts like a caption. Only
pictures that stand for themselves get a caption: parts speak through what they are joined to, decoration
has nothing to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pypdfium2

from asset_pipeline.extraction.pdf.alt_texts import AltTexts, Tagged
from asset_pipeline.extraction.pdf.captions import CHARACTERS, find_captions, match_captions, may_begin
from asset_pipeline.extraction.pdf.draws import PageDraws
from asset_pipeline.extraction.pdf.page_texts import joined, read_lines, read_marked
from asset_pipeline.extraction.pdf.pdfium_pages import PdfiumPages, main_marks
from asset_pipeline.extraction.rows import TEXT_CHARACTERS, plain_text
from asset_pipeline.model import Flag, Four, Kind, Placement, Status

# A quarantined picture keeps its caption, or a neighbour would take it.
_CAPTIONED = frozenset({Status.ARCHIVED, Status.COLLAPSED, Status.QUARANTINED})


def describe(rows: Sequence[Placement], walked: PageDraws, alt_texts: AltTexts, pages: PdfiumPages) -> list[Placement]:
    """``rows`` of a page, the first of them those of its draws, with captions and alternative texts."""
    sheet = alt_texts.pdf.pages[walked.page - 1]
    said = {row.name: alt_texts.of(sheet, draw) for row, draw in zip(rows, walked.draws, strict=False)}
    for row in rows:
        if row.kind is Kind.COMPOSITE:
            said[row.name] = _of_parts([said[part] for part in row.parts if part in said])
    captioned = [row for row in rows if _has_caption(row)]
    captions: dict[str, str] = {}
    if captioned and not (walked.silent and _tell_nothing(captioned, said)):
        page = pages.page(walked.page)
        if page is not None:
            figures = [row for row in captioned if row.kind is Kind.VECTOR_FIGURE and alt_texts.tagged]
            marks = main_marks(page, [row.bbox for row in figures])
            said |= {figures[index].name: alt_texts.of_mark(sheet, mark) for index, mark in marks.items()}
            captions = _captions(page, captioned, said, walked.crop_box)
    return [_described(row, said.get(row.name, Tagged()).alt, captions.get(row.name)) for row in rows]


def _has_caption(row: Placement) -> bool:
    return row.status in _CAPTIONED and Flag.SOFT_MASK not in row.flags and row.kind is not Kind.PATTERN


def _of_parts(tags: Sequence[Tagged]) -> Tagged:
    """What is said of a joined picture: what its parts agree on."""
    alts = {tag.alt for tag in tags if tag.alt}
    captions = {tag.caption for tag in tags if tag.caption}
    marks = {tag.caption_marks for tag in tags if tag.caption_marks}
    return Tagged(
        alts.pop() if len(alts) == 1 else None,
        captions.pop() if len(captions) == 1 else None,
        marks.pop() if len(marks) == 1 else frozenset(),
    )


def _tell_nothing(rows: Sequence[Placement], said: dict[str, Tagged]) -> bool:
    """Whether no tag has a word on ``rows``, of which a drawn figure may get its tag only by the page."""
    return not any(row.kind is Kind.VECTOR_FIGURE or said.get(row.name, Tagged()).caption for row in rows)


def _captions(page: Any, rows: Sequence[Placement], said: dict[str, Tagged], crop: Four) -> dict[str, str]:
    found = {}
    try:
        for row in rows:
            tag = said.get(row.name, Tagged())
            text = tag.caption or (read_marked(page, tag.caption_marks) if tag.caption_marks else "")
            if text := joined(text.splitlines())[:CHARACTERS]:
                found[row.name] = text
        rest = [row for row in rows if row.name not in found]
        lines = read_lines(page, crop, may_begin) if rest else []
        blocks = [block for block in find_captions(lines) if block.text not in found.values()]
        matched = match_captions([row.bbox for row in rest], blocks, lines, crop) if blocks else {}
        return found | {rest[index].name: text for index, text in matched.items()}
    except (pypdfium2.PdfiumError, ValueError):
        return found


def _described(row: Placement, alt: str | None, caption: str | None) -> Placement:
    if not alt and not caption:
        return row
    return row.model_copy(
        update={
            "alt": plain_text(alt, TEXT_CHARACTERS) if alt else row.alt,
            "caption": plain_text(caption, CHARACTERS) if caption else row.caption,
        }
    )
