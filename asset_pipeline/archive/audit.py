"""Compares what manifests say with what the ledger and the archive store hold: the quick look after each run.

Reads only, and of a picture only its size: that nothing is gone or cut, not that no bit has turned. Bytes are hashed
again by ``fsck``. What differs is told by report id and fact, never by name. A manifest that is missing while its
report is still being worked is no mismatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from asset_pipeline.archive.content import SETTLED, read_report
from asset_pipeline.archive.manifest import PublishedManifest, latest_edition, manifest_key, stored_digest
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.reading import DocumentRow
from asset_pipeline.storage.store import Store, object_key

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
    digest: str | None = None
    """Of the newest manifest; None when there is none."""
    sizes: dict[str, int] = field(default_factory=dict)
    mismatches: list[Mismatch] = field(default_factory=list)


def compare_month(inst: Installation, month: str, published: Iterable[PublishedManifest] = ()) -> list[Mismatch]:
    """Mismatches of ``month``, by report id; empty when manifests, ledger and archive agree.

    ``published``: what ``publish_manifests`` has just said of the month. Each of these was told from the ledger a
    moment ago, so where it still is the newest of its report, its content is not derived once more.
    """
    told = {(row.job_id, row.digest) for row in published}
    with inst.ledger.read() as conn:
        documents = sorted(reading.documents_of_month(conn, month), key=lambda row: row.report_id)
        sizes_of = reading.kept_files(conn, month)
    reports = [found for row in documents if (found := _read(inst, row, sizes_of.get(row.job_id, {}), told))]
    with ThreadPoolExecutor(PARALLEL_READS, thread_name_prefix="audit") as threads:
        sizes = _stored_sizes(inst.archive, [key for report in reports for key in report.sizes], threads)
        digests = list(threads.map(lambda report: stored_digest(inst, report.key), reports))
    return [
        mismatch
        for report, digest in zip(reports, digests, strict=True)
        for mismatch in (*report.mismatches, *_compare(report, digest, sizes))
    ]


def _stored_sizes(store: Store, keys: Iterable[str], threads: ThreadPoolExecutor) -> dict[str, int | None]:
    """Bytes of what lies at each key. One task a thread: one a file would cost more than looking at the file."""
    different = list(dict.fromkeys(keys))
    shares = [different[at::PARALLEL_READS] for at in range(PARALLEL_READS)]
    found = threads.map(lambda share: [(key, stored_size(store, key)) for key in share], shares)
    return dict(chain.from_iterable(found))


def stored_size(store: Store, key: str) -> int | None:
    """Bytes of what lies at ``key``; None when nothing does."""
    try:
        return store.entry(key).bytes
    except KeyError:
        return None


def _read(inst: Installation, row: DocumentRow, files: dict[str, int], told: Set[tuple[str, str]]) -> _Report | None:
    """None while the report is still being worked."""
    if row.state not in SETTLED:
        return None
    found = _Report(row.report_id, manifest_key(row.month, row.report_id), row.manifest_digest)
    found.sizes = {object_key(sha256): size for sha256, size in files.items()}
    if row.manifest_digest is None:
        found.mismatches.append(Mismatch(row.report_id, "The report has no manifest."))
    elif (row.job_id, row.manifest_digest) not in told:
        found.mismatches += _of_content(inst, row)
    return found


def _of_content(inst: Installation, row: DocumentRow) -> Iterator[Mismatch]:
    """Whether the newest manifest says what the ledger says, derived once more."""
    try:
        with inst.ledger.read() as conn:
            report = read_report(conn, row.job_id)
            latest = latest_edition(conn, row.report_id)
    except IntegrityError as error:
        yield Mismatch(row.report_id, error.what)
        return
    if report is not None and not report.is_told_by(latest):
        yield Mismatch(row.report_id, "The newest manifest does not say what the ledger says.")


def _compare(report: _Report, digest: str | None, sizes: dict[str, int | None]) -> Iterator[Mismatch]:
    if report.digest is not None and digest is None:
        yield Mismatch(report.report_id, "The manifest is gone from the archive.")
    elif report.digest is not None and digest != report.digest:
        yield Mismatch(report.report_id, "The manifest in the archive is not the one that was written.")
    if missing := sum(sizes[key] is None for key in report.sizes):
        yield Mismatch(report.report_id, "The archive lacks pictures of the report.", missing)
    if cut := sum(sizes[key] not in (None, size) for key, size in report.sizes.items()):
        yield Mismatch(report.report_id, "Pictures in the archive are not as long as they were written.", cut)
