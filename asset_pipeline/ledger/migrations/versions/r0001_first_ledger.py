"""The first ledger: every table, the guards of append-only ones, and the counter of events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from asset_pipeline.ledger.migrations.append_only import guard

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = ("receipts", "audit_events", "manifests", "policies", "revisions")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "audit_events",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("type", sa.String(length=48), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=True),
        sa.Column("job_id", sa.String(length=26), nullable=True),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_audit_events")),
    )
    op.create_index("ix_audit_events_job_id", "audit_events", ["job_id"], unique=False)
    op.create_table(
        "event_counter",
        sa.Column("counter_id", sa.Integer(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("counter_id", name=op.f("pk_event_counter")),
    )
    op.create_table(
        "objects",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.String(length=32), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("height", sa.Integer(), nullable=False),
        sa.Column("bits", sa.Integer(), nullable=False),
        sa.Column("mode", sa.String(length=16), nullable=False),
        sa.Column("has_alpha", sa.Integer(), nullable=False),
        sa.Column("icc", sa.Text(), nullable=True),
        sa.Column("pixel_sha256", sa.String(length=64), nullable=True),
        sa.Column("phash", sa.String(length=32), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('stored', 'deleting', 'deleted')", name=op.f("ck_objects_state")),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_objects")),
    )
    op.create_table(
        "policies",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.JSON(), nullable=False),
        sa.Column("first_used_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_policies")),
    )
    op.create_table(
        "source_documents",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("media_type", sa.String(length=128), nullable=True),
        sa.Column("signature_offset", sa.Integer(), nullable=True),
        sa.Column("stored", sa.Integer(), nullable=False),
        sa.Column("admitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_source_documents")),
    )
    op.create_table(
        "uploads",
        sa.Column("upload_id", sa.String(length=26), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tag", sa.String(length=128), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("collection", sa.Text(), nullable=True),
        sa.Column("month", sa.String(length=7), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("sightings", sa.Integer(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("admitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("correlation_id", sa.String(length=26), nullable=True),
        sa.Column("source_hash", sa.String(length=64), nullable=True),
        sa.Column("report_id", sa.String(length=26), nullable=True),
        sa.Column("job_id", sa.String(length=26), nullable=True),
        sa.CheckConstraint(
            "state IN ('waiting', 'admitted', 'duplicate', 'rejected', 'superseded')", name=op.f("ck_uploads_state")
        ),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_uploads")),
        sa.UniqueConstraint("key", "tag", name=op.f("uq_uploads_key_tag")),
    )
    op.create_index("ix_uploads_month_state", "uploads", ["month", "state"], unique=False)
    op.create_index("ix_uploads_report_id", "uploads", ["report_id"], unique=False)
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("job_key", sa.String(length=512), nullable=False),
        sa.Column("correlation_id", sa.String(length=26), nullable=False),
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("parent_revision", sa.Integer(), nullable=True),
        sa.Column("source_hash", sa.String(length=64), nullable=False),
        sa.Column("engine", sa.String(length=32), nullable=False),
        sa.Column("extractor_version", sa.String(length=384), nullable=False),
        sa.Column("policy_digest", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=24), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("encrypted", sa.String(length=16), nullable=True),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("working_until", sa.DateTime(timezone=True), nullable=False),
        sa.Column("archive_until", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed_permanently', 'dead_lettered')",
            name=op.f("ck_jobs_state"),
        ),
        sa.ForeignKeyConstraint(["policy_digest"], ["policies.digest"], name=op.f("fk_jobs_policy_digest_policies")),
        sa.ForeignKeyConstraint(
            ["source_hash"], ["source_documents.sha256"], name=op.f("fk_jobs_source_hash_source_documents")
        ),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_jobs")),
        sa.UniqueConstraint("job_key", name=op.f("uq_jobs_job_key")),
    )
    op.create_index("ix_jobs_month_state", "jobs", ["month", "state"], unique=False)
    op.create_index("ix_jobs_report_id", "jobs", ["report_id"], unique=False)
    op.create_table(
        "revisions",
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("source_hash", sa.String(length=64), nullable=False),
        sa.Column("parent_revision", sa.Integer(), nullable=True),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("collection", sa.Text(), nullable=False),
        sa.Column("upload_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_hash"], ["source_documents.sha256"], name=op.f("fk_revisions_source_hash_source_documents")
        ),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.upload_id"], name=op.f("fk_revisions_upload_id_uploads")),
        sa.UniqueConstraint("report_id", "revision", name=op.f("uq_revisions_report_id_revision")),
        sa.UniqueConstraint("report_id", "source_hash", name=op.f("uq_revisions_report_id_source_hash")),
    )
    op.create_table(
        "manifests",
        sa.Column("report_id", sa.String(length=26), nullable=False),
        sa.Column("edition", sa.Integer(), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("content_digest", sa.String(length=64), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("previous_digest", sa.String(length=64), nullable=True),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_manifests_job_id_jobs")),
        sa.PrimaryKeyConstraint("report_id", "edition", name=op.f("pk_manifests")),
    )
    op.create_index("ix_manifests_month", "manifests", ["month"], unique=False)
    op.create_table(
        "placements",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("picture", sa.String(length=64), nullable=True),
        sa.Column("display", sa.String(length=64), nullable=True),
        sa.Column("width", sa.BigInteger(), nullable=False),
        sa.Column("height", sa.BigInteger(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["display"], ["objects.sha256"], name=op.f("fk_placements_display_objects")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_placements_job_id_jobs")),
        sa.ForeignKeyConstraint(["picture"], ["objects.sha256"], name=op.f("fk_placements_picture_objects")),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_placements")),
    )
    op.create_index("ix_placements_display", "placements", ["display"], unique=False)
    op.create_index("ix_placements_job_id_page", "placements", ["job_id", "page"], unique=False)
    op.create_index("ix_placements_picture", "placements", ["picture"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state IN ('held', 'released', 'rejected')", name=op.f("ck_quarantine_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_quarantine_job_id_jobs")),
        sa.PrimaryKeyConstraint("job_id", "name", name=op.f("pk_quarantine")),
    )
    op.create_table(
        "units",
        sa.Column("unit_id", sa.String(length=40), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("first_page", sa.Integer(), nullable=False),
        sa.Column("last_page", sa.Integer(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("worker", sa.String(length=64), nullable=True),
        sa.Column("not_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("lost_decoders", sa.Integer(), nullable=False),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name=op.f("ck_units_state")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_units_job_id_jobs")),
        sa.PrimaryKeyConstraint("unit_id", name=op.f("pk_units")),
        sa.UniqueConstraint("job_id", "sequence", name=op.f("uq_units_job_id_sequence")),
    )
    op.create_index("ix_units_state_lease_until", "units", ["state", "lease_until"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.String(length=48), nullable=False),
        sa.Column("unit_id", sa.String(length=40), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=64), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.String(length=24), nullable=True),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.Column("fetch_ms", sa.Float(), nullable=True),
        sa.Column("decode_ms", sa.Float(), nullable=True),
        sa.Column("publish_ms", sa.Float(), nullable=True),
        sa.Column("peak_rss_bytes", sa.BigInteger(), nullable=True),
        sa.Column("bytes_written", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_attempts_job_id_jobs")),
        sa.ForeignKeyConstraint(["unit_id"], ["units.unit_id"], name=op.f("fk_attempts_unit_id_units")),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("unit_id", "fence", name=op.f("uq_attempts_unit_id_fence")),
    )
    op.create_table(
        "pages",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("page", sa.Integer(), nullable=False),
        sa.Column("unit_id", sa.String(length=40), nullable=False),
        sa.Column("unit_kind", sa.String(length=8), nullable=False),
        sa.Column("label", sa.Text(), nullable=True),
        sa.Column("drawn", sa.Integer(), nullable=True),
        sa.Column("archived", sa.Integer(), nullable=False),
        sa.Column("collapsed", sa.Integer(), nullable=False),
        sa.Column("decorative", sa.Integer(), nullable=False),
        sa.Column("consumed", sa.Integer(), nullable=False),
        sa.Column("not_shown", sa.Integer(), nullable=False),
        sa.Column("quarantined", sa.Integer(), nullable=False),
        sa.Column("derived_archived", sa.Integer(), nullable=False),
        sa.Column("derived_quarantined", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_pages_job_id_jobs")),
        sa.ForeignKeyConstraint(["unit_id"], ["units.unit_id"], name=op.f("fk_pages_unit_id_units")),
        sa.PrimaryKeyConstraint("job_id", "page", name=op.f("pk_pages")),
    )
    op.create_table(
        "receipts",
        sa.Column("job_id", sa.String(length=26), nullable=False),
        sa.Column("asset_index", sa.String(length=64), nullable=False),
        sa.Column("unit_id", sa.String(length=40), nullable=False),
        sa.Column("fence", sa.Integer(), nullable=False),
        sa.Column("source_hash", sa.String(length=64), nullable=False),
        sa.Column("extractor_version", sa.String(length=384), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("display_hash", sa.String(length=64), nullable=True),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_receipts_job_id_jobs")),
        sa.ForeignKeyConstraint(["unit_id"], ["units.unit_id"], name=op.f("fk_receipts_unit_id_units")),
        sa.PrimaryKeyConstraint("job_id", "asset_index", name=op.f("pk_receipts")),
    )
    op.execute("INSERT INTO event_counter (counter_id, seq) VALUES (1, 0)")
    guard(op.get_bind(), APPEND_ONLY)
