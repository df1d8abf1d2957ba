"""Open jobs that this installation can no longer do, because a library was replaced after they were queued.

Their result would not be what their extractor version says, so each is ended and a job of today's
version, for the same bytes, under the same policy and deadlines, takes its place. Finished jobs are
never touched: a new version re-extracts no history by itself (REQUIREMENTS R2.1).
"""

from __future__ import annotations

import logging
from dataclasses import fields

from sqlalchemy import RowMapping, select

from asset_pipeline.errors import IntegrityError
from asset_pipeline.extraction.engine import extractor_version, load_engine
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import jobs
from asset_pipeline.ledger.schema import jobs as jobs_table
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.work.clock import Clock, utc_now
from asset_pipeline.work.inputs import recorded_policy

logger = logging.getLogger(__name__)


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


def _version_of_today(inst: Installation, engine: str, policy_digest: str) -> tuple[str, Policy]:
    try:
        policy = recorded_policy(inst, policy_digest)
    except IntegrityError:  # of another version of this program
        policy = inst.policy
    return extractor_version(load_engine(engine), policy), policy


def _replace(inst: Installation, job: RowMapping, version: str, policy: Policy, clock: Clock) -> bool:
    now = clock()
    kept = {field.name: job[field.name] for field in fields(jobs.NewJob)}
    successor = jobs.NewJob(**kept | {"extractor_version": version, "policy_digest": policy.digest})
    with inst.ledger.begin() as tx:
        ended = jobs.dead_letter_job(tx, job["job_id"], Reason.EXTRACTOR_CHANGED, now)
        if ended:
            if jobs.record_policy(tx, policy, now):
                jobs.record_policy_change(tx, policy, now)
            jobs.queue_job(tx, successor, now)
    logger.info("job %s: replaced, %s", job["job_id"], Reason.EXTRACTOR_CHANGED.value)
    return ended
