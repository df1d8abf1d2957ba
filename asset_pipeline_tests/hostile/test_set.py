"""Hostile files end soon, small and with the right reason; nothing of a refused one is published."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

import asset_pipeline
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.extraction.sandbox.protocol import Task
from asset_pipeline.installation import Installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger.schema import jobs, objects, pages, placements, uploads
from asset_pipeline.model import Extraction, Status
from asset_pipeline.policy import Policy
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.hostile.expected import Expected, expected_of
from asset_pipeline_tests.small_documents import MONTH, drop_document

MOST_SECONDS = 2.0
MOST_BYTES = 300 * 1024 * 1024
MOST_SECONDS_OF_ALL = 30.0
EXACT_SHARE = 0.95

pytestmark = [pytest.mark.timeout(900), pytest.mark.usefixtures("started_zygotes")]


class _WatchedPool(DecoderPool):
    """A pool that keeps the highest memory of its decoders."""

    peak = 0

    def _run(self, task: Task, engine: str, request: Request, seconds: float) -> int:
        found = super()._run(task, engine, request, seconds)
        self.peak = max(self.peak, found)
        return found


@dataclass(frozen=True)
class _Run:
    name: str
    found: Expected
    seconds: float
    peak: int
    files: int


def _found(extraction: Extraction) -> Expected:
    """What became of a file, in the words of the table."""
    rows = [row for page in extraction.pages for row in page.placements]
    if extraction.outcome != "ok":
        return Expected("document", extraction.outcome)
    page_reason = next((page.reason for page in extraction.pages if page.reason), None)
    if page_reason:
        return Expected("page", page_reason)
    reason = next((row.reason for row in rows if row.reason), None)
    if reason:
        return Expected("picture", reason)
    return Expected("fine", None, sum(row.status is Status.ARCHIVED for row in rows))


def _processor_seconds(pool: DecoderPool) -> float:
    """Of all decoders that have ended: what the machine does besides does not count."""
    assert pool._line is not None
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            with suppress(OSError):
                if b"sandbox.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    raise AssertionError("there is no zygote")


def test_every_hostile_file_ends_soon_small_and_with_its_reason_in_one_process(
    hostile_set: list[Path], tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    runs = []
    began = time.monotonic()
    with _WatchedPool(1, Policy()) as pool:
        assert pool.cage.endswith("rlimits")
        for file in hostile_set:
            pool.peak, before = 0, _processor_seconds(pool)
            extraction = asset_pipeline.extract(file, tmp_path / file.name, workers=1, pool=pool)
            files = len(list((tmp_path / file.name).iterdir())) - 1
            runs.append(_Run(file.name, _found(extraction), _processor_seconds(pool) - before, pool.peak, files))
    wall = time.monotonic() - began

    wrong = {run.name: (run.found, expected_of(run.name)) for run in runs if run.found != expected_of(run.name)}
    slow = {run.name: run.seconds for run in runs if run.seconds > MOST_SECONDS}
    large = {run.name: run.peak >> 20 for run in runs if run.peak > MOST_BYTES}
    together = sum(run.seconds for run in runs)
    record_property(
        "hostile",
        f"{len(runs)} files, {len(runs) - len(wrong)} exact reasons, {together:.1f} s of processor, {wall:.1f} s; "
        f"slow {slow}, large (MB) {large}, other reasons {wrong}",
    )
    assert [run.name for run in runs if run.found.level in ("document", "picture") and run.files] == []
    assert 1 - len(wrong) / len(runs) >= EXACT_SHARE, wrong
    assert slow == {}
    assert large == {}
    assert together <= MOST_SECONDS_OF_ALL


def test_hostile_files_take_no_good_document_of_their_month_along(hostile_set: list[Path], inst: Installation) -> None:
    inbox = Path(inst.settings.store_address("inbox"), "hostile", MONTH)
    inbox.mkdir(parents=True)
    for file in hostile_set:
        (inbox / file.name).write_bytes(file.read_bytes())
    good = {f"good-{number}.pdf": [number, number + 50] for number in (10, 20, 30)}
    for name, colours in good.items():
        drop_document(inst.settings, name, colours)

    admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
    work_month(inst, MONTH)

    with inst.ledger.read() as conn:
        query = select(uploads.c.name, uploads.c.reason.label("refused"), jobs.c.job_id, jobs.c.state, jobs.c.reason)
        rows = conn.execute(query.outerjoin(jobs, jobs.c.job_id == uploads.c.job_id)).all()
        page_reasons = dict(
            conn.execute(select(pages.c.job_id, pages.c.reason).where(pages.c.reason.is_not(None))).all()
        )
        drawn = conn.execute(select(placements.c.job_id, placements.c.status, placements.c.reason)).all()
        stored = set(conn.execute(select(objects.c.sha256)).scalars())
        named = {
            digest
            for row in conn.execute(select(placements.c.picture, placements.c.display))
            for digest in row
            if digest
        }
    assert {row.name: row.state for row in rows if row.name in good} == dict.fromkeys(good, "succeeded")
    found = {}
    for row in rows:
        quarantined = next((reason for job, _, reason in drawn if job == row.job_id and reason), None)
        archived = sum(status == "archived" for job, status, _ in drawn if job == row.job_id)
        if row.refused or row.state != "succeeded":
            found[row.name] = Expected("document", row.refused or row.reason)
            assert archived == 0
        elif row.job_id in page_reasons:
            found[row.name] = Expected("page", page_reasons[row.job_id])
        else:
            found[row.name] = Expected("picture", quarantined) if quarantined else Expected("fine", None, archived)
    assert len(found) == len(hostile_set) + len(good)
    wrong = {path.name: found[path.name] for path in hostile_set if found[path.name] != expected_of(path.name)}
    assert 1 - len(wrong) / len(hostile_set) >= EXACT_SHARE, wrong
    assert stored == named
