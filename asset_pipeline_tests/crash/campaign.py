"""Works small months with processes that die and stall at every transition, then asks what became of the documents.

Run as a script, with ``Plan``s as JSON: this process imports what workers need, stays single-threaded and forks one
worker after the other, so that a kill costs milliseconds and not the start of a program. It ends with one line of
JSON, a ``Report`` for each. What a worker does is in ``worker``, what must hold at the end in ``verdict``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path

from asset_pipeline.failpoints import Failpoint

PAUSE_SECONDS = 0.5
"""After a worker found a server away, before the next one is started."""

SUBMITTED = "submitted"
"""Name of the file that says that all documents were submitted."""

AWAY_SEEN = "away"
"""Name of the file that says that a worker found a store or the database away."""

STOPPABLE = tuple(point for point in Failpoint if not point.endswith("before_commit"))
"""A worker that stalls within a transaction stalls SQLite for all: that is the busy timeout's test, not this one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. ``settings`` are those of the installation, in ``folder`` where they do not say otherwise."""

    folder: str
    settings: dict[str, object]
    documents: int
    documents_a_month: int = 40
    poison: int = 1
    poison_to_open: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    stops: dict[str, int] = field(default_factory=dict)
    processes: int = 4
    sweep_at_stops: bool = False
    forgotten: int = 0
    mutant: str = ""
    seconds: float = 600.0
    seed: int = 1


@dataclass(slots=True)
class Report:
    """What was done, and what was wrong in the end."""

    kills: dict[str, int]
    stops: dict[str, int]
    deaths: int
    away: int
    seconds: float
    facts: dict[str, int]
    wrong: list[str]


