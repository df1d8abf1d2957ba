"""One attempt at one unit: claim, fetch, decode in a child, store the pictures, record.

Every way out ends in the ledger: published, retried later, failed for good, or dropped because the
lease was lost. Which of these is decided by ``ledger.next_action`` and nowhere else. A refused
document is a result, not an exception. A store or database that is away is an exception: the unit is given
back at no cost, because it would fail any other as well. What may come next (other units, completion) is
``month``'s.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from asset_pipeline.archive.publish import store_pictures
from asset_pipeline.errors import ConfigurationError, IntegrityError, LeaseLost, StorageError
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.extraction.sandbox.child import describe
from asset_pipeline.failpoints import Failpoint, reached
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import publication, units
from asset_pipeline.ledger.next_action import Action, Attempt, backoff, next_action
from asset_pipeline.ledger.objects import ObjectsSwept
from asset_pipeline.model import Extraction
from asset_pipeline.reasons import Reason
from asset_pipeline.work.away import check_mounted, is_away
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import SourceGone, fetch_source, job_input
from asset_pipeline.work.lease import patiently, renewed
from asset_pipeline.work.slots import store_slot
from asset_pipeline.work.workplace import Workplace, private_workplace

logger = logging.getLogger(__name__)


class Outcome(StrEnum):
    """How an attempt ended."""

    PUBLISHED = "published"
    REFUSED = "refused"
    RETRIED = "retried"
    DEAD_LETTERED = "dead_lettered"
    FENCED = "fenced"
    RELEASED = "released"
    NOT_CLAIMED = "not_claimed"


_OUTCOMES = {
    Action.RETRY: Outcome.RETRIED,
    Action.QUARANTINE: Outcome.REFUSED,
    Action.DEAD_LETTER: Outcome.DEAD_LETTERED,
}


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """What one call did: ids, counts and a reason; no data of the document."""

    unit_id: str
    outcome: Outcome
    job_id: str | None = None
    reason: Reason | None = None
    pages: int = 0
    pictures: int = 0
    bytes_written: int = 0


@dataclass(slots=True)
class _Watch:
    """Milliseconds of the stages of one attempt, how far it came, and how large its source is."""

    began: float = field(default_factory=time.monotonic)
    fetch: float = 0.0
    decode: float = 0.0
    publish: float = 0.0
    validated: bool = False
    source_bytes: int = 0

    def lap(self) -> float:
        now = time.monotonic()
        spent, self.began = (now - self.began) * 1000, now
        return spent

    def until_failure(self) -> dict[str, Any]:
        """What the stages took of an attempt that failed; the one that it failed in ended just now."""
        stages = {"fetch_ms": self.fetch, "decode_ms": self.decode, "publish_ms": self.publish}
        done = {name: spent for name, spent in stages.items() if spent}
        if self.decode and not self.validated:  # the document was refused, which is no failure of a stage
            return done
        failed = next((name for name in stages if name not in done), None)
        return done if failed is None else done | {failed: self.lap()}


def worker_name() -> str:
    """Names this thread of this process on this machine; fits the ledger's column."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{threading.get_ident() % 1_000_000}"


def work_unit(
    inst: Installation,
    pool: DecoderPool,
    unit_id: str,
    *,
    stopping: threading.Event | None = None,
    clock: Clock = utc_now,
) -> UnitOutcome:
    """Attempt the unit once.

    Raises StorageError when a store or the ledger is away, ConfigurationError when this machine cannot work; the unit
    is given back before, unless the ledger stays away: then it is free when its lease runs out.
    """
    if stopping is not None and stopping.is_set():
        return UnitOutcome(unit_id, Outcome.NOT_CLAIMED)
    lease = timedelta(seconds=inst.settings.lease_seconds)
    cage = pool.cage
    with inst.ledger.begin() as tx:
        claim = units.claim_unit(tx, unit_id, worker_name(), lease, clock(), cage)
    if claim is None:
        return UnitOutcome(unit_id, Outcome.NOT_CLAIMED)
    reached(Failpoint.CLAIMED)
    try:
        with renewed(inst.ledger, lambda tx, now: units.renew_lease(tx, claim, lease, now), lease, clock):
            outcome = _attempt(inst, pool, claim, stopping, clock)
    except LeaseLost:
        with inst.ledger.begin() as tx:
            units.note_return(tx, claim, clock())
        outcome = UnitOutcome(unit_id, Outcome.FENCED, claim.job_id, Reason.LEASE_CONFLICT)
    logger.info(
        "unit %s of job %s (fence %d): %s%s",
        unit_id,
        claim.job_id,
        claim.fence,
        outcome.outcome.value,
        f", {outcome.reason.value}" if outcome.reason else "",
    )
    return outcome


