"""Pages are dealt out to whoever has time: each once, and all of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from asset_pipeline.extraction.turns import MOST_PAGES, PARTS, deal


@pytest.mark.parametrize("count", [0, 1, 9, PARTS, PARTS + 1, 1000])
def test_each_page_falls_to_one_of_those_who_take_turns(count: int) -> None:
    pages = range(5, 5 + count)
    with deal() as turns:
        takers = [turns.take(pages) for _ in range(3)]
        taken = _in_rounds(takers)
        assert turns.left() == 0
    assert sorted(page for share in taken for page in share) == list(pages)
    assert all(share == sorted(share) for share in taken)
    if count > PARTS:
        assert all(taken)


def test_who_has_had_its_share_leaves_the_rest() -> None:
    pages = range(1, 5001)
    with deal() as turns:
        first = list(turns.take(pages))
        assert MOST_PAGES <= len(first) <= MOST_PAGES + 5000 // PARTS
        assert turns.left() > 0
        others = []
        while turns.left():
            others += turns.take(pages)
    assert first + others == list(pages)


def test_turns_end_with_their_reading() -> None:
    with deal() as turns:
        os.fstat(turns.descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(turns.descriptor)


def _in_rounds(takers: list[Iterator[int]]) -> list[list[int]]:
    """What each takes when one after the other takes a page."""
    taken: list[list[int]] = [[] for _ in takers]
    waiting = list(zip(takers, taken, strict=True))
    while waiting:
        for taker, share in list(waiting):
            page = next(taker, None)
            if page is None:
                waiting.remove((taker, share))
            else:
                share.append(page)
    return taken
