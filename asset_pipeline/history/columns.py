"""The tables of the history and what their columns mean: the one place that says so, for frames, files and documents.

The order is part of the interface: a column is only ever added at the end of its table. Times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["text", "integer", "number", "time"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``meaning`` names the unit; a value may be missing in any column."""

    name: str
    kind: Kind
    meaning: str


MATERIALIZATIONS = (
    Column("at", "time", "when the month's asset was made"),
    Column("asset", "text", "name of the asset"),
    Column("month", "text", "report month, YYYY-MM"),
    Column("run_id", "text", "Dagster's run"),
    Column("data_version", "text", "digest of what was made: the same means nothing changed"),
    Column("code_version", "text", "version of the asset's code"),
    Column("row_count", "integer", "rows: documents, pictures or manifests"),
    Column("figures", "text", "JSON object of every number that was recorded, by its name"),
    Column("event_id", "integer", "place in Dagster's event log"),
)
ATTEMPTS = (
    Column("started_at", "time", "when a worker took the unit"),
    Column("ended_at", "time", "when it ended; missing while it runs"),
    Column("month", "text", "report month, YYYY-MM"),
    Column("collection", "text", "collection of the document; missing where names are not shown"),
    Column("report_id", "text", "report"),
    Column("job_id", "text", "job"),
    Column("unit_id", "text", "unit of work: a document or a range of its pages"),
    Column("fence", "integer", "number of the attempt at this unit, from 1"),
    Column("worker", "text", "host, process and thread"),
    Column("outcome", "text", "published, acknowledged, refused, retried, dead_lettered or fenced"),
    Column("reason", "text", "reason code, unless it was published"),
    Column("engine", "text", "extraction engine"),
    Column("extractor_version", "text", "engine, libraries and policy that made the result"),
    Column("first_page", "integer", "first page of the unit"),
    Column("last_page", "integer", "last page; missing: to the end"),
    Column("queued_ms", "number", "milliseconds from the queued job to this attempt"),
    Column("fetch_ms", "number", "milliseconds to copy the source"),
    Column("decode_ms", "number", "milliseconds in the decoder process"),
    Column("publish_ms", "number", "milliseconds to store the pictures"),
    Column("peak_rss_bytes", "integer", "largest resident memory of the decoder process, bytes"),
    Column("bytes_written", "integer", "bytes that were new in the archive"),
    Column("pixels", "integer", "pixels of the original pictures"),
    Column("breach", "text", "budgets that were exceeded and why, as stage=capacity or stage=input_shape"),
)
PICTURES = (
    Column("month", "text", "report month, YYYY-MM"),
    Column("collection", "text", "collection of the document; missing where names are not shown"),
    Column("report_id", "text", "report"),
    Column("document", "text", "name of the upload; missing where names are not shown"),
    Column("job_id", "text", "job"),
    Column("revision", "integer", "revision of the document, from 1"),
    Column("page", "integer", "page, from 1"),
    Column("name", "text", "name of the placement, unique in its document"),
    Column("kind", "text", "raster, inline, stencil, pattern, composite or vector_figure"),
    Column("status", "text", "archived, collapsed, decorative, consumed, not_shown or quarantined"),
    Column("reason", "text", "reason code of a quarantined one"),
    Column("picture", "text", "SHA-256 of the original file"),
    Column("display", "text", "SHA-256 of the file to show"),
    Column("width", "integer", "pixels, as the document declares"),
    Column("height", "integer", "pixels, as the document declares"),
    Column("media_type", "text", "media type of the original file"),
    Column("bytes", "integer", "bytes of the original file"),
    Column("visible", "number", "visible share of the placement, 0 to 1"),
    Column("ppi", "number", "effective resolution as placed, the lower of both directions, pixels per inch"),
    Column("caption", "text", "caption; missing where names are not shown"),
    Column("alt", "text", "alternative text; missing where names are not shown"),
    Column("extractor_version", "text", "engine, libraries and policy that made the result"),
)
EVENTS = (
    Column("seq", "integer", "place in the audit order, from 1 without gaps"),
    Column("at", "time", "when it happened"),
    Column("type", "text", "kind of event"),
    Column("month", "text", "report month, YYYY-MM, where it belongs to one"),
    Column("job_id", "text", "job, where it belongs to one"),
    Column("payload", "text", "JSON object: ids, counts, digests, reason codes"),
)
RETRIES = (
    Column("at", "time", "when the attempt failed"),
    Column("month", "text", "report month, YYYY-MM"),
    Column("report_id", "text", "report"),
    Column("job_id", "text", "job"),
    Column("unit_id", "text", "unit of work"),
    Column("fence", "integer", "number of the attempt that failed, from 1"),
    Column("reason", "text", "reason code"),
    Column("next_outcome", "text", "how the next attempt ended; missing: it has not ended"),
    Column("waited_ms", "number", "milliseconds until the next attempt began"),
)

PAGES = (
    Column("month", "text", "report month, YYYY-MM"),
    Column("collection", "text", "collection of the document; missing where names are not shown"),
    Column("report_id", "text", "report"),
    Column("document", "text", "name of the upload; missing where names are not shown"),
    Column("job_id", "text", "job"),
    Column("page", "integer", "page, from 1"),
    Column("label", "text", "printed page number; missing where names are not shown"),
    Column("drawn", "integer", "pictures that the page draws; missing when it was not counted"),
    Column("archived", "integer", "of these: archived"),
    Column("collapsed", "integer", "repeats of one that is archived"),
    Column("decorative", "integer", "decoration"),
    Column("consumed", "integer", "parts of a joined picture"),
    Column("not_shown", "integer", "outside the page or on a hidden layer"),
    Column("quarantined", "integer", "held back for a reason"),
    Column("derived_archived", "integer", "joined pictures and charts, beside the drawn ones"),
    Column("derived_quarantined", "integer", "joined pictures and charts that are held back"),
    Column("reason", "text", "why the page could not be read"),
)
EDITIONS = (
    Column("published_at", "time", "when the manifest was written"),
    Column("first_seen_at", "time", "when the upload was first seen"),
    Column("month", "text", "report month, YYYY-MM"),
    Column("report_id", "text", "report"),
    Column("job_id", "text", "job that it tells of"),
    Column("revision", "integer", "revision of the document, from 1"),
    Column("edition", "integer", "edition of the manifest, from 1"),
    Column("content_digest", "text", "SHA-256 of what was found, without ids and times"),
    Column("digest", "text", "SHA-256 of the manifest's bytes"),
    Column("previous_digest", "text", "SHA-256 of the edition before"),
    Column(
        "why",
        "text",
        "first; new_revision of the document; read_again by another version or under other rules; expired; "
        "changed: a picture or document was decided, repaired or taken up again",
    ),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "materializations": MATERIALIZATIONS,
    "attempts": ATTEMPTS,
    "pictures": PICTURES,
    "events": EVENTS,
    "retries": RETRIES,
    "pages": PAGES,
    "editions": EDITIONS,
}
