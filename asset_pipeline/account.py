"""The account of a page: which placement counts as what, and the sums that must add up.

One place for the rule of REQUIREMENTS R3.3, used by the small ``extract`` path and by the completion
of a job, so that both say the same. Pure: rows in, rows out. ``collapsed`` can only be derived when
all pages of a document are known, whatever order its page ranges were read in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from asset_pipeline.model import DERIVED, Flag, Page, Status

COUNTED = tuple(Status)


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
                row = row.model_copy(update={"status": status, "flags": flags})
            placements.append(row)
        settled.append(count(page.model_copy(update={"placements": placements})))
    return settled


def count(page: Page) -> Page:
    """``page`` with its counts taken from its rows; ``drawn`` stays None when drawing was not counted."""
    drawn = Counter(row.status for row in page.placements if row.kind not in DERIVED)
    derived = Counter(row.status for row in page.placements if row.kind in DERIVED)
    counts: dict[str, int | None] = {status.value: drawn[status] for status in COUNTED}
    counts["derived_archived"] = derived[Status.ARCHIVED]
    counts["derived_quarantined"] = derived[Status.QUARANTINED]
    if page.drawn is not None:
        counts["drawn"] = drawn.total()
    return page.model_copy(update=counts)


def unaccounted(pages: Sequence[Page], page_count: int) -> list[int]:
    """Pages of a document of ``page_count`` pages that are missing or whose account does not add up."""
    known = {page.page: page for page in pages}
    return [n for n in range(1, page_count + 1) if n not in known or not _adds_up(known[n])]


def _adds_up(page: Page) -> bool:
    if page.drawn is None:
        return page.reason is not None
    return page.drawn == sum(getattr(page, status.value) for status in COUNTED) and page == count(page)
