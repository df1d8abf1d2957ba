"""Measures: what an attempt worked on and which budgets it broke, and the alerts that were sent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add two columns and two indexes to the attempts, and the table of alerts."""
    op.add_column("attempts", sa.Column("pixels", sa.BigInteger(), nullable=True))
    op.add_column("attempts", sa.Column("breach", sa.String(length=128), nullable=True))
    op.create_index("ix_attempts_started_at", "attempts", ["started_at"], unique=False)
    op.create_index("ix_attempts_job_id", "attempts", ["job_id"], unique=False)
    op.create_table(
        "alerts",
        sa.Column("alert_key", sa.String(length=192), nullable=False),
        sa.Column("channel", sa.String(length=16), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("month", sa.String(length=7), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claimed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("sent_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("alert_key", "channel", name=op.f("pk_alerts")),
    )
