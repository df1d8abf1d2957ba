"""Retention: when a report expired, legal holds, deletions under way, and what stays known of what was deleted.

Columns are added without Alembic's batch mode, so no table is rebuilt and no trigger is lost.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from asset_pipeline.ledger.migrations.append_only import guard

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns, two indexes and three tables."""
    op.add_column("jobs", sa.Column("expired_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("manifests", sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True))
    op.create_index("ix_jobs_archive_until", "jobs", ["archive_until"], unique=False)
    op.create_index("ix_jobs_source_hash", "jobs", ["source_hash"], unique=False)
    op.create_table(
        "holds",
        sa.Column("hold_id", sa.String(length=26), nullable=False),
        sa.Column("scope", sa.String(length=16), nullable=False),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("why", sa.String(length=64), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_by", sa.String(length=64), nullable=False),
        sa.Column("lifted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lifted_by", sa.String(length=64), nullable=True),
        sa.Column("lifted_why", sa.String(length=64), nullable=True),
        sa.CheckConstraint("scope IN ('report', 'collection', 'month', 'all')", name=op.f("ck_holds_scope")),
        sa.CheckConstraint("(scope = 'all') = (subject IS NULL)", name=op.f("ck_holds_subject")),
        sa.PrimaryKeyConstraint("hold_id", name=op.f("pk_holds")),
    )
    op.create_table(
        "deletions",
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("deletion_id", sa.String(length=26), nullable=False),
        *_facts(),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_deletions_job_id_jobs")),
        sa.PrimaryKeyConstraint("kind", "key", name=op.f("pk_deletions")),
    )
    op.create_table(
        "tombstones",
        sa.Column("deletion_id", sa.String(length=26), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        *_facts(),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_tombstones_job_id_jobs")),
        sa.PrimaryKeyConstraint("deletion_id", "kind", "sha256", name=op.f("pk_tombstones")),
    )
    op.create_index("ix_tombstones_sha256", "tombstones", ["sha256"], unique=False)
    op.create_index("ix_tombstones_month", "tombstones", ["month"], unique=False)
    guard(op.get_bind(), ("tombstones",))


def _facts() -> list[sa.Column[Any]]:
    """What is known of a file, while it is being deleted and for ever after."""
    return [
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.String(length=26), nullable=True),
        sa.Column("month", sa.String(length=7), nullable=True),
        sa.Column("why", sa.String(length=32), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("intended_at", sa.DateTime(timezone=True), nullable=False),
    ]
