"""Evidence: signatures and chain of the events, keys, checkpoints.

Events that were recorded before stay as they are, without a signature; the log that can be verified begins with
the first key's first event.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from asset_pipeline.ledger.migrations.append_only import guard

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns and tables."""
    for table, name, kind, unsigned in (
        ("audit_events", "signatures", sa.Text(), "[]"),
        ("manifests", "key_id", sa.String(length=32), ""),
        ("manifests", "signature", sa.String(length=128), ""),
    ):
        op.add_column(table, sa.Column(name, kind, nullable=False, server_default=unsigned))
    op.add_column("event_counter", sa.Column("head", sa.String(length=64), nullable=True))
    op.add_column("event_counter", sa.Column("key_id", sa.String(length=32), nullable=True))
    op.create_table(
        "signing_keys",
        sa.Column("key_id", sa.String(length=32), nullable=False),
        sa.Column("public_key", sa.String(length=64), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), nullable=False),
        sa.Column("certificate", sa.Text(), nullable=True),
        sa.Column("introduced_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key_id", name=op.f("pk_signing_keys")),
        sa.UniqueConstraint("first_seq", name=op.f("uq_signing_keys_first_seq")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("size", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("frontier", sa.Text(), nullable=False),
        sa.Column("made_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("size", name=op.f("pk_checkpoints")),
    )
    guard(op.get_bind(), ("signing_keys", "checkpoints"))