def even(count: int, points: tuple[Failpoint, ...] = tuple(Failpoint)) -> dict[str, int]:
    """``count`` spread evenly over ``points``, rounded up."""
    return {point.value: -(-count // len(points)) for point in points}


def run(plan: Plan, environment: dict[str, str] | None = None, within: Sequence[str] = ()) -> Report:
    """Carry out ``plan`` in a process of its own, started by the command ``within`` where there is one."""
    return run_all([plan], environment, within)[0]


def run_all(
    plans: Sequence[Plan], environment: dict[str, str] | None = None, within: Sequence[str] = ()
) -> list[Report]:
    """``run`` for one plan after the other, all forked from the same process."""
    command = [*within, sys.executable, "-m", __name__, json.dumps([asdict(plan) for plan in plans])]
    started = subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, err = started.communicate(timeout=sum(plan.seconds for plan in plans) + 60)
    except BaseException:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
        raise
    if started.returncode:
        raise RuntimeError(f"the campaign did not end well:\n{err.decode(errors='replace')[-4000:]}")
    return [Report(**report) for report in json.loads(out.splitlines()[-1])]


class Campaign:
    """Forks workers until every month is settled and every kill was done, or nothing is left to kill."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._marks = Path(plan.folder, "marks")
        self._marks.mkdir(parents=True, exist_ok=True)
        self._working: dict[int, tuple[str, str]] = {}
        self._successors: dict[int, int] = {}
        self._done: dict[str, Counter[str]] = {"kill": Counter(), "stop": Counter()}
        self._deaths = self._away = 0
        self._settled = False
        self._pause = 0.0

    def carry_out(self) -> Report:
        """Submit twice, work, judge."""
        from asset_pipeline_tests.crash import verdict, worker

        began = time.monotonic()
        worker.warm_up()
        in_child(lambda: worker.submit(self._plan))
        Path(self._plan.folder, SUBMITTED).touch()
        self._work(began)
        if self._plan.forgotten:
            in_child(lambda: worker.forget(self._plan))
            self._settled = False
            self._work(began)
        answer = Path(self._plan.folder, "verdict.json")
        in_child(lambda: answer.write_text(json.dumps(verdict.judge(self._plan))))
        facts, wrong = json.loads(answer.read_text())
        return self._report(began, facts, wrong)

    def _work(self, began: float) -> None:
        while not self._settled or self._working or self._successors:
            if time.monotonic() - began > self._plan.seconds:
                for pid in [*self._working, *self._successors]:
                    os.kill(pid, signal.SIGKILL)
                raise SystemExit(f"it did not end in time: {self._report(began, {}, [])}")
            while len(self._working) < self._plan.processes and not self._settled and time.monotonic() >= self._pause:
                self._start()
            self._look()
            time.sleep(0.005)

    def _start(self) -> None:
        from asset_pipeline_tests.crash import worker

        how, point = self._next_misfortune()
        nth = self._chance.choice((1, 1, 2))
        pid = os.fork()
        if not pid:
            end_with(lambda: worker.work(self._plan, self._marks, how, point, nth))
        self._working[pid] = how, point

    def _next_misfortune(self) -> tuple[str, str]:
        """What is still to be done, weighted by how much of it; nothing where enough workers are at it already."""
        open_ones = []
        for how, wanted in (("kill", self._plan.kills), ("stop", self._plan.stops)):
            for point, count in wanted.items():
                left = count - self._done[how][point] - list(self._working.values()).count((how, point))
                open_ones += [(how, point)] * max(left, 0)
        return self._chance.choice(open_ones) if open_ones else ("", "")

    def _look(self) -> None:
        for pid in [*self._working, *self._successors]:
            if (self._marks / f"stop-{pid}").exists():
                self._stall(pid)
                continue
            found, status = os.waitpid(pid, os.WNOHANG)
            if not found:
                continue
            if pid in self._successors:
                self._wake(self._successors.pop(pid))
                continue
            del self._working[pid]
            if os.WIFSIGNALED(status):
                self._deaths += 1
                self._count("kill", pid)
            elif os.WEXITSTATUS(status) == AWAY:
                self._away += 1
                Path(self._plan.folder, AWAY_SEEN).touch()
                self._pause = time.monotonic() + PAUSE_SECONDS
            elif os.WEXITSTATUS(status):
                raise SystemExit(f"a worker failed with status {os.WEXITSTATUS(status)}")
            else:
                self._settled = True

    def _wake(self, pid: int) -> None:
        (self._marks / f"go-{pid}").touch()
        os.kill(pid, signal.SIGCONT)

    def _stall(self, pid: int) -> None:
        """Stop the worker, and let somebody else end what it holds; it wakes when that is done."""
        from asset_pipeline_tests.crash import worker

        os.kill(pid, signal.SIGSTOP)
        while self._is_locked():  # another of its threads is in a transaction, which on SQLite would stall everybody
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.02)
            os.kill(pid, signal.SIGSTOP)
        unit_id = self._count("stop", pid)
        if self._plan.sweep_at_stops:
            in_child(lambda: worker.sweep(self._plan))
            self._wake(pid)
            return
        successor = os.fork()
        if not successor:
            end_with(lambda: worker.succeed(self._plan, unit_id))
        self._successors[successor] = pid

    def _is_locked(self) -> bool:
        """Whether somebody stays within a transaction of the ledger for longer than any of these takes."""
        if "ledger" in self._plan.settings:
            held = self._transactions()
            time.sleep(0.3 if held else 0)
            return bool(held & self._transactions())
        with closing(sqlite3.connect(Path(self._plan.folder, "home", "ledger.db"), timeout=1.0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False

    def _transactions(self) -> set[tuple[int, object]]:
        """Transactions on PostgreSQL whose client is silent; none while the server is away."""
        import psycopg2

        query = "SELECT pid, xact_start FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        try:
            with closing(psycopg2.connect(str(self._plan.settings["ledger"]))) as opened, opened.cursor() as cursor:
                cursor.execute(f"{query} AND datname = current_database()")
                return set(cursor.fetchall())
        except psycopg2.OperationalError:
            return set()

    def _count(self, how: str, pid: int) -> str:
        """Count what the worker itself announced, and what unit it had: a poisonous document leaves no mark."""
        mark = self._marks / f"{how}-{pid}"
        if not mark.exists():
            return ""
        point, _, unit_id = mark.read_text().partition(" ")
        self._done[how][point] += 1
        mark.unlink()
        return unit_id

    def _report(self, began: float, facts: dict[str, int], wrong: list[str]) -> Report:
        kills, stops = (dict(self._done[how]) for how in ("kill", "stop"))
        return Report(kills, stops, self._deaths, self._away, round(time.monotonic() - began, 1), facts, wrong)


AWAY = 3
"""Exit status of a worker for which a store or the database was away."""


def end_with(call: Callable[[], object]) -> None:
    """``call`` and end this forked process, without the exit handlers of the process it was forked from."""
    status = 1
    try:
        call()
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - told on the standard error of the campaign, which its caller shows
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def in_child(call: Callable[[], object]) -> None:
    """``call`` in a process of its own, so that no thread or connection of it stays here; again when it failed."""
    for pause in (1.0, 5.0, 0.0):
        pid = os.fork()
        if not pid:
            end_with(call)
        _, status = os.waitpid(pid, 0)
        if not status:
            return
        time.sleep(pause)
    raise SystemExit(f"a step of the campaign failed with status {status}")


if __name__ == "__main__":
    from asset_pipeline_tests.crash import campaign

    ordered = [campaign.Plan(**plan) for plan in json.loads(sys.argv[1])]
    print(json.dumps([asdict(campaign.Campaign(plan).carry_out()) for plan in ordered]))
