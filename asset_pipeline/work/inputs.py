"""What an attempt reads: the recorded facts of a source, the recorded policy of a job, the bytes.

A job is worked under the policy it was queued with, not the one of today, or its result would not be
what its extractor version says. A missing or altered source is an integrity failure, never retried.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import ValidationError
from sqlalchemy import select

from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.schema import policies, source_documents
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.workplace import Workplace


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """What admission found out about the bytes."""

    bytes: int
    media_type: str | None


class SourceGone(IntegrityError):
    """The store has no such bytes: deleted, or it is not the store in which they are."""


def job_input(inst: Installation, source_hash: str, policy_digest: str) -> tuple[SourceFacts, Policy]:
    """Facts of the source and the policy of a job, from the ledger."""
    source = select(source_documents.c.bytes, source_documents.c.media_type).where(
        source_documents.c.sha256 == source_hash
    )
    with inst.ledger.read() as conn:
        facts = SourceFacts(*conn.execute(source).one())
    return facts, recorded_policy(inst, policy_digest)


def recorded_policy(inst: Installation, digest: str) -> Policy:
    """The policy with this digest. Raises IntegrityError when this version of the program cannot read it."""
    if digest == inst.policy.digest:
        return inst.policy
    with inst.ledger.read() as conn:
        body = conn.execute(select(policies.c.body).where(policies.c.digest == digest)).scalar_one()
    try:
        return Policy.model_validate(body)
    except ValidationError:
        raise IntegrityError(
            "The recorded policy of the job is of another version of this program.",
            "Drop the document in again.",
            Reason.EXTRACTOR_CHANGED,
        ) from None


def fetch_source(inst: Installation, source_hash: str, place: Workplace) -> None:
    """Copy the source into ``place``. Raises IntegrityError when it is altered, SourceGone when it is gone."""
    try:
        inst.sources.fetch(object_key(source_hash), place.document, source_hash)
    except KeyError:
        raise SourceGone("A stored source is gone.", "Restore it from backup.") from None