def _attempt(
    inst: Installation, pool: DecoderPool, claim: units.Claim, stopping: threading.Event | None, clock: Clock
) -> UnitOutcome:
    watch = _Watch()
    try:
        with private_workplace(inst.settings.work_folder) as place:
            extraction = _decode(inst, pool, claim, place, watch, stopping, clock)
            if extraction.outcome != "ok":
                refused = Attempt(validated=False, stored=False, reason=extraction.outcome)
                return _end(inst, claim, refused, watch, clock)
            watch.validated = True
            return _publish(inst, claim, extraction, place.out, watch, stopping, clock)
    except DecoderLost as lost:
        if stopping is not None and stopping.is_set():
            return _release(inst, claim, stopping, clock)
        return _end(inst, claim, Attempt(validated=False, stored=False, reason=lost.reason), watch, clock)
    except StorageError as error:
        if is_away(inst, error, watch.source_bytes):
            _release(inst, claim, stopping, clock, error)
            raise
        return _end(inst, claim, Attempt(validated=watch.validated, stored=False, reason=error.reason), watch, clock)
    except IntegrityError as error:
        if isinstance(error, SourceGone):
            _refuse_unmounted(inst, claim, stopping, clock)
        return _end(inst, claim, Attempt(validated=watch.validated, stored=False, reason=error.reason), watch, clock)
    except LeaseLost:
        raise
    except ConfigurationError:  # this machine's fault, not the document's
        _release(inst, claim, stopping, clock)
        raise
    except Exception as error:  # noqa: BLE001 - the border of one unit: a defect must not take the month along
        logger.error("unit %s of job %s: %s", claim.unit_id, claim.job_id, describe(error))
        return _end(inst, claim, Attempt(validated=False, stored=False, reason=Reason.INTERNAL_ERROR), watch, clock)


def _refuse_unmounted(inst: Installation, claim: units.Claim, stopping: threading.Event | None, clock: Clock) -> None:
    """Give the unit back and raise StorageError when it is not its source that is gone, but the disk of all."""
    try:
        check_mounted(inst)
    except StorageError as error:
        _release(inst, claim, stopping, clock, error)
        raise


def _decode(
    inst: Installation,
    pool: DecoderPool,
    claim: units.Claim,
    place: Workplace,
    watch: _Watch,
    stopping: threading.Event | None,
    clock: Clock,
) -> Extraction:
    source, policy = job_input(inst, claim.source_hash, claim.policy_digest)
    watch.source_bytes = source.bytes
    with store_slot(inst, stopping, clock):
        watch.lap()
        fetch_source(inst, claim.source_hash, place)
        watch.fetch = watch.lap()
    request = Request(
        document=place.document,
        out=place.out,
        policy=policy,
        source_sha256=claim.source_hash,
        source_bytes=source.bytes,
        media_type=source.media_type,
        first=claim.first_page,
        last=claim.last_page,
        figures=policy.figures.enabled,
    )
    extraction = pool.extract(claim.engine, request, seconds=policy.limits.document_seconds)
    watch.decode = watch.lap()
    return extraction


SWEPT_TRIES = 3
"""A sweep may take files between their being put and being named: they are put again, and no document pays for it."""


def _publish(
    inst: Installation,
    claim: units.Claim,
    extraction: Extraction,
    folder: Path,
    watch: _Watch,
    stopping: threading.Event | None,
    clock: Clock,
) -> UnitOutcome:
    written = 0
    for again in reversed(range(SWEPT_TRIES)):
        with store_slot(inst, stopping, clock):
            watch.lap()
            written += store_pictures(inst, folder, extraction)
            watch.publish += watch.lap()
        timings = publication.Timings(fetch=watch.fetch, decode=watch.decode, publish=watch.publish)
        try:
            with inst.ledger.begin() as tx:
                published = publication.publish_unit(tx, claim, extraction, timings, written, clock())
                reached(Failpoint.UNIT_BEFORE_COMMIT)
            break
        except ObjectsSwept:
            if not again:
                raise
    reached(Failpoint.UNIT_COMMITTED)
    return UnitOutcome(
        claim.unit_id,
        Outcome.PUBLISHED,
        claim.job_id,
        pages=len(extraction.pages),
        pictures=published.receipts_added,
        bytes_written=written,
    )


def _end(inst: Installation, claim: units.Claim, attempt: Attempt, watch: _Watch, clock: Clock) -> UnitOutcome:
    """Record a failed attempt: again later, or never."""
    reason = attempt.reason or Reason.INTERNAL_ERROR
    action = next_action(attempt, claim.tries, lost_decoders=claim.lost_decoders)
    spent = watch.until_failure()
    now = clock()
    with inst.ledger.begin() as tx:
        if action is Action.RETRY:
            units.retry_unit(tx, claim, reason, now + backoff(claim.tries), now, **spent)
        else:
            units.fail_unit(tx, claim, reason, now, **spent)
    return UnitOutcome(claim.unit_id, _OUTCOMES[action], claim.job_id, reason)


def _release(
    inst: Installation,
    claim: units.Claim,
    stopping: threading.Event | None,
    clock: Clock,
    error: StorageError | None = None,
) -> UnitOutcome:
    """Give a unit back at no cost to its budget: claimable at once, or when a service that asked to wait says."""
    reason = error.reason if error else Reason.LEASE_CONFLICT
    hint = error.hint if error else None

    def give_back(tx: Connection) -> None:
        now = clock()
        due = now + backoff(0, hint) if hint else now
        units.retry_unit(tx, claim, reason, due, now, spends_budget=False)

    patiently(inst.ledger, give_back, stopping)
    return UnitOutcome(claim.unit_id, Outcome.RELEASED, claim.job_id)
