"""Turns each queued job of a month into units of work, or refuses it.

A decoder process opens the document and counts its pages; nothing of the document is read in this
process. One worker at a time inspects a job, under a lease (``ledger.inspections``): two processes on one month
share the looking too, and a document that kills whoever opens it ends. A job starts and gets its units in one
transaction, so that a running job without units cannot exist.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import count

from sqlalchemy import RowMapping, select

from asset_pipeline.errors import IntegrityError, PipelineError, StorageError
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import inspections, jobs, units
from asset_pipeline.ledger.next_action import MAX_LOST_DECODERS, Action, Attempt, backoff, is_verdict, next_action
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.model import Source
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.work.away import check_mounted, is_away
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import SourceFacts, SourceGone, fetch_source, job_input
from asset_pipeline.work.lease import patiently, renewed
from asset_pipeline.work.slots import store_slot
from asset_pipeline.work.workplace import private_workplace

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Planned:
    """What planning decided about a job. ``reason`` None means that it has units now, where it was ``claimed``."""

    job_id: str
    reason: Reason | None
    claimed: bool = True


def open_jobs(inst: Installation, month: str, *states: str) -> list[str]:
    """Jobs of ``month`` in one of ``states``, oldest first."""
    query = (
        select(jobs_table.c.job_id)
        .where(jobs_table.c.month == month, jobs_table.c.state.in_(states))
        .order_by(jobs_table.c.queued_at, jobs_table.c.job_id)
    )
    with inst.ledger.read() as conn:
        return list(conn.execute(query).scalars())


def page_ranges(pages: int | None, per_unit: int) -> list[tuple[int, int | None]]:
    """Page ranges of one document, in order; one open range where the pages were not counted."""
    if pages is None or pages <= per_unit:
        return [(1, pages)]
    return [(first, min(first + per_unit - 1, pages)) for first in range(1, pages + 1, per_unit)]


def plan_job(
    inst: Installation,
    pool: DecoderPool,
    job_id: str,
    *,
    stopping: threading.Event | None = None,
    clock: Clock = utc_now,
) -> Planned:
    """Inspect the job's source; start the job with its units, or refuse it with the reason.

    Raises StorageError when a store is away, ConfigurationError when this machine cannot work. Nothing is recorded
    then: the job is still queued, and anybody's. A source that cannot be read although its store answers is tried
    again, with pauses, before the job is given up.
    """
    if stopping is not None and stopping.is_set():
        return Planned(job_id, None, claimed=False)
    lease = timedelta(seconds=inst.settings.lease_seconds)
    with inst.ledger.begin() as tx:
        look = inspections.claim_inspection(tx, job_id, lease, clock())
        job = jobs.job_of(tx, job_id)
    if look is None:
        return Planned(job_id, Reason(job["reason"]) if job["reason"] else None, claimed=False)
    try:
        with renewed(inst.ledger, lambda tx, now: inspections.renew_inspection(tx, look, lease, now), lease, clock):
            inspection = _inspection_of(inst, pool, job, stopping or threading.Event(), clock)
    except (_Stopped, PipelineError) as error:
        with suppress(StorageError):  # it stays away: the lease runs out by itself
            patiently(inst.ledger, lambda tx: inspections.end_inspection(tx, look), stopping)
        if isinstance(error, _Stopped):
            return Planned(job_id, None)
        raise
    source, reason = inspection.source, inspection.outcome
    with inst.ledger.begin() as tx:
        if not inspections.end_inspection(tx, look):
            return Planned(job_id, None)
        if reason is None:
            jobs.start_job(tx, job_id, pages=source.pages, encrypted=source.encrypted, now=clock())
            units.plan_units(tx, job_id, page_ranges(source.pages, inst.settings.pages_per_unit))
        elif is_verdict(reason):
            jobs.refuse_job(tx, job_id, reason, clock(), pages=source.pages, encrypted=source.encrypted)
        else:
            jobs.dead_letter_job(tx, job_id, reason, clock())
    verdict = f"refused, {reason.value}" if reason else "planned"
    logger.info("job %s, correlation %s: %s", job_id, job["correlation_id"], verdict)
    return Planned(job_id, reason)


def _inspection_of(
    inst: Installation, pool: DecoderPool, job: RowMapping, stopping: threading.Event, clock: Clock
) -> Inspection:
    """What the document says of itself, or why it cannot. Raises _Stopped, and PipelineError for what is away."""
    try:
        return _inspect_patiently(inst, pool, job, stopping, clock)
    except IntegrityError as error:
        if isinstance(error, SourceGone):
            check_mounted(inst)
        return Inspection(_UNREAD, error.reason)
    except DecoderLost as lost:
        if stopping.is_set():
            raise _Stopped from None
        return Inspection(_UNREAD, lost.reason)


_UNREAD = Source(sha256="0" * 64, bytes=0, media_type=None, pages=None, encrypted=None)


class _Stopped(Exception):
    """The work was told to stop while it waited."""


def _inspect_patiently(
    inst: Installation, pool: DecoderPool, job: RowMapping, stopping: threading.Event, clock: Clock
) -> Inspection:
    source, policy = job_input(inst, job["source_hash"], job["policy_digest"])
    for tries in count():
        try:
            return _inspect(inst, pool, job, source, policy, partial(store_slot, inst, stopping, clock))
        except StorageError as error:
            if is_away(inst, error, source.bytes):
                raise
            attempt = Attempt(validated=False, stored=False, reason=error.reason)
            if next_action(attempt, tries) is not Action.RETRY:
                return Inspection(_UNREAD, error.reason)
            if stopping.wait(backoff(tries).total_seconds()):
                raise _Stopped from None
    raise AssertionError("unreachable")


def _inspect(
    inst: Installation,
    pool: DecoderPool,
    job: RowMapping,
    source: SourceFacts,
    policy: Policy,
    slot: Callable[[], AbstractContextManager[None]],
) -> Inspection:
    def inspect() -> Inspection:
        with private_workplace(inst.settings.work_folder) as place:
            with slot():
                fetch_source(inst, job["source_hash"], place)
            request = Request(
                document=place.document,
                out=place.out,
                policy=policy,
                source_sha256=job["source_hash"],
                source_bytes=source.bytes,
                media_type=source.media_type,
            )
            return pool.inspect(job["engine"], request)

    return _at_most(MAX_LOST_DECODERS, inspect)


def _at_most(times: int, inspect: Callable[[], Inspection]) -> Inspection:
    """``inspect``, again in a fresh process when its decoder was lost, ``times`` in all."""
    for _ in range(times - 1):
        try:
            return inspect()
        except DecoderLost:
            continue
    return inspect()
