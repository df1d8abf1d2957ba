"""Works a month until nothing in it is open: inspect, attempt, wait for others, complete.

The ledger is the guard, not this loop: any number of processes may run it over one month at once.
Each takes what it can claim, waits for the leases of the others, and takes over what they drop, so
every caller returns with the whole month settled. Whose turn it is is asked a few turns ahead and no
further: a document that comes in meanwhile gets its turn beside those that were there before. Interrupted,
or with a store away, it gives its units back at once and at no cost to them.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from asset_pipeline.errors import IntegrityError
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import completion, inspections, turns, units
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.executor import Call, LocalExecutor, NextCalls, UnitExecutor
from asset_pipeline.work.interrupts import signals_held
from asset_pipeline.work.outdated import replace_outdated, retry_under_other_limits
from asset_pipeline.work.plan import Planned, open_jobs, plan_job
from asset_pipeline.work.unit import Outcome, UnitOutcome, work_unit

logger = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]

LONGEST_PAUSE_SECONDS = 0.5
"""Others may end long before their lease does, so the ledger is asked at least this often."""

AHEAD = 32
"""Turns that are asked for at once."""

FRESH = timedelta(seconds=1)
"""How long whose turn it is stays true: a document that comes in waits so long for its first turn."""

_ENDED = frozenset({Outcome.PUBLISHED, Outcome.REFUSED, Outcome.DEAD_LETTERED})


@dataclass(frozen=True, slots=True)
class MonthWork:
    """What one call did in a month; work of others at the same time is not in here."""

    units: int
    documents: int
    pages: int
    pictures: int
    bytes_written: int
    retried: int
    seconds: float


def worker_count(inst: Installation, workers: int | None = None) -> int:
    """Decoder processes to run: the argument, else the settings, else one a core that this process may use."""
    return workers or inst.settings.workers or len(os.sched_getaffinity(0))


def work_month(
    inst: Installation,
    month: str,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
    clock: Clock = utc_now,
) -> MonthWork:
    """Settle all open work of ``month``, on this machine or on those of the scheduler that the settings name.

    Raises PipelineError when a store or the ledger is away: what was in work is given back, and the next call goes
    on. Interrupted, it gives the work back as well, and the interrupt goes on from here. ``progress`` is called with
    the stage (``inspect`` or ``extract``), what is done and what is known to be there.
    """
    began = time.monotonic()
    retry_under_other_limits(inst, month, clock=clock)
    if not open_jobs(inst, month, "queued", "running"):
        return _Tally().result(began)
    replace_outdated(inst, month, clock=clock)
    inst.sources.check()
    inst.archive.check()
    stopping = threading.Event()
    with signals_held(stopping) as came, open_executor(inst, workers, clock) as executor:
        work = MonthLoop(inst, month, executor, progress, clock, stopping).settle()
    if came:  # and the handler that was there before raised nothing
        raise KeyboardInterrupt
    return work


def open_executor(inst: Installation, workers: int | None, clock: Clock) -> AbstractContextManager[UnitExecutor]:
    """The executor of units that the settings choose. Raises ConfigurationError where its library is not installed."""
    if not inst.settings.scheduler:
        return LocalExecutor(inst, worker_count(inst, workers), clock)
    from asset_pipeline.work.distributed import DistributedExecutor  # an extra, which most installations do without

    return DistributedExecutor(inst)


class MonthLoop:
    """One caller's pass over a month, on an executor that it is given."""

    def __init__(
        self,
        inst: Installation,
        month: str,
        executor: UnitExecutor,
        progress: Progress | None = None,
        clock: Clock = utc_now,
        stopping: threading.Event | None = None,
    ) -> None:
        self._inst = inst
        self._month = month
        self._executor = executor
        self._progress = progress or _unseen
        self._clock = clock
        self._stopping = stopping or threading.Event()
        self._tally = _Tally()
        self._waiting: deque[turns.Turn] = deque()
        self._under_way: set[str] = set()
        self._asked_at = clock()
        self._inspected = self._to_inspect = self._to_end = 0

    def settle(self) -> MonthWork:
        """Return when no job of the month is open, whoever did the work, or when told to stop."""
        began = time.monotonic()
        try:
            while not self._stopping.is_set():
                if self._take_turns() or self._stopping.is_set():
                    continue
                self._complete_left_over()
                if not open_jobs(self._inst, self._month, "queued", "running"):
                    break
                self._pause()
            return self._tally.result(began)
        finally:
            # A decoder that is lost from here on was ended by us, not by its document.
            self._stopping.set()

    def _take_turns(self) -> bool:
        """Do what may be begun, until nothing is left of it; False when there was nothing."""
        if self._do(self._next_calls):
            return True
        # One by one, so that a document that takes its worker along takes no other document along.
        with self._inst.ledger.read() as conn:
            suspects = turns.next_suspects(conn, self._month, self._clock(), AHEAD)
        return any(self._do(_once(_call_of(turn))) for turn in suspects)

    def _next_calls(self, room: int) -> list[Call[Planned | UnitOutcome]]:
        now = self._clock()
        if not self._waiting or now - self._asked_at >= FRESH:
            self._asked_at = now
            with self._inst.ledger.read() as conn:
                # Those that are under way may not be claimed yet, and are told again.
                found = turns.next_turns(conn, self._month, now, AHEAD + len(self._under_way))
                queued = inspections.count_queued(conn, self._month)
                unsettled, _ = units.busy(conn, self._month, now)
            self._to_inspect, self._to_end = self._inspected + queued, self._tally.ended + queued + unsettled
            self._waiting = deque(turn for turn in found if turn.ident not in self._under_way)
        taken = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        self._under_way.update(turn.ident for turn in taken)
        return [_call_of(turn) for turn in taken]

    def _do(self, next_calls: NextCalls[Planned | UnitOutcome]) -> bool:
        """Whether anything was claimed. What a lost machine had under way is offered again by the next call."""
        self._waiting.clear()
        self._under_way.clear()
        claimed = False
        for answer in self._executor.run(next_calls, self._stopping):
            if isinstance(answer, Planned):
                claimed = self._note_planned(answer) or claimed
            else:
                claimed = self._note_attempt(answer) or claimed
        return claimed

    def _note_planned(self, planned: Planned) -> bool:
        self._under_way.discard(planned.job_id)
        if planned.claimed:
            self._tally.documents += planned.reason is not None
            self._inspected += 1
            if not self._tally.ended:  # from then on the work is told, which goes on beside it
                self._progress("inspect", self._inspected, max(self._to_inspect, self._inspected))
        return planned.claimed

    def _note_attempt(self, outcome: UnitOutcome) -> bool:
        self._under_way.discard(outcome.unit_id)
        self._tally.add(outcome)
        if outcome.outcome in _ENDED:
            self._progress("extract", self._tally.ended, max(self._to_end, self._tally.ended))
        if outcome.job_id:
            self._complete(outcome.job_id)
        return outcome.outcome is not Outcome.NOT_CLAIMED

    def _complete_left_over(self) -> None:
        """Complete what a worker left that ended between its last unit and the completion."""
        for job_id in open_jobs(self._inst, self._month, "running"):
            self._complete(job_id)

    def _complete(self, job_id: str) -> None:
        try:
            with self._inst.ledger.begin() as tx:
                ended = completion.complete_job(tx, job_id, self._clock())
                if ended:
                    reached(Failpoint.DONE_BEFORE_COMMIT)
            if ended:
                reached(Failpoint.DONE_COMMITTED)
            self._tally.documents += ended
        except IntegrityError as error:  # recorded, and the job is a dead letter: the others go on
            self._tally.documents += 1
            logger.error("job %s: %s", job_id, error.what)

    def _pause(self) -> None:
        with self._inst.ledger.read() as conn:
            _, moment = units.busy(conn, self._month, self._clock())
        self._stopping.wait(pause_seconds(moment, self._clock()))


