"""Operations: workers that were lost, and decisions on quarantined pictures.

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
    """Add the columns."""
    op.add_column("units", sa.Column("lost_workers", sa.Integer(), server_default="0", nullable=False))
    op.add_column("attempts", sa.Column("cage", sa.String(length=64), nullable=True))
    op.add_column("attempts", sa.Column("returned_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("quarantine", sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("quarantine", sa.Column("decided_by", sa.String(length=64), nullable=True))
    op.add_column("quarantine", sa.Column("sha256", sa.String(length=64), nullable=True))
    op.add_column("quarantine", sa.Column("bytes", sa.BigInteger(), nullable=True))
