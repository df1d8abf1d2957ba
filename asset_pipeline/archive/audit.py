"""Compares what manifests say with what the ledger and the archive store hold: the quick look after each run.

Reads only, and of a picture only its size: that nothing is gone or cut, not that no bit has turned. Bytes are hashed
again by ``fsck``. What differs is told by report id and fact, never by name. A manifest that is missing while its
report is still being worked is no mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from sqlalchemy import RowMapping

from asset_pipeline.archive.content import read_report
from asset_pipeline.archive.manifest import latest_edition, manifest_key, stored_digest
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.storage.store import Store

PARALLEL_READS = 16
"""Requests at a time: a bucket's latency is waited for once, not once a picture."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that is not as it should be, and in how many places."""

    report_id: str
    what: str
    count: int = 1


@dataclass(slots=True)
class _Report:
    """What the ledger says about one settled report, light enough to hold for every report of a month."""

    report_id: str
    key: str
    latest: RowMapping | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    mismatches: list[Mismatch] = field(default_factory=list)


def compare_month(inst: Installation, month: str) -> list[Mismatch]:
    """Mismatches of ``month``, by report id; empty when manifests, ledger and archive agree."""
    with inst.ledger.read() as conn:
        documents = sorted((row.report_id, row.job_id) for row in reading.documents_of_month(conn, month))
    reports = [found for report_id, job_id in documents if (found := _read(inst, month, report_id, job_id))]
    sizes = {key: size for report in reports for key, size in report.sizes.items()}
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="audit") as threads:
        found_sizes = dict(zip(sizes, threads.map(lambda key: stored_size(inst.archive, key), sizes), strict=True))
        digests = list(threads.map(lambda report: stored_digest(inst, report.key), reports))
    return [
        mismatch
        for report, digest in zip(reports, digests, strict=True)
        for mismatch in (*report.mismatches, *_compare(report, digest, found_sizes))
    ]


def stored_size(store: Store, key: str) -> int | None:
    """Bytes of what lies at ``key``; None when nothing does."""
    try:
        return store.entry(key).bytes
    except KeyError:
        return None


def _read(inst: Installation, month: str, report_id: str, job_id: str) -> _Report | None:
    """None while the report is still being worked."""
    found = _Report(report_id, manifest_key(month, report_id))
    try:
        with inst.ledger.read() as conn:
            report = read_report(conn, job_id)
            found.latest = latest_edition(conn, report_id)
    except IntegrityError as error:
        found.mismatches.append(Mismatch(report_id, error.what))
        return found
    if report is None:
        return None
    pictures = [] if report.job["expired_at"] else report.content["pictures"]
    found.sizes = {str(picture["file"]): int(picture["bytes"]) for picture in pictures}
    if found.latest is None:
        found.mismatches.append(Mismatch(report_id, "The report has no manifest."))
    elif not report.is_told_by(found.latest):
        found.mismatches.append(Mismatch(report_id, "The newest manifest does not say what the ledger says."))
    return found


def _compare(report: _Report, digest: str | None, sizes: dict[str, int | None]) -> Iterator[Mismatch]:
    if report.latest is not None and digest is None:
        yield Mismatch(report.report_id, "The manifest is gone from the archive.")
    elif report.latest is not None and digest != report.latest["digest"]:
        yield Mismatch(report.report_id, "The manifest in the archive is not the one that was written.")
    if missing := sum(sizes[key] is None for key in report.sizes):
        yield Mismatch(report.report_id, "The archive lacks pictures of the report.", missing)
    if cut := sum(sizes[key] not in (None, size) for key, size in report.sizes.items()):
        yield Mismatch(report.report_id, "Pictures in the archive are not as long as they were written.", cut)