def _call_of(turn: turns.Turn) -> Call[Planned | UnitOutcome]:
    return (work_unit, turn.unit_id) if turn.unit_id else (plan_job, turn.job_id)


def _once(call: Call[Planned | UnitOutcome]) -> NextCalls[Planned | UnitOutcome]:
    left = [call]
    return lambda room: [left.pop()] if left and room else []


def _unseen(_stage: str, _done: int, _total: int) -> None:
    return None


def pause_seconds(moment: datetime | None, now: datetime) -> float:
    """How long to wait before the ledger is asked again, when something may become claimable at ``moment``."""
    if moment is None:
        return LONGEST_PAUSE_SECONDS
    return min(max((moment - now).total_seconds(), 0.02), LONGEST_PAUSE_SECONDS)


@dataclass(slots=True)
class _Tally:
    documents: int = 0
    pages: int = 0
    pictures: int = 0
    bytes_written: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)

    @property
    def ended(self) -> int:
        return sum(self.outcomes[outcome] for outcome in _ENDED)

    def add(self, outcome: UnitOutcome) -> None:
        self.outcomes[outcome.outcome] += 1
        self.pages += outcome.pages
        self.pictures += outcome.pictures
        self.bytes_written += outcome.bytes_written

    def result(self, began: float) -> MonthWork:
        return MonthWork(
            units=self.outcomes[Outcome.PUBLISHED],
            documents=self.documents,
            pages=self.pages,
            pictures=self.pictures,
            bytes_written=self.bytes_written,
            retried=self.outcomes[Outcome.RETRIED],
            seconds=time.monotonic() - began,
        )
