"""Whatever workers do in whatever order: one receipt a picture, one publication a unit, one end a job."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test
from sqlalchemy import select

from asset_pipeline.errors import LeaseLost
from asset_pipeline.ledger import requeue, units
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import attempts, audit_events, jobs, receipts
from asset_pipeline.ledger.schema import units as units_table
from asset_pipeline.reasons import Reason
from asset_pipeline_tests.ledger.making import LEASE, NOW, claim, complete, page, placement, publish, start

_NUMBERS = count()


class Workers(RuleBasedStateMachine):
    """Any number of workers over documents of two pages, each page a unit; claims may be used late, or never."""

    ledger: Ledger
    claims = Bundle("claims")
    jobs = Bundle("jobs")

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.fences: dict[str, int] = {}
        self.mine: list[str] = []

    @rule(target=jobs)
    def a_document_comes_in(self) -> str:
        job_id = start(self.ledger, f"{next(_NUMBERS)}.pdf", 2, 1)
        self.mine.append(job_id)
        return job_id

    @rule(seconds=st.sampled_from([1, 60, 91, 1000]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)

    @rule(target=claims, job_id=jobs, number=st.integers(0, 1))
    def a_worker_claims(self, job_id: str, number: int) -> units.Claim | None:
        taken = claim(self.ledger, f"{job_id}-{number:05d}", self.now)
        if taken is not None:
            assert taken.fence > self.fences.get(taken.unit_id, 0), "a fence only rises"
            self.fences[taken.unit_id] = taken.fence
        return taken

    @rule(held=claims)
    def a_worker_publishes(self, held: units.Claim | None) -> None:
        if held is None:
            return
        before = self._unit(held.unit_id)
        try:
            publish(self.ledger, held, page(held.first_page, placement(held.first_page)), now=self.now)
        except LeaseLost:
            assert (before.fence, before.state) != (held.fence, "running")
            with self.ledger.begin() as tx:
                units.note_return(tx, held, self.now)
        else:
            assert (before.fence, before.state) == (held.fence, "running")

    @rule(held=consumes(claims), reason=st.sampled_from([Reason.STORAGE_UNAVAILABLE, Reason.DECODER_CRASHED]))
    def a_worker_gives_back(self, held: units.Claim | None, reason: Reason) -> None:
        if held is not None:
            self._held(held, lambda tx: units.retry_unit(tx, held, reason, self.now, self.now))

    @rule(held=claims, reason=st.sampled_from([Reason.MALFORMED_DOCUMENT, Reason.RETRIES_EXHAUSTED]))
    def a_worker_fails(self, held: units.Claim | None, reason: Reason) -> None:
        if held is not None:
            self._held(held, lambda tx: units.fail_unit(tx, held, reason, self.now))

    @rule(held=claims)
    def a_worker_renews(self, held: units.Claim | None) -> None:
        if held is not None:
            self._held(held, lambda tx: units.renew_lease(tx, held, LEASE, self.now))

    @rule(job_id=jobs)
    def somebody_completes(self, job_id: str) -> None:
        complete(self.ledger, job_id, self.now)

    @rule(job_id=jobs)
    def an_operator_requeues(self, job_id: str) -> None:
        with self.ledger.begin() as tx:
            if requeue.requeue_job(tx, job_id, self.now, requeue.WITHOUT_RESULT):
                tx.execute(jobs.update().where(jobs.c.job_id == job_id).values(state="running"))

    def _held(self, held: units.Claim, change) -> None:
        try:
            with self.ledger.begin() as tx:
                change(tx)
        except LeaseLost:
            return
        assert self.fences[held.unit_id] == held.fence

    def _unit(self, unit_id: str):
        with self.ledger.read() as conn:
            return conn.execute(select(units_table).where(units_table.c.unit_id == unit_id)).one()

    @invariant()
    def the_ledger_is_sound(self) -> None:
        with self.ledger.read() as conn:
            for job_id in self.mine:
                of_job = {table.name: table.c.job_id == job_id for table in (receipts, units_table, audit_events)}
                done = conn.execute(select(units_table).where(of_job["units"], units_table.c.state == "done")).all()
                signed = conn.execute(select(receipts).where(of_job["receipts"])).all()
                assert {row.unit_id: row.fence for row in signed} == {row.unit_id: row.fence for row in done}
                assert len(signed) == len(done)
                events = conn.execute(select(audit_events.c.type).where(of_job["audit_events"])).scalars().all()
                assert events.count("unit_published") == len(done)
                state = conn.execute(select(jobs.c.state).where(jobs.c.job_id == job_id)).scalar_one()
                assert events.count("job_succeeded") == (state == "succeeded")
                assert state != "succeeded" or len(done) == 2
                open_ones = select(attempts.c.unit_id).where(attempts.c.job_id == job_id, attempts.c.ended_at.is_(None))
                held = list(conn.execute(open_ones).scalars())
                assert len(held) == len(set(held)), "one worker at a time holds a unit"


def test_workers_in_any_order_leave_a_sound_ledger(ledger: Ledger) -> None:
    machine = type("OnThisLedger", (Workers,), {"ledger": ledger})
    small = settings(
        max_examples=12, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    run_state_machine_as_test(machine, settings=small)
