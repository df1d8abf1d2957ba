"""Operations: decisions on quarantined pictures, requeued jobs, slots of a provider."""

from __future__ import annotations

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing yet."""
