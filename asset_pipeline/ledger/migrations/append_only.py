"""Triggers that refuse every change to a row of an append-only table, and every TRUNCATE.

Alembic's batch mode rebuilds a table on SQLite and drops its triggers without a word: a step that
alters such a table calls ``guard`` again, and ``unguarded`` is asserted after every migration.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, text

_REFUSE = """
CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'append-only: %', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END $$
"""
_POSTGRES = {
    "keeps_rows": "CREATE TRIGGER {name} BEFORE UPDATE OR DELETE ON {table} "
    "FOR EACH ROW EXECUTE FUNCTION ledger_refuse_change()",
    "keeps_all": "CREATE TRIGGER {name} BEFORE TRUNCATE ON {table} "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_refuse_change()",
}
_SQLITE = {
    "keeps_update": "CREATE TRIGGER {name} BEFORE UPDATE ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'append-only: {table}'); END",
    "keeps_delete": "CREATE TRIGGER {name} BEFORE DELETE ON {table} "
    "BEGIN SELECT RAISE(ABORT, 'append-only: {table}'); END",
}


def guard(tx: Connection, tables: Sequence[str]) -> None:
    """Give ``tables`` the triggers they lack."""
    if _is_postgres(tx):
        tx.execute(text(_REFUSE))
    missing = unguarded(tx, tables)
    for table in tables:
        for suffix, statement in _triggers(tx).items():
            name = f"{table}_{suffix}"
            if name in missing:
                tx.execute(text(statement.format(name=name, table=table)))


def unguarded(tx: Connection, tables: Sequence[str]) -> list[str]:
    """Triggers that ``tables`` should have and have not; on PostgreSQL a disabled one counts as missing."""
    if _is_postgres(tx):
        found = (
            "SELECT tgname FROM pg_trigger WHERE NOT tgisinternal AND tgenabled IN ('O', 'A') "
            "AND tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = current_schema()::regnamespace)"
        )
    else:
        found = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    present = set(tx.execute(text(found)).scalars())
    return [name for table in tables for suffix in _triggers(tx) if (name := f"{table}_{suffix}") not in present]


def _triggers(tx: Connection) -> dict[str, str]:
    return _POSTGRES if _is_postgres(tx) else _SQLITE


def _is_postgres(tx: Connection) -> bool:
    return tx.dialect.name == "postgresql"
