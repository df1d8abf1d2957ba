"""Compares what manifests say with what the ledger and the archive store hold.

Reads only. Used by the standing check of a month; what differs is told by report id and fact, never by
name. A manifest that is missing while its report is still being worked is no mismatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from sqlalchemy import RowMapping

from asset_pipeline.archive.content import ReportState, read_report, sha256_hex
from asset_pipeline.archive.manifest import latest_edition, manifest_key
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading

PARALLEL_READS = 16


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One thing that is not as it should be, and in how many places."""

    report_id: str
    what: str
    count: int = 1


def compare_month(inst: Installation, month: str) -> list[Mismatch]:
    """Mismatches of ``month``, by report id; empty when manifests, ledger and archive agree."""
    with inst.ledger.read() as conn:
        documents = sorted((row.report_id, row.job_id) for row in reading.documents_of_month(conn, month))
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="audit") as threads:
        return [found for report_id, job_id in documents for found in _compare(inst, threads, report_id, job_id)]


def _compare(inst: Installation, threads: ThreadPoolExecutor, report_id: str, job_id: str) -> Iterator[Mismatch]:
    try:
        with inst.ledger.read() as conn:
            report = read_report(conn, job_id)
            latest = latest_edition(conn, report_id)
    except IntegrityError as error:
        yield Mismatch(report_id, error.what)
        return
    if report is None:
        return
    if latest is None:
        yield Mismatch(report_id, "The report has no manifest.")
        return
    yield from _compare_manifest(inst, report, latest)
    keys = [str(picture["file"]) for picture in report.content["pictures"]]
    missing = sum(not there for there in threads.map(inst.archive.exists, keys))
    if missing:
        yield Mismatch(report_id, "The archive lacks pictures of the report.", missing)


def _compare_manifest(inst: Installation, report: ReportState, latest: RowMapping) -> Iterator[Mismatch]:
    report_id = report.job["report_id"]
    if (latest["content_digest"], latest["job_id"]) != (report.content_digest, report.job["job_id"]):
        yield Mismatch(report_id, "The newest manifest does not say what the ledger says.")
    try:
        with inst.archive.open(manifest_key(report.job["month"], report_id)) as stream:
            digest = sha256_hex(stream.read())
    except KeyError:
        yield Mismatch(report_id, "The manifest is gone from the archive.")
        return
    if digest != latest["digest"]:
        yield Mismatch(report_id, "The manifest in the archive is not the one that was written.")
