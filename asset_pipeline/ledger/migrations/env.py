"""What Alembic runs for each command: the steps, on the connection it was given."""

from __future__ import annotations

from alembic import context

from asset_pipeline.ledger.migrations import VERSION_TABLE
from asset_pipeline.ledger.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    transactional_ddl=True,
)
context.run_migrations()
