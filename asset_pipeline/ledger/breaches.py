"""Which budgets an attempt broke, and whether for want of capacity or because of what the document is.

The budgets are those of the job's own policy, so that a later change of them judges nothing anew. A stage that
took too long is a matter of *capacity* (work waited, a store or machine was slow) unless the unit has more pixels than
is usual, or its decoder was ended for time or memory: then it is the *input's shape* (REQUIREMENTS R10). Pure, but
for reading the budgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import Connection, select

from asset_pipeline.ledger.schema import attempts, jobs, policies
from asset_pipeline.policy import Objectives
from asset_pipeline.reasons import Reason

CAPACITY = "capacity"
INPUT_SHAPE = "input_shape"

STAGES = ("queue", "fetch", "decode", "publish")
_SHAPE_REASONS = frozenset({Reason.DEADLINE_EXCEEDED, Reason.MEMORY_EXCEEDED})


def breaches(
    budgets: Objectives, milliseconds: Mapping[str, float | None], pixels: int | None, reason: Reason | None = None
) -> dict[str, str]:
    """The stages (of ``STAGES``) that took longer than their budget, each with its class."""
    shaped = reason in _SHAPE_REASONS or (pixels or 0) > budgets.usual_pixels
    found = {}
    for stage in STAGES:
        spent = milliseconds.get(stage)
        if spent is not None and spent > 1000 * stage_seconds(budgets, stage):
            found[stage] = INPUT_SHAPE if shaped and stage != "queue" else CAPACITY
    if reason in _SHAPE_REASONS:
        found.setdefault("decode", INPUT_SHAPE)
    return found


def stage_seconds(budgets: Objectives, stage: str) -> float:
    """Budget of one of ``STAGES``, in seconds."""
    return float(getattr(budgets, f"{stage}_seconds"))


def written(found: Mapping[str, str]) -> str | None:
    """As it stands in ``attempts.breach``; None when every budget was kept."""
    return ",".join(f"{stage}={kind}" for stage, kind in found.items()) or None


def read(text: str | None) -> dict[str, str]:
    """The reverse of ``written``."""
    return dict(part.split("=", 1) for part in text.split(",")) if text else {}


def of_attempt(
    conn: Connection,
    attempt_id: str,
    policy_digest: str,
    milliseconds: Mapping[str, float | None],
    pixels: int | None,
    reason: Reason | None,
) -> dict[str, str]:
    """``breaches`` of a recorded attempt; only its first one is charged with the time in the queue."""
    budgets = recorded_budgets(conn, policy_digest)
    began: tuple[int, datetime, datetime] | None = (
        conn.execute(
            select(attempts.c.fence, attempts.c.started_at, jobs.c.queued_at)
            .join(jobs, jobs.c.job_id == attempts.c.job_id)
            .where(attempts.c.attempt_id == attempt_id)
        )
        .tuples()
        .one_or_none()
    )
    waited = (began[1] - began[2]).total_seconds() * 1000 if began and began[0] == 1 else None
    return breaches(budgets, {**milliseconds, "queue": waited}, pixels, reason)


def recorded_budgets(conn: Connection, policy_digest: str) -> Objectives:
    """The budgets of the policy with this digest; the defaults for one that is older than they are."""
    body = conn.execute(select(policies.c.body).where(policies.c.digest == policy_digest)).scalar_one_or_none() or {}
    return Objectives.model_validate(body.get("objectives", {}))
