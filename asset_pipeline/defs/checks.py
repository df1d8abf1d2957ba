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
from asset_pipeline.ledger.reading import DocumentRow, MonthSummary, UnreadPage

PAGES = "every_page_accounted"
READ = "every_document_read"
PAGES_READ = "every_page_read"
QUARANTINE = "nothing_quarantined"
MANIFESTS = "manifest_matches_archive"
FIRST_ATTEMPT = "validated_at_first_attempt"
IN_TIME = "begun_in_time"
NOT_OVERDUE = "nothing_past_deadline"


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
        PAGES_READ,
        "validated_images",
        "Every page of the documents that were read was read too. When it fails: the table names each page of which "
        "nothing is archived and why, for instance because it draws more than the policy allows. Raise the limit in "
        "the policy, or drop in a document that was exported anew. All other pages are archived.",
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
        "Each report has a manifest, the archive holds it as it was written, and it holds every file that it names, "
        "in its size. That no bit of a file has changed is proved by `asset-pipeline fsck`, which reads them all. "
        "When it fails: Run `asset-pipeline fsck --repair`, which reads the documents again, then the month.",
    ),
    Check(
        FIRST_ATTEMPT,
        "validated_images",
        "Nearly all units of work succeeded at their first attempt (policy: objectives.first_attempt_share). When it "
        "fails: nothing is lost, but something fails often. `asset-pipeline history retries --month` says for which "
        "reasons: a store that is away, or documents that are too heavy for the decoder's limits.",
    ),
    Check(
        IN_TIME,
        "validated_images",
        "Jobs did not wait too long for their first attempt (policy: objectives.queue_seconds). When it fails: there "
        "is more work than decoders. Raise ASSET_PIPELINE_WORKERS, or see the scaling signal of "
        "`asset-pipeline metrics`.",
    ),
    Check(
        NOT_OVERDUE,
        "manifests",
        "Nothing of the month is kept past its deadline (policy: objectives.overdue_bytes). When it fails: run what "
        "deletes what is due, or place a legal hold on what has to stay.",
    ),
)


_REMEDY = "When it fails: "


@dataclass(frozen=True, slots=True)
class FailedCheck:
    """A check of a run that failed, in words. ``broken``: records and archive contradict each other."""

    name: str
    broken: bool
    what: str
    remedy: str


def failed_checks(instance: dg.DagsterInstance, run_id: str) -> list[FailedCheck]:
    """Those that failed in the run, in the order of ``CHECKS``."""
    remedies = {check.name: _sentence(check.description.partition(_REMEDY)[2]) for check in CHECKS}
    records = instance.get_records_for_run(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION).records
    found = [record.event_log_entry.asset_check_evaluation for record in records]
    failed = [
        FailedCheck(
            name=check.check_name,
            broken=check.severity is dg.AssetCheckSeverity.ERROR,
            what=check.description or "",
            remedy=remedies.get(check.check_name, ""),
        )
        for check in found
        if check is not None and not check.passed
    ]
    return sorted(failed, key=lambda check: list(remedies).index(check.name) if check.name in remedies else -1)


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
        description=f"{summary.pages - summary.unaccounted} of {summary.pages} pages add up."
        + (f" Of these {summary.unread_pages} could not be read, for a reason." if summary.unread_pages else ""),
        metadata=_told(pages=summary.pages, pages_unaccounted=summary.unaccounted, pictures_drawn=summary.drawn),
    )


def every_document_read(inst: Installation, documents: Sequence[DocumentRow]) -> dg.AssetCheckResult:
    """Whether no document was refused or given up."""
    unread = [row for row in documents if row.state in ("failed_permanently", "dead_lettered")]
    found = {"documents": tables.unread(inst, unread)} if unread else {}
    return dg.AssetCheckResult(
        check_name=READ,
        passed=not unread,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(unread)} of {len(documents)} documents were not read." if unread else "All were read.",
        metadata={**_told(documents_refused=len(unread)), **found},
    )


def every_page_read(
    inst: Installation, summary: MonthSummary, documents: Sequence[DocumentRow], unread: Sequence[UnreadPage]
) -> dg.AssetCheckResult:
    """Whether no page of a document that was read could not be read itself."""
    found = {"not_read": tables.unread_pages(inst, documents, unread)} if unread else {}
    return dg.AssetCheckResult(
        check_name=PAGES_READ,
        passed=not unread,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{len(unread)} of {summary.pages} pages were not read." if unread else "All were read.",
        metadata={**_told(pages_not_read=len(unread), **summary.unread_by_reason), **found},
    )


def nothing_quarantined(
    inst: Installation, conn: Connection, summary: MonthSummary, documents: Sequence[DocumentRow]
) -> dg.AssetCheckResult:
    """Whether no picture is held back without a person's decision."""
    count = sum(summary.quarantined_by_reason.values())
    found = {"pictures": tables.quarantined(inst, conn, documents)} if count else {}
    return dg.AssetCheckResult(
        check_name=QUARANTINE,
        passed=count == 0,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{count} of {summary.drawn} pictures are quarantined." if count else "No picture is held.",
        metadata={**_told(pictures_quarantined=count, **summary.quarantined_by_reason), **found},
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
    sound = f"{manifests} manifests are as they were written, and all files they name are there in their size."
    return dg.AssetCheckResult(
        check_name=MANIFESTS,
        passed=not mismatches,
        severity=dg.AssetCheckSeverity.ERROR,
        description=" ".join(sorted(kinds)) or sound,
        metadata={**_told(manifests=manifests, mismatches=len(mismatches)), **found},
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _told(**counts: int) -> dict[str, str]:
    """Counts of a check as text: its page would plot numbers of different months as one line."""
    return {name: str(count) for name, count in counts.items()}
