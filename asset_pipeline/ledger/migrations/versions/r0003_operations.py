"""Operations: inspections, workers that were lost, slots of providers, and decisions on quarantined pictures.

Columns are added without Alembic's batch mode, so no table is rebuilt and no trigger is lost.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns, an index and a table."""
    op.add_column("jobs", sa.Column("inspections", sa.Integer(), server_default="0", nullable=False))
    op.add_column("jobs", sa.Column("inspected_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("jobs", sa.Column("lost_workers", sa.Integer(), server_default="0", nullable=False))
    op.create_index("ix_jobs_state", "jobs", ["state"], unique=False)
    op.add_column("units", sa.Column("lost_workers", sa.Integer(), server_default="0", nullable=False))
    op.add_column("attempts", sa.Column("cage", sa.String(length=64), nullable=True))
    op.add_column("attempts", sa.Column("returned_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("quarantine", sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("quarantine", sa.Column("decided_by", sa.String(length=64), nullable=True))
    op.add_column("quarantine", sa.Column("sha256", sa.String(length=64), nullable=True))
    op.add_column("quarantine", sa.Column("bytes", sa.BigInteger(), nullable=True))
    op.create_table(
        "slots",
        sa.Column("provider", sa.String(length=32), nullable=False),
        sa.Column("slot", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("holder", sa.String(length=26), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("provider", "slot", name=op.f("pk_slots")),
    )
