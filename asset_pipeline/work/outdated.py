"""Jobs whose place another takes: open ones of a library that was replaced, and those that a limit ended.

The result of an open job would not be what its extractor version says, so it is ended and a job of today's version,
for the same bytes, under the same policy and deadlines, does it. A job that failed at a limit of its policy is left as
it is, and where the limits are others today, a job under today's policy tries again. No other finished job is touched:
a new version re-extracts no history by itself (REQUIREMENTS R2.1).
"""

from __future__ import annotations

import logging
from dataclasses import fields
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select

from asset_pipeline.errors import IntegrityError
from asset_pipeline.extraction.engine import extractor_version, load_engine
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import jobs
from asset_pipeline.ledger.current import current_jobs
from asset_pipeline.ledger.requeue import WITHOUT_RESULT
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.ledger.schema import source_documents
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason, asks_for_limit
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import recorded_policy

logger = logging.getLogger(__name__)

_AT_A_LIMIT = tuple(reason.value for reason in Reason if asks_for_limit(reason))


def replace_outdated(inst: Installation, month: str, *, clock: Clock = utc_now) -> int:
    """Replace the open jobs of ``month`` that are of another extractor version than this program; how many."""
    query = select(jobs_table).where(jobs_table.c.month == month, jobs_table.c.state.in_(jobs.OPEN))
    with inst.ledger.read() as conn:
        found = conn.execute(query).mappings().all()
    versions: dict[tuple[str, str], tuple[str, Policy]] = {}
    replaced = 0
    for job in found:
        key = (job["engine"], job["policy_digest"])
        if key not in versions:
            versions[key] = _version_of_today(inst, *key)
        version, policy = versions[key]
        if version != job["extractor_version"]:
            replaced += _replace(inst, job, version, policy, clock)
    return replaced


def retry_under_other_limits(inst: Installation, month: str, *, clock: Clock = utc_now) -> int:
    """Queue a job under today's policy for each document of ``month`` that another limit ended; how many."""
    current = current_jobs(month)
    failed = current.c.state.in_(WITHOUT_RESULT), current.c.reason.in_(_AT_A_LIMIT), current.c.expired_at.is_(None)
    query = (
        select(current)
        .join(source_documents, source_documents.c.sha256 == current.c.source_hash)
        .where(*failed, current.c.policy_digest != inst.policy.digest, source_documents.c.stored == 1)
    )
    with inst.ledger.read() as conn:
        found = conn.execute(query).mappings().all()
    queued = 0
    for job in found:
        if _limits_of(inst, job["policy_digest"]) == inst.policy.limits:
            continue
        version = extractor_version(load_engine(job["engine"]), inst.policy)
        with inst.ledger.begin() as tx:
            queued += _queue_successor(tx, job, version, inst.policy, clock())
    return queued


def _limits_of(inst: Installation, policy_digest: str) -> Limits | None:
    try:
        return recorded_policy(inst, policy_digest).limits
    except IntegrityError:  # of another version of this program
        return None


def _version_of_today(inst: Installation, engine: str, policy_digest: str) -> tuple[str, Policy]:
    try:
        policy = recorded_policy(inst, policy_digest)
    except IntegrityError:  # of another version of this program
        policy = inst.policy
    return extractor_version(load_engine(engine), policy), policy


def _replace(inst: Installation, job: RowMapping, version: str, policy: Policy, clock: Clock) -> bool:
    now = clock()
    with inst.ledger.begin() as tx:
        ended = jobs.dead_letter_job(tx, job["job_id"], Reason.EXTRACTOR_CHANGED, now)
        if ended:
            _queue_successor(tx, job, version, policy, now)
    logger.info("job %s: replaced, %s", job["job_id"], Reason.EXTRACTOR_CHANGED.value)
    return ended


def _queue_successor(tx: Connection, job: RowMapping, version: str, policy: Policy, now: datetime) -> bool:
    """A job for the same bytes with the same deadlines; False when there is one of that version."""
    jobs.use_policy(tx, policy, now)
    kept = {field.name: job[field.name] for field in fields(jobs.NewJob)}
    _, created = jobs.queue_job(
        tx, jobs.NewJob(**kept | {"extractor_version": version, "policy_digest": policy.digest}), now
    )
    return created
