"""A document has its time and no more, whoever shares the pool with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import asset_pipeline
from asset_pipeline.extraction.engine import ENGINES
from asset_pipeline.extraction.sandbox.pool import DecoderPool
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

MakeDocument = Callable[..., Path]

SECONDS = 2.0
BIG = 1_100_000
"""So large that no pages are read ahead: all decoders are asked for at once."""


@pytest.fixture
def policy() -> Policy:
    return Policy(limits=Limits(document_seconds=SECONDS))


def _padded(document: Path) -> Path:
    with document.open("ab") as file:
        file.write(b"%" + b" " * BIG)
    return document


def test_decoders_that_wait_for_one_that_hangs_get_no_time_of_their_own(
    make_document: MakeDocument, tmp_path: Path, policy: Policy
) -> None:
    document = _padded(make_document([10]))
    with DecoderPool(1, policy, engines=dict(ENGINES), warm=()) as pool:
        began = time.monotonic()
        extraction = asset_pipeline.extract(
            document, tmp_path / "out", engine="Hangs", workers=4, policy=policy, pool=pool
        )
        assert extraction.outcome is Reason.DEADLINE_EXCEEDED
        assert time.monotonic() - began < 2 * SECONDS


def test_counting_the_pages_has_what_reading_them_left(
    make_document: MakeDocument, tmp_path: Path, policy: Policy
) -> None:
    document = _padded(make_document([10]))
    began = time.monotonic()
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine="HangsOnCounting", workers=2, policy=policy)
    assert extraction.outcome is Reason.DEADLINE_EXCEEDED
    assert time.monotonic() - began < 1.5 * SECONDS


def test_a_document_is_not_refused_for_waiting_until_the_pool_has_room(
    make_document: MakeDocument, tmp_path: Path, policy: Policy
) -> None:
    document = make_document(list(range(12)))
    with DecoderPool(1, policy, engines=dict(ENGINES), warm=()) as pool, ThreadPoolExecutor(8) as callers:

        def read(number: int) -> str:
            out = tmp_path / str(number)
            return asset_pipeline.extract(document, out, engine="Dawdles", workers=1, policy=policy, pool=pool).outcome

        assert list(callers.map(read, range(8))) == ["ok"] * 8
