"""The account of a page: which placement counts as what, and the sums that must add up.

One place for the rule of REQUIREMENTS R3.3, used by the small ``extract`` path and by the completion
of a job, so that both say the same. Pure: rows in, rows out. ``collapsed`` can only be derived when
all pages of a document are known, whatever order its page ranges were read in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from asset_pipeline.model import DERIVED, Flag, Page, Placement, Status

COUNTED = tuple(Status)
_COUNTS = (*(status.value for status in COUNTED), "derived_archived", "derived_quarantined")


def collapse_repeats(pages: Iterable[Page]) -> list[Page]:
    """Pages in order, with each repeat of an archived picture turned into ``collapsed``, and recounted.

    The first placement of a picture by (page, paint order) that would be archived stays so; later ones
    are repeats. Idempotent: a second pass changes nothing.
    """
    first_seen: set[str] = set()
    settled = []
    for page in sorted(pages, key=lambda row: row.page):
        placements = []
        for row in page.placements:
            if row.kind not in DERIVED and row.picture and row.status in (Status.ARCHIVED, Status.COLLAPSED):
                repeat = row.picture in first_seen
                first_seen.add(row.picture)
                flags = [flag for flag in row.flags if flag is not Flag.REPEAT] + [Flag.REPEAT] * repeat
                status = Status.COLLAPSED if repeat else Status.ARCHIVED
                if (status, flags) != (row.status, row.flags):
                    row = row.model_copy(update={"status": status, "flags": flags})
            placements.append(row)
        counts = _counts(placements, drawn=page.drawn is not None)
        settled.append(page.model_copy(update={"placements": placements, **counts}))
    return settled


def count(page: Page) -> Page:
    """``page`` with its counts taken from its rows; ``drawn`` stays None when drawing was not counted."""
    return page.model_copy(update=_counts(page.placements, drawn=page.drawn is not None))


def is_counted(page: Page) -> bool:
    """Whether the counts of ``page`` are those of its rows."""
    counts = _counts(page.placements, drawn=page.drawn is not None)
    return all(getattr(page, name) == number for name, number in counts.items())


def _counts(placements: Iterable[Placement], *, drawn: bool) -> dict[str, int]:
    """By field of ``Page``, and of all that was ``drawn`` where that was counted."""
    counts = dict.fromkeys(_COUNTS, 0)
    for row in placements:
        if row.kind not in DERIVED:
            counts[row.status.value] += 1
        elif row.status in (Status.ARCHIVED, Status.QUARANTINED):
            counts[f"derived_{row.status.value}"] += 1
    if drawn:
        counts["drawn"] = sum(counts[status.value] for status in COUNTED)
    return counts


def unaccounted(pages: Sequence[Page], page_count: int) -> list[int]:
    """Pages of a document of ``page_count`` pages that are missing or whose account does not add up."""
    known = {page.page: page for page in pages}
    return [n for n in range(1, page_count + 1) if n not in known or not _adds_up(known[n])]


def _adds_up(page: Page) -> bool:
    if page.drawn is None:
        return page.reason is not None
    return page.drawn == sum(getattr(page, status.value) for status in COUNTED) and is_counted(page)
