"""What is checked of a month, declared on its assets so that it costs no step, and answered from the ledger.

A check that fails never fails the run. What must never be archived at all is not left to a check:
``validated_images`` ends before it is materialized when a page does not add up, and the failed check says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg
from sqlalchemy import Connection

from asset_pipeline.archive.audit import Mismatch
from asset_pipeline.defs import tables
from asset_pipeline.defs.assets.shared import without_warning
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.reading import DocumentRow, MonthSummary

PAGES = "every_page_accounted"
READ = "every_document_read"
QUARANTINE = "nothing_quarantined"
MANIFESTS = "manifest_matches_archive"


@dataclass(frozen=True, slots=True)
class Check:
    """A check, the asset it is about, and what it means to a person."""

    name: str
    asset: str
    description: str


CHECKS = (
    Check(
        PAGES,
        "validated_images",
        "Everything that each page draws is archived, or named as a repeat, a decoration, a part of a joined picture, "
        "not shown, or quarantined; the sums add up. When it fails: nothing of the month was released; "
        "tell the developers, and keep the ledger as it is.",
    ),
    Check(
        READ,
        "validated_images",
        "Every document of the month was read. When it fails: the table names each document that was refused or given "
        "up and what to do, for instance to save it without a password and drop it in again. The others are archived.",
    ),
    Check(
        QUARANTINE,
        "validated_images",
        "No picture is quarantined. When it fails: the table names each picture that could not be archived and why. "
        "All others are archived. Drop in a corrected document under the same name, or accept the loss.",
    ),
    Check(
        MANIFESTS,
        "manifests",
        "Each report has a manifest, the archive holds it as it was written, and it holds every file that it names. "
        "When it fails: restore the missing or altered files from a backup, then materialize the month again.",
    ),
)


def check_specs(asset: str, months: dg.PartitionsDefinition[str]) -> list[dg.AssetCheckSpec]:
    """The checks of ``asset``, one answer a month."""
    with without_warning(dg.PreviewWarning):  # the strip of months that they give is worth it
        return [
            dg.AssetCheckSpec(check.name, asset=check.asset, description=check.description, partitions_def=months)
            for check in CHECKS
            if check.asset == asset
        ]


def every_page_accounted(summary: MonthSummary) -> dg.AssetCheckResult:
    """Whether all pages of the documents that were read add up."""
    return dg.AssetCheckResult(
        check_name=PAGES,
        passed=summary.unaccounted == 0,
        severity=dg.AssetCheckSeverity.ERROR,
        description=f"{summary.pages - summary.unaccounted} of {summary.pages} pages add up.",
        metadata={"pages": summary.pages, "pages_unaccounted": summary.unaccounted, "pictures_drawn": summary.drawn},
    )


def every_document_read(inst: Installation, documents: Sequence[DocumentRow]) -> dg.AssetCheckResult:
    """Whether no document was refused or given up."""
    unread = [row for row in documents if row.state in ("failed_permanently", "dead_lettered")]
    return dg.AssetCheckResult(
        check_name=READ,
        passed=not unread,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(unread)} of {len(documents)} documents were not read." if unread else "All were read.",
        metadata={"documents_refused": len(unread), **({"documents": tables.unread(inst, unread)} if unread else {})},
    )


def nothing_quarantined(
    inst: Installation, conn: Connection, summary: MonthSummary, documents: Sequence[DocumentRow]
) -> dg.AssetCheckResult:
    """Whether no picture is held back."""
    count = summary.quarantined
    found = {"pictures": tables.quarantined(inst, conn, documents)} if count else {}
    return dg.AssetCheckResult(
        check_name=QUARANTINE,
        passed=count == 0,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{count} of {summary.drawn} pictures are quarantined." if count else "No picture is quarantined.",
        metadata={"pictures_quarantined": count, **summary.quarantined_by_reason, **found},
    )


def manifest_matches_archive(mismatches: Sequence[Mismatch], manifests: int) -> dg.AssetCheckResult:
    """Whether manifests, ledger and archive store say the same."""
    kinds = Counter(found.what for found in mismatches)
    columns: tables.Columns[Mismatch] = (
        ("report_id", "string", lambda row: row.report_id),
        ("what_is_wrong", "string", lambda row: row.what),
        ("places", "int", lambda row: row.count),
    )
    found = {"found": tables.table(columns, mismatches)} if mismatches else {}
    return dg.AssetCheckResult(
        check_name=MANIFESTS,
        passed=not mismatches,
        severity=dg.AssetCheckSeverity.ERROR,
        description=" ".join(sorted(kinds)) if kinds else f"{manifests} manifests and all files they name are there.",
        metadata={"manifests": manifests, "mismatches": len(mismatches), **found},
    )
