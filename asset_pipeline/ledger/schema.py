"""The tables. Keys that must never repeat are unique here, in the database, not in code.

States are text columns moved only by conditional updates (see the modules beside this one). The tables
in ``APPEND_ONLY`` refuse UPDATE, DELETE and TRUNCATE by trigger. Times are UTC. ``uploads.name`` and
``uploads.key`` are the only columns that hold what a caller wrote. Per-picture geometry that nobody
filters by is one JSON column, in the shape of ``model``.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC datetimes on both databases; SQLite returns naive ones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be recorded")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _states(column: str, *names: str) -> CheckConstraint:
    quoted = ", ".join(f"'{name}'" for name in names)
    return CheckConstraint(f"{column} IN ({quoted})", name=column)


source_documents = Table(
    "source_documents",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("media_type", String(128)),
    Column("signature_offset", Integer),
    Column("stored", Integer, nullable=False, doc="1 when the bytes are in the sources store"),
    Column("admitted_at", UtcDateTime, nullable=False),
)

uploads = Table(
    "uploads",
    metadata,
    Column("upload_id", String(26), primary_key=True),
    Column("key", Text, nullable=False, doc="inbox key, as the caller wrote it"),
    Column("tag", String(128), nullable=False, doc="changes with the content: ETag, or mtime and inode"),
    Column("bytes", BigInteger, nullable=False),
    Column("collection", Text),
    Column("month", String(7)),
    Column("name", Text),
    Column("state", String(16), nullable=False),
    Column("reason", String(64)),
    Column("sightings", Integer, nullable=False),
    Column("first_seen_at", UtcDateTime, nullable=False),
    Column("last_seen_at", UtcDateTime, nullable=False),
    Column("admitted_at", UtcDateTime),
    Column("correlation_id", String(26)),
    Column("source_hash", String(64)),
    Column("report_id", String(26)),
    Column("job_id", String(26), doc="the job made by this upload, or the one it duplicates"),
    UniqueConstraint("key", "tag"),
    _states("state", "waiting", "admitted", "duplicate", "rejected", "superseded"),
    Index("ix_uploads_month_state", "month", "state"),
    Index("ix_uploads_report_id", "report_id"),
)

revisions = Table(
    "revisions",
    metadata,
    Column("report_id", String(26), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("source_hash", String(64), ForeignKey("source_documents.sha256"), nullable=False),
    Column("parent_revision", Integer),
    Column("month", String(7), nullable=False),
    Column("collection", Text, nullable=False),
    Column("upload_id", String(26), ForeignKey("uploads.upload_id"), nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    UniqueConstraint("report_id", "revision"),
    UniqueConstraint("report_id", "source_hash"),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String(26), primary_key=True),
    Column("job_key", String(512), nullable=False, unique=True),
    Column("correlation_id", String(26), nullable=False),
    Column("report_id", String(26), nullable=False),
    Column("month", String(7), nullable=False),
    Column("collection", Text, nullable=False),
    Column("revision", Integer, nullable=False),
    Column("parent_revision", Integer),
    Column("source_hash", String(64), ForeignKey("source_documents.sha256"), nullable=False),
    Column("engine", String(32), nullable=False),
    Column("extractor_version", String(384), nullable=False),
    Column("policy_digest", String(64), ForeignKey("policies.digest"), nullable=False),
    Column("state", String(24), nullable=False),
    Column("reason", String(64)),
    Column("encrypted", String(16)),
    Column("pages", Integer),
    Column("tries", Integer, nullable=False, doc="retries already spent, over all units"),
    Column("inspections", Integer, nullable=False, server_default="0", doc="fence of the last inspection"),
    Column("inspected_until", UtcDateTime, doc="lease of the worker that inspects it"),
    Column("lost_workers", Integer, nullable=False, server_default="0", doc="inspections whose lease ran out"),
    Column("queued_at", UtcDateTime, nullable=False),
    Column("started_at", UtcDateTime),
    Column("finished_at", UtcDateTime),
    Column("working_until", UtcDateTime, nullable=False),
    Column("archive_until", UtcDateTime, nullable=False),
    Column("expired_at", UtcDateTime, doc="when retention took note that archive_until had passed; never undone"),
    _states("state", "queued", "running", "succeeded", "failed_permanently", "dead_lettered"),
    Index("ix_jobs_month_state", "month", "state"),
    Index("ix_jobs_state", "state"),
    Index("ix_jobs_report_id", "report_id"),
    Index("ix_jobs_archive_until", "archive_until"),
    Index("ix_jobs_source_hash", "source_hash"),
)

slots = Table(
    "slots",
    metadata,
    Column("provider", String(32), primary_key=True),
    Column("slot", Integer, primary_key=True, autoincrement=False),
    Column("holder", String(26)),
    Column("until", UtcDateTime, doc="lease of the holder; None: free"),
)

units = Table(
    "units",
    metadata,
    Column("unit_id", String(40), primary_key=True),
    Column("job_id", String(26), ForeignKey("jobs.job_id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("first_page", Integer, nullable=False),
    Column("last_page", Integer, doc="None: to the end"),
    Column("state", String(16), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("lease_until", UtcDateTime),
    Column("worker", String(64)),
    Column("not_before", UtcDateTime, doc="back-off of a retry"),
    Column("reason", String(64)),
    Column("tries", Integer, nullable=False, doc="retries of this unit already spent"),
    Column("lost_decoders", Integer, nullable=False),
    Column("lost_workers", Integer, nullable=False, server_default="0", doc="leases that ran out and were taken over"),
    UniqueConstraint("job_id", "sequence"),
    _states("state", "queued", "running", "done", "failed"),
    Index("ix_units_state_lease_until", "state", "lease_until"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("attempt_id", String(48), primary_key=True),
    Column("unit_id", String(40), ForeignKey("units.unit_id"), nullable=False),
    Column("job_id", String(26), ForeignKey("jobs.job_id"), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("worker", String(64), nullable=False),
    Column("cage", String(64), doc="what held the decoder process: landlock-7+seccomp+rlimits, or none"),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("outcome", String(24), doc="published, acknowledged, refused, retried, dead_lettered, fenced"),
    Column("returned_at", UtcDateTime, doc="when a worker whose unit was taken over was heard of again"),
    Column("reason", String(64)),
    Column("fetch_ms", Float),
    Column("decode_ms", Float),
    Column("publish_ms", Float),
    Column("peak_rss_bytes", BigInteger),
    Column("bytes_written", BigInteger),
    Column("pixels", BigInteger, doc="of the original pictures of the result"),
    Column("breach", String(128), doc="budgets that were exceeded and why: decode=input_shape,queue=capacity"),
    UniqueConstraint("unit_id", "fence"),
    Index("ix_attempts_started_at", "started_at"),
    Index("ix_attempts_job_id", "job_id"),
)

pages = Table(
    "pages",
    metadata,
    Column("job_id", String(26), ForeignKey("jobs.job_id"), primary_key=True),
    Column("page", Integer, primary_key=True),
    Column("unit_id", String(40), ForeignKey("units.unit_id"), nullable=False),
    Column("unit_kind", String(8), nullable=False, doc="page, slide, sheet, part"),
    Column("label", Text),
    Column("drawn", Integer),
    Column("archived", Integer, nullable=False),
    Column("collapsed", Integer, nullable=False),
    Column("decorative", Integer, nullable=False),
    Column("consumed", Integer, nullable=False),
    Column("not_shown", Integer, nullable=False),
    Column("quarantined", Integer, nullable=False),
    Column("derived_archived", Integer, nullable=False),
    Column("derived_quarantined", Integer, nullable=False),
    Column("reason", String(64)),
)

objects = Table(
    "objects",
    metadata,
    Column("sha256", String(64), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("media_type", String(32), nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    Column("bits", Integer, nullable=False),
    Column("mode", String(16), nullable=False),
    Column("has_alpha", Integer, nullable=False),
    Column("icc", Text),
    Column("pixel_sha256", String(64)),
    Column("phash", String(32)),
    Column("state", String(16), nullable=False),
    Column("stored_at", UtcDateTime, nullable=False),
    _states("state", "stored", "deleting", "deleted"),
)

placements = Table(
    "placements",
    metadata,
    Column("job_id", String(26), ForeignKey("jobs.job_id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("page", Integer, nullable=False),
    Column("ordinal", Integer, nullable=False, doc="position in the page's list, from 0"),
    Column("kind", String(16), nullable=False),
    Column("status", String(16), nullable=False),
    Column("reason", String(64)),
    Column("picture", String(64), ForeignKey("objects.sha256")),
    Column("display", String(64), ForeignKey("objects.sha256")),
    Column("width", BigInteger, nullable=False, doc="as declared, so it may be absurd"),
    Column("height", BigInteger, nullable=False),
    Column("detail", JSON, nullable=False, doc="the other fields of model.Placement"),
    Index("ix_placements_job_id_page", "job_id", "page"),
    Index("ix_placements_picture", "picture"),
    Index("ix_placements_display", "display"),
)

receipts = Table(
    "receipts",
    metadata,
    Column("job_id", String(26), ForeignKey("jobs.job_id"), primary_key=True),
    Column("asset_index", String(64), primary_key=True, doc="name of the placement"),
    Column("unit_id", String(40), ForeignKey("units.unit_id"), nullable=False),
    Column("fence", Integer, nullable=False),
    Column("source_hash", String(64), nullable=False),
    Column("extractor_version", String(384), nullable=False),
    Column("content_hash", String(64), nullable=False, doc="digest of the original rendition"),
    Column("display_hash", String(64)),
    Column("recorded_at", UtcDateTime, nullable=False),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("job_id", String(26), ForeignKey("jobs.job_id"), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("page", Integer, nullable=False),
    Column("reason", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("decided_at", UtcDateTime, doc="when somebody released or rejected it"),
    Column("decided_by", String(64), doc="who did, as they say"),
    Column("sha256", String(64), doc="digest of its stored bytes in the quarantine store, where they were kept"),
    Column("bytes", BigInteger),
    _states("state", "held", "released", "rejected"),
)

manifests = Table(
    "manifests",
    metadata,
    Column("report_id", String(26), primary_key=True),
    Column("edition", Integer, primary_key=True),
    Column("month", String(7), nullable=False),
    Column("job_id", String(26), ForeignKey("jobs.job_id"), nullable=False),
    Column("content_digest", String(64), nullable=False),
    Column("digest", String(64), nullable=False, doc="of the stored bytes"),
    Column("previous_digest", String(64)),
    Column("key_id", String(32), nullable=False, doc="of the key that signed the stored bytes"),
    Column("signature", String(128), nullable=False, doc="hex; with it the bytes can be put together again"),
    Column("published_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime, doc="expired_at of the job, in the edition that says so"),
    Index("ix_manifests_month", "month"),
)

policies = Table(
    "policies",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("body", JSON, nullable=False),
    Column("first_used_at", UtcDateTime, nullable=False),
)

event_counter = Table(
    "event_counter",
    metadata,
    Column("counter_id", Integer, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    Column("head", String(64), doc="link of the last event"),
    Column("key_id", String(32), doc="of the key that signs now"),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("type", String(48), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("month", String(7)),
    Column("job_id", String(26)),
    Column("payload", Text, nullable=False, doc="the signed canonical JSON, see evidence.chain; columns repeat it"),
    Column("signatures", Text, nullable=False, doc="JSON: list of [key id, signature in hex]"),
    Index("ix_audit_events_job_id", "job_id"),
)

signing_keys = Table(
    "signing_keys",
    metadata,
    Column("key_id", String(32), primary_key=True),
    Column("public_key", String(64), nullable=False, doc="hex"),
    Column("first_seq", BigInteger, nullable=False, unique=True, doc="first event it may sign; the next one's ends it"),
    Column("certificate", Text, doc="envelope of the key service, where there is one"),
    Column("introduced_at", UtcDateTime, nullable=False),
)

checkpoints = Table(
    "checkpoints",
    metadata,
    Column("size", BigInteger, primary_key=True, autoincrement=False, doc="events covered"),
    Column("note", Text, nullable=False, doc="the signed note"),
    Column("frontier", Text, nullable=False, doc="canonical JSON: what the next checkpoint's tree grows from"),
    Column("made_at", UtcDateTime, nullable=False),
)

alerts = Table(
    "alerts",
    metadata,
    Column("alert_key", String(192), primary_key=True, doc="names the occasion: the same one is told once"),
    Column("channel", String(16), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("month", String(7)),
    Column("text", Text, nullable=False, doc="ids, counts, reasons, months; nothing of a document"),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("claimed_at", UtcDateTime, doc="when a process began to deliver it"),
    Column("sent_at", UtcDateTime, doc="None: not delivered yet"),
)

holds = Table(
    "holds",
    metadata,
    Column("hold_id", String(26), primary_key=True),
    Column("scope", String(16), nullable=False),
    Column("subject", Text, doc="report id, collection or month; None where all is held"),
    Column("why", String(64), nullable=False, doc="a code, as litigation"),
    Column("set_at", UtcDateTime, nullable=False),
    Column("set_by", String(64), nullable=False),
    Column("lifted_at", UtcDateTime, doc="None: in force"),
    Column("lifted_by", String(64)),
    Column("lifted_why", String(64)),
    _states("scope", "report", "collection", "month", "all"),
    CheckConstraint("(scope = 'all') = (subject IS NULL)", name="subject"),
)

deletions = Table(
    "deletions",
    metadata,
    Column("kind", String(16), primary_key=True, doc="picture, source or quarantine"),
    Column("key", Text, primary_key=True, doc="in its store"),
    Column("sha256", String(64), nullable=False),
    Column("deletion_id", String(26), nullable=False, doc="of the event that told the intent"),
    Column("bytes", BigInteger, nullable=False),
    Column("job_id", String(26), ForeignKey("jobs.job_id"), doc="the last job that it was kept for, if any"),
    Column("month", String(7)),
    Column("why", String(32), nullable=False),
    Column("deadline", UtcDateTime, nullable=False),
    Column("intended_at", UtcDateTime, nullable=False),
)
"""Deletions that are intended and not done: a row goes when its tombstone is written."""

tombstones = Table(
    "tombstones",
    metadata,
    Column("deletion_id", String(26), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("sha256", String(64), primary_key=True),
    Column("bytes", BigInteger, nullable=False),
    Column("job_id", String(26), ForeignKey("jobs.job_id"), doc="the last job that it was kept for, if any"),
    Column("month", String(7)),
    Column("why", String(32), nullable=False, doc="archive_deadline or working_deadline"),
    Column("deadline", UtcDateTime, nullable=False),
    Column("intended_at", UtcDateTime, nullable=False),
    Column("deleted_at", UtcDateTime, nullable=False),
    Index("ix_tombstones_sha256", "sha256"),
    Index("ix_tombstones_month", "month"),
)

APPEND_ONLY = (
    "receipts",
    "audit_events",
    "manifests",
    "policies",
    "revisions",
    "signing_keys",
    "checkpoints",
    "tombstones",
)
