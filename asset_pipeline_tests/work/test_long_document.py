"""One document of 900 pages, worked by several processes at once, of which one is killed."""

from __future__ import annotations

import multiprocessing
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select

from asset_pipeline.archive.fsck import prove
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import attempts, manifests, receipts
from asset_pipeline.settings import load_settings
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings, noisy_pdf

PAGES, PER_UNIT = 900, 60
UNITS = PAGES // PER_UNIT


def _settings(home: Path):
    return load_settings(home=home, settle_seconds=0, workers=1, pages_per_unit=PER_UNIT, lease_seconds=4.0)


def _work(home: Path) -> None:
    with open_installation(_settings(home)) as inst:
        work_month(inst, MONTH)


def _published(inst: Installation) -> dict[int, int]:
    """How many units each process published."""
    with inst.ledger.read() as conn:
        found = conn.execute(select(attempts.c.worker).where(attempts.c.outcome == "published")).scalars()
        return Counter(int(worker.split(":")[1]) for worker in found)


@pytest.mark.timeout(300)
def test_page_ranges_of_a_long_document_are_worked_at_once_and_a_killed_half_is_resumed(tmp_path: Path) -> None:
    fresh = fresh_settings(tmp_path)
    noisy_pdf(drop_document(fresh, "long.pdf", [1]), PAGES, side=8)
    spawning = multiprocessing.get_context("spawn")
    with open_installation(_settings(fresh.home)) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
        first, second = runs = [spawning.Process(target=_work, args=(fresh.home,)) for _ in range(2)]
        for run in runs:
            run.start()
        while not (_published(inst).get(first.pid) and _published(inst).get(second.pid)):
            assert any(run.is_alive() for run in runs), "both ended before both had published"
            time.sleep(0.02)
        first.kill()
        first.join()
        of_the_killed = _published(inst)[first.pid]
        second.join(200)
        assert second.exitcode == 0
        with inst.ledger.read() as conn:
            outcomes = Counter(conn.execute(select(attempts.c.outcome)).scalars())
            (document,) = reading.documents_of_month(conn, MONTH)
            placed = conn.execute(select(func.count()).select_from(receipts)).scalar_one()
        assert (document.state, placed) == ("succeeded", PAGES)
        assert outcomes["published"] == UNITS, "no range was worked twice to its end"
        assert outcomes["fenced"] <= 1, "only what the killed one held was taken over"
        assert sum(outcomes.values()) == UNITS + outcomes["fenced"]
        assert _published(inst)[first.pid] == of_the_killed
        assert len(publish_manifests(inst, MONTH, datetime.now(UTC))) == 1
        with inst.ledger.read() as conn:
            assert conn.execute(select(func.count()).select_from(manifests)).scalar_one() == 1
        assert prove(inst).sound
