"""Why a page shows what it shows, in one word and in words: the answer to "page 87 is missing".

One rule for gallery, catalogue and command line, over what the ledger says. A document that is not done vouches for
no page, so each of its pages is late (or not read, when it was refused or given up). Of several causes on one page the
one that a person can act on wins: quarantined first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from asset_pipeline.ledger.reading import DocumentRow
from asset_pipeline.ledger.uploads import Upload
from asset_pipeline.model import Page, Status
from asset_pipeline.reasons import Reason, explain


class PageState(StrEnum):
    """What a page has to show."""

    PICTURES = "pictures"
    NO_PICTURE = "no_picture"
    LATE = "late"
    QUARANTINED = "quarantined"
    DECORATIVE = "decorative"
    NOT_SHOWN = "not_shown"
    NOT_READ = "not_read"
    EXPIRED = "expired"


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """The state of a page, with what it means and what to do about it ("" when nothing)."""

    state: PageState
    meaning: str
    remedy: str
    reasons: tuple[str, ...] = ()


LATE = PageAnswer(
    PageState.LATE,
    "The document is still being worked; its pages are not recorded yet.",
    "Wait for its month to end, or run the month again.",
)
WAITING = PageAnswer(
    PageState.LATE,
    "The document waits in the inbox; it is not taken in yet.",
    "Run its month, or let the sensor do it.",
)
EXPIRED = PageAnswer(
    PageState.EXPIRED,
    "The report was kept for as long as it may be; its document and pictures are deleted.",
    "Its manifest and the log of events still prove what was there.",
)
NO_PICTURE = PageAnswer(PageState.NO_PICTURE, "The page draws no picture.", "")


def answer_for_page(document: DocumentRow, page: Page | None) -> PageAnswer:
    """What page ``page`` of ``document`` has to show. None: the ledger has no account of it."""
    if document.expired_at:
        return EXPIRED
    if document.state in ("queued", "running"):
        return LATE
    if document.state != "succeeded" or page is None:
        return _explained(PageState.NOT_READ, "", [document.reason or Reason.INTERNAL_ERROR.value])
    if page.drawn is None:
        return _explained(PageState.NOT_READ, "", [(page.reason or Reason.INTERNAL_ERROR).value])
    return _of_account(page)


class Deferred(Protocol):
    """Why an upload that has settled is not taken in yet, and when it will be."""

    @property
    def meaning(self) -> str: ...
    @property
    def remedy(self) -> str: ...


def answer_for_upload(upload: Upload, deferred: Deferred | None = None) -> PageAnswer:
    """What every page has to show of a document that is in the inbox still: waiting, deferred or rejected."""
    if upload.reason:
        return _explained(PageState.NOT_READ, "", [upload.reason.value])
    if deferred:
        return PageAnswer(PageState.LATE, f"{WAITING.meaning} {deferred.meaning}", deferred.remedy)
    return WAITING


def name_of_upload(upload: Upload) -> str:
    """What its document is called: also where the place of the file says nothing else."""
    return upload.name or upload.key.rpartition("/")[2]


def _of_account(page: Page) -> PageAnswer:
    shown = page.archived + page.collapsed + page.derived_archived
    held = page.quarantined + page.derived_quarantined
    if held:
        reasons = [row.reason.value for row in page.placements if row.status is Status.QUARANTINED and row.reason]
        others = f" {_count(shown, 'other is', 'others are')} there." if shown else ""
        return _explained(
            PageState.QUARANTINED, f"{_count(held, 'picture is', 'pictures are')} held back.", reasons, others
        )
    if shown:
        repeats = f", {_count(page.collapsed, 'repeat', 'repeats')} of earlier ones" if page.collapsed else ""
        found = page.archived + page.derived_archived
        return PageAnswer(PageState.PICTURES, f"{_count(found, 'picture', 'pictures')} in the archive{repeats}.", "")
    if page.decorative:
        what = f"Only decoration: {_count(page.decorative, 'picture is', 'pictures are')} too thin to count."
        return PageAnswer(PageState.DECORATIVE, what, "If it matters, change what counts as decoration in the policy.")
    if page.drawn:
        what = f"{_count(page.drawn, 'picture is', 'pictures are')} outside the visible page or on a hidden layer."
        return PageAnswer(PageState.NOT_SHOWN, what, "")
    return NO_PICTURE


def _explained(state: PageState, first: str, reasons: Iterable[str], last: str = "") -> PageAnswer:
    found = Counter(reasons)
    of_picture = state is PageState.QUARANTINED
    told = [explain(Reason(reason), of_picture=of_picture) for reason in sorted(found)]
    meaning = " ".join(filter(None, [first, *dict.fromkeys(entry.meaning for entry in told)])) + last
    return PageAnswer(state, meaning, " ".join(dict.fromkeys(entry.remedy for entry in told)), tuple(sorted(found)))


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
