"""The kinds of events, each with its term of PREMIS (https://id.loc.gov/vocabulary/preservation/eventType.html).

The terms are for archives that take our evidence into their own records: the CSV of an export names both. A kind
that has no term there is marked ``""``. Values never change; new ones are added.
"""

from __future__ import annotations

from typing import Final

PREMIS: Final = {
    "upload_admitted": "ingestion",
    "upload_duplicate": "ingestion",
    "upload_refused": "validation",
    "upload_requeued": "ingestion",
    "job_queued": "ingestion",
    "job_requeued": "ingestion",
    "attempt_started": "metadata extraction",
    "attempt_ended": "metadata extraction",
    "unit_published": "creation",
    "receipt_conflict": "fixity check",
    "job_succeeded": "validation",
    "job_failed": "validation",
    "job_dead_lettered": "validation",
    "picture_quarantined": "quarantine",
    "picture_released": "unquarantine",
    "picture_rejected": "quarantine",
    "quarantine_released": "unquarantine",
    "quarantine_rejected": "quarantine",
    "manifest_published": "accession",
    "manifest_restored": "recovery",
    "source_repaired": "recovery",
    "object_repaired": "recovery",
    "repair_conflict": "fixity check",
    "policy_changed": "policy assignment",
    "key_rotated": "digital signature generation",
    "hold_set": "policy assignment",
    "hold_lifted": "policy assignment",
    "jobs_expired": "deaccession",
    "deletion_intended": "deletion",
    "deletion_called_off": "policy assignment",
    "deleted": "deletion",
    "objects_deleting": "deletion",
    "objects_deleted": "deletion",
    "leftovers_removed": "deletion",
}
"""Kind of event → PREMIS event type."""

KEY_ROTATED: Final = "key_rotated"
POLICY_CHANGED: Final = "policy_changed"
