"""One worker of a campaign: works the months in order, and dies or stalls where it was told to."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import select, update

from asset_pipeline import failpoints
from asset_pipeline.archive.content import SETTLED
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.archive.sweep import sweep_objects
from asset_pipeline.errors import StorageError
from asset_pipeline.extraction.engine import ENGINES, Inspection, Request, load_engine, version_of
from asset_pipeline.extraction.pdf.engine import PdfEngine
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.failpoints import Failpoint
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import next_action
from asset_pipeline.ledger.schema import jobs, manifests, units
from asset_pipeline.model import Extraction
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work import month as month_room
from asset_pipeline.work.plan import open_jobs
from asset_pipeline.work.unit import UnitOutcome, work_unit
from asset_pipeline_tests.crash import mutants
from asset_pipeline_tests.crash.campaign import AWAY, Plan
from asset_pipeline_tests.small_documents import samples_pdf

POISON_PAGES = 9
POISON_TO_OPEN_PAGES = 8
LEASE_SECONDS = 1.0
MOST_KILLS_OF_A_UNIT = next_action.MAX_LOST_WORKERS - 2
"""Whoever is killed more often by chance is taken for poison, rightly: chance must not look like poison here."""

_OF_A_UNIT = frozenset(list(Failpoint)[: list(Failpoint).index(Failpoint.UNIT_COMMITTED) + 1])
_OF_MANIFESTS = frozenset({Failpoint.CURRENT_WRITTEN, Failpoint.MANIFEST_LINKED})


class Lethal(PdfEngine):
    """Takes its process along when a document has the pages of a poisonous one, or of one that is poisonous to open."""

    def inspect(self, request: Request) -> Inspection:
        found = super().inspect(request)
        if found.source.pages == POISON_TO_OPEN_PAGES:
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    def extract(self, request: Request) -> Extraction:
        if request.last == POISON_PAGES:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().extract(request)


def settings_of(plan: Plan) -> Settings:
    values: dict[str, object] = {
        "home": Path(plan.folder, "home"),
        "sandbox": False,
        "workers": 1,
        "settle_seconds": 0,
        "lease_seconds": LEASE_SECONDS,
        "pages_per_unit": 10,
    }
    return load_settings(**values | plan.settings)


def months_of(plan: Plan) -> list[str]:
    count = -(-plan.documents // plan.documents_a_month)
    return [f"{2024 + number // 12}-{number % 12 + 1:02d}" for number in range(count)]


def submit(plan: Plan) -> None:
    """Drop all documents and admit them, then send every one of them again, unchanged."""
    settings = settings_of(plan)
    months = months_of(plan)
    poisons = [POISON_PAGES] * plan.poison + [POISON_TO_OPEN_PAGES] * plan.poison_to_open
    poisonous = {number * plan.documents // len(poisons): pages for number, pages in enumerate(poisons)}
    dropped = []
    for number in range(plan.documents):
        month = months[number // plan.documents_a_month]
        path = Path(settings.store_address("inbox"), f"collection-{number % 3}", month, f"{number:05d}.pdf")
        path.parent.mkdir(parents=True, exist_ok=True)
        _draw(path, number, poisonous.get(number, 1 + number % 2))
        dropped.append(path)
    mutants.apply(plan.mutant)
    with open_installation(settings) as inst:
        mutants.alter(plan.mutant, inst)
        for _ in range(2):
            for month in months:
                admit_month(inst, month, lambda: datetime.now(UTC), wait=True)
            for path in dropped:
                os.utime(path)


def _draw(path: Path, number: int, pages: int) -> None:
    """A picture of its own on the first page, and on the others such as many documents have."""
    names = [f"of document {number}", *(f"common {(number + page) % 16}" for page in range(1, pages))]
    samples_pdf(path, [hashlib.sha256(name.encode()).digest()[:3] * 64 for name in names])


def warm_up() -> None:
    """What every worker of this campaign needs, done once before they are forked."""
    ENGINES["pdf"] = f"{__name__}:{Lethal.__name__}"
    next_action.FIRST_PAUSE = timedelta(seconds=0.2)
    for name in ENGINES:
        version_of(load_engine(name))


def succeed(plan: Plan, unit_id: str) -> None:
    """Take over what a stalled worker holds, when its lease has run out, and end it before the other wakes."""
    mutants.apply(plan.mutant)
    time.sleep(LEASE_SECONDS + 0.1)
    try:
        with open_installation(settings_of(plan)) as inst, DecoderPool(1, inst.policy, caged=False) as pool:
            while unit_id and _is_open(inst, unit_id):
                work_unit(inst, pool, unit_id)
                time.sleep(0.05)
            note_files(plan)
    except StorageError:
        raise SystemExit(AWAY) from None


def _is_open(inst: Installation, unit_id: str) -> bool:
    with inst.ledger.read() as conn:
        return conn.execute(select(units.c.state).where(units.c.unit_id == unit_id)).scalar_one() in OPEN_UNITS


def files_of(plan: Plan) -> dict[str, int]:
    """The inode of every picture in an archive that is a folder."""
    root = Path(settings_of(plan).store_address("archive"), "objects")
    return {path.name: path.stat().st_ino for path in root.glob("*/*") if not path.name.startswith(".")}


def note_files(plan: Plan) -> None:
    """Remember which files are there while a late worker sleeps: it must not put others in their place."""
    with Path(plan.folder, NOTED).open("a") as noted:
        noted.write(json.dumps(files_of(plan)) + "\n")


NOTED = "files.jsonl"
OPEN_UNITS = ("queued", "running")


def work(plan: Plan, marks: Path, how: str, point: str, nth: int) -> None:
    """Settle all months and write their manifests; status ``AWAY`` when a store or the database was away."""
    mutants.apply(plan.mutant)
    fate = _Fate(marks, how, point, nth)
    month_room.work_unit = fate.noting_units(work_unit)  # type: ignore[assignment]
    failpoints.listener = fate.reached
    try:
        with open_installation(settings_of(plan)) as inst:
            if point in _OF_MANIFESTS:
                _write_manifests(inst, plan, fate)
                return
            for month in months_of(plan):
                month_room.work_month(inst, month, workers=1)
            _write_manifests(inst, plan, fate)
    except StorageError:
        raise SystemExit(AWAY) from None


def _write_manifests(inst: Installation, plan: Plan, fate: _Fate) -> None:
    """Write manifests as documents end, until all have ended."""
    while True:
        left = any(open_jobs(inst, month, "queued", "running") for month in months_of(plan))
        for month in _lacking_manifests(inst):
            publish_manifests(inst, month, datetime.now(UTC))
            fate.make_room()
        if not left:
            return
        time.sleep(0.1)


def _lacking_manifests(inst: Installation) -> list[str]:
    """Months in which a settled job has no manifest; those that are done cost no look."""
    with inst.ledger.read() as conn:
        query = select(jobs.c.month).where(jobs.c.state.in_(SETTLED), jobs.c.job_id.not_in(select(manifests.c.job_id)))
        return sorted(set(conn.execute(query).scalars()))


def forget(plan: Plan) -> None:
    """Have the ledger forget the ends of some units, as after a repair by hand: they are worked once more."""
    with open_installation(settings_of(plan)) as inst, inst.ledger.begin() as tx:
        some = list(tx.execute(select(units.c.job_id).order_by(units.c.unit_id).limit(plan.forgotten)).scalars())
        tx.execute(update(units).where(units.c.job_id.in_(some)).values(state="queued"))
        tx.execute(update(jobs).where(jobs.c.job_id.in_(some)).values(state="running", finished_at=None))


def sweep(plan: Plan) -> None:
    """Delete what nothing names, without a grace time."""
    mutants.apply(plan.mutant)
    with open_installation(settings_of(plan)) as inst:
        sweep_objects(inst, datetime.now(UTC) + timedelta(seconds=1), timedelta(0))


class _Fate:
    """Kills or stops this process when it passes its point for the ``nth`` time."""

    def __init__(self, marks: Path, how: str, point: str, nth: int) -> None:
        self._marks, self._how, self._point, self._left = marks, how, point, nth
        self._unit = ""
        self._woke = False

    def noting_units(self, call: Callable[..., UnitOutcome]) -> Callable[..., UnitOutcome]:
        def noting(inst: object, pool: object, unit_id: str, **rest: object) -> UnitOutcome:
            self.make_room()
            self._unit = unit_id
            try:
                return call(inst, pool, unit_id, **rest)
            finally:
                self._unit = ""
                self.make_room()

        return noting

    def make_room(self) -> None:
        """End this process when it has met its fate and lived: it would do all the work, and nobody would die."""
        if self._woke:
            os._exit(AWAY)

    def reached(self, point: Failpoint) -> None:
        if point != self._point:
            return
        if point in _OF_A_UNIT and not self._unit:
            return  # while a document is planned, or a store is asked
        self._left -= 1
        if self._left > 0 or not self._may():
            return
        self._point = ""
        mark = self._marks / f"{self._how}-{os.getpid()}"
        mark.with_suffix(".new").write_text(f"{point.value} {self._unit}")
        mark.with_suffix(".new").rename(mark)  # it is read as soon as it is there
        if self._how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while not (self._marks / f"go-{os.getpid()}").exists():
            time.sleep(0.01)  # the campaign stops this process here
        self._woke = True

    def _may(self) -> bool:
        """Whether the unit in hand was not hit too often; counts it when it was not."""
        if not self._unit:
            return True
        for number in range(MOST_KILLS_OF_A_UNIT):
            try:
                (self._marks / f"unit-{self._unit}-{number}").touch(exist_ok=False)
                return True
            except FileExistsError:
                continue
        return False
