"""Numbers, digests and moments of a month as Dagster's metadata: what its pages plot, show and compare.

Counts are plain integers, because the web page plots those over the months. Tables belong in ``tables``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import dagster as dg

from asset_pipeline.installation import Installation
from asset_pipeline.ledger.measures import Spread
from asset_pipeline.ledger.reading import DocumentRow, MonthSummary

Figures = dict[str, int | str | dg.MetadataValue]


def rules(inst: Installation, documents: Sequence[DocumentRow], current: str) -> Figures:
    """By which policy and extractor the month was read. ``current`` is the extractor version of today."""
    versions = sorted({row.extractor_version for row in documents})
    return {
        "policy_sha256": inst.policy.digest,
        "extraction_policy_sha256": inst.policy.extraction_digest,
        "extractor_version": ", ".join(versions) or current,
        "documents_of_another_extractor": sum(row.extractor_version != current for row in documents),
    }


def deadlines(documents: Sequence[DocumentRow]) -> Figures:
    """When working material is cleaned up and when archived reports go: the earliest of the month; what went when."""
    kept = [row for row in documents if row.expired_at is None]
    gone = [row.expired_at for row in documents if row.expired_at is not None]
    moments: dict[str, list[datetime]] = {
        "working_material_until": [row.working_until for row in kept],
        "archived_until": [row.archive_until for row in kept],
    }
    told: Figures = {name: dg.MetadataValue.timestamp(min(found)) for name, found in moments.items() if found}
    if gone:
        told |= {"documents_deleted": len(gone), "last_deleted_at": dg.MetadataValue.timestamp(max(gone))}
    return told


def incoming(summary: MonthSummary, rejected_uploads: int) -> Figures:
    """Counts of what came in. ``rejected_uploads`` are those of the whole inbox."""
    return {
        "dagster/partition_row_count": summary.documents,
        "documents": summary.documents,
        "documents_refused": sum(summary.refused_by_reason.values()),
        "source_bytes": summary.source_bytes,
        "uploads_duplicate": summary.duplicate_uploads,
        "uploads_waiting": summary.waiting_uploads,
        "uploads_rejected": rejected_uploads,
    }


def accounts(summary: MonthSummary) -> Figures:
    """Counts of what was found."""
    return {
        "dagster/partition_row_count": summary.archived,
        "documents": summary.documents,
        "documents_read": summary.outcomes.get("succeeded", 0),
        "documents_refused": sum(summary.refused_by_reason.values()),
        "documents_given_up": sum(summary.dead_lettered_by_reason.values()),
        "documents_unfinished": summary.unfinished,
        "pages": summary.pages,
        "pages_not_read": summary.unread_pages,
        "pictures_drawn": summary.drawn,
        "pictures_archived": summary.archived,
        "pictures_collapsed": summary.collapsed,
        "pictures_decorative": summary.decorative,
        "pictures_consumed": summary.consumed,
        "pictures_not_shown": summary.not_shown,
        "pictures_quarantined": summary.quarantined,
        "pictures_derived": summary.derived,
        "files": summary.objects,
        "file_bytes": summary.object_bytes,
        "receipts": summary.receipts,
    }


def times(stages: Mapping[str, Spread]) -> Figures:
    """Median and 95th percentile of each stage that has figures, in milliseconds."""
    figures: Figures = {}
    for stage, found in stages.items():
        figures[f"{stage}_p50_ms"], figures[f"{stage}_p95_ms"] = found.p50, found.p95
    return figures
