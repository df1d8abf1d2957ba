"""Opens the ledger's database and hands out transactions; the only module that knows how.

SQLite: WAL, ``BEGIN IMMEDIATE`` for every writing transaction (a deferred one that upgrades fails at once,
despite the busy timeout), ``recursive_triggers`` (else INSERT OR REPLACE passes the append-only
triggers). A failing database is a ``StorageError``, told without the driver's text, which may hold
parts of the address.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.exc import DatabaseError, DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from asset_pipeline.errors import ConfigurationError, LedgerBehindError, LedgerLocked, StorageError
from asset_pipeline.ledger.engines import make_engine
from asset_pipeline.ledger.events import RECORDED
from asset_pipeline.ledger.incidents import Incident
from asset_pipeline.ledger.migrations import HEAD, VERSION_TABLE, migrate
from asset_pipeline.ledger.migrations.append_only import unguarded
from asset_pipeline.ledger.schema import APPEND_ONLY, metadata
from asset_pipeline.ledger.signing import RECORDER, Recorder

MIGRATION_LOCK = 5_180_926_317_431_807
"""Key of the PostgreSQL advisory lock under which one process at a time migrates."""

_UPGRADE = "Run `asset-pipeline ledger upgrade`."


class Ledger:
    """An opened ledger. Threads may share it; each transaction has a connection of its own.

    Never open a transaction within a writing one in the same thread: on SQLite it waits for itself.
    """

    def __init__(self, engine: Engine, recorder: Recorder | None = None) -> None:
        self._engine = engine = engine.execution_options(**{RECORDER: recorder})
        self.when_recorded: Callable[[int], None] | None = None
        options = {"isolation_level": "REPEATABLE READ"} if engine.dialect.name == "postgresql" else {}
        self._reading = engine.execution_options(ledger_reads=True, **options)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A writing transaction: committed at the end, undone by any exception.

        After the commit ``when_recorded`` is told the number of the last event, if there was one.
        """
        seq: int | None = None
        try:
            with _told_apart(), self._engine.begin() as tx:
                tx.info.pop(RECORDED, None)
                yield tx
                seq = tx.info.pop(RECORDED, None)
        except Incident as incident:
            with _told_apart(), self._engine.begin() as tx:
                incident.record(tx)
                seq = tx.info.pop(RECORDED, None)
            raise
        finally:
            if seq is not None and self.when_recorded is not None:
                self.when_recorded(seq)

    def read(self) -> AbstractContextManager[Connection]:
        """A reading transaction: all its statements see the same moment, and it blocks nobody."""
        return self._read()

    def at_head(self) -> bool:
        """Whether the database has exactly the schema of this version."""
        with self.read() as conn:
            return _revision(conn) == HEAD

    def upgrade(self) -> None:
        """Bring the database to the schema of this version; of two processes one waits for the other."""
        with _told_apart(), self._engine.begin() as tx:
            if tx.dialect.name == "postgresql":
                tx.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            revision = _revision(tx)
            if revision == HEAD:
                return
            if revision is None:
                _check_empty(tx)
            elif revision > HEAD:
                raise _other_version()
            migrate(tx)
            if missing := unguarded(tx, APPEND_ONLY):
                raise ConfigurationError(f"The migration lost {len(missing)} triggers of append-only tables.")

    def close(self) -> None:
        """Close the connections that are not in use."""
        self._engine.dispose()

    @contextmanager
    def _read(self) -> Iterator[Connection]:
        with _told_apart(), self._reading.connect() as conn, conn.begin():
            yield conn


def open_ledger(url: str, *, check: bool = True, recorder: Recorder | None = None) -> Ledger:
    """Open the ledger at ``url`` (``sqlite:///path`` or ``postgresql://…``); an empty database gets its tables.

    Without ``recorder`` no event can be recorded, and so nothing changed that needs one.

    Raises ConfigurationError for an address that cannot be used, StorageError when the database is away,
    LedgerBehindError when it is of another version. With ``check`` False nothing is contacted.
    """
    ledger = Ledger(make_engine(url), recorder)
    if not check:
        return ledger
    try:
        with ledger.read() as conn:
            revision = _revision(conn)
        if revision is None:
            ledger.upgrade()
        elif revision != HEAD:
            raise _other_version() if revision > HEAD else _behind()
    except BaseException:
        ledger.close()
        raise
    return ledger


def _revision(conn: Connection) -> str | None:
    """Revision of the database; None when it never was a ledger."""
    if not inspect(conn).has_table(VERSION_TABLE):
        return None
    revision = conn.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()  # noqa: S608 - a constant
    return str(revision) if revision else None


def _check_empty(conn: Connection) -> None:
    """Refuse a database in which another program has tables of the same names (Dagster has ``jobs``)."""
    if taken := set(inspect(conn).get_table_names()) & set(metadata.tables):
        what = f"The ledger's database holds {len(taken)} tables of another program."
        raise ConfigurationError(what, "Give the ledger a database of its own.")


def _behind() -> LedgerBehindError:
    return LedgerBehindError("The ledger is behind this version of the program.", _UPGRADE)


def _other_version() -> LedgerBehindError:
    what = "The ledger is ahead of this version of the program."
    return LedgerBehindError(
        what, "Install the newer version again; `asset-pipeline ledger upgrade` only goes forward."
    )


@contextmanager
def _told_apart() -> Iterator[None]:
    """Turn a database that fails into a StorageError; a statement that is refused stays what it is."""
    try:
        yield
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise _failure(error) from None
    except DBAPIError as error:
        if "invalid dsn" in str(error.orig):
            raise ConfigurationError("The ledger's address has an option that is not known.", "Correct it.") from None
        if error.connection_invalidated:
            raise StorageError("The connection to the ledger was cut.", "Check that the database is up.") from None
        if type(error) is DatabaseError:
            what = "The ledger's file is damaged or is no database."
            raise StorageError(what, "Restore it from a backup, or name another file.") from None
        _forget_values(error)
        raise


def _forget_values(error: DBAPIError) -> None:
    """Keep the first line of what the driver says: the details of PostgreSQL quote the row, names and all."""
    for told in (error, error.orig):
        if told is not None and told.args:
            told.args = (str(told.args[0]).partition("\n")[0],)


_EXPLANATIONS = {
    "password authentication failed": "The ledger's database refused the user or the password.",
    "no password supplied": "The ledger's database wants a password.",
    "does not exist": "The ledger's database, or its user, does not exist.",
    "connection refused": "Nobody answers at the ledger's address.",
    "no such file or directory": "Nobody answers at the ledger's address.",
    "could not translate host name": "The host of the ledger is not known.",
    "lock timeout": "The ledger stayed locked by another process.",
    "timeout": "The ledger did not answer in time.",
    "timed out": "The ledger did not answer in time.",
    "is locked": "The ledger stayed locked by another process.",
    "readonly": "The ledger cannot be written.",
    "read-only": "The ledger cannot be written.",
    "unable to open": "The ledger's file cannot be opened.",
    "is full": "There is no space left for the ledger.",
}
_REMEDIES = {
    _EXPLANATIONS["password authentication failed"]: "Correct user and password in ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["no password supplied"]: "Name user and password in ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["does not exist"]: "Create it, or correct ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["connection refused"]: "Start the database, or correct ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["could not translate host name"]: "Correct ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["is locked"]: "Wait for the other process, or end it, and run again.",
    _EXPLANATIONS["readonly"]: "Give this user the right to write it.",
    _EXPLANATIONS["unable to open"]: "Check the folder it lies in, or correct ASSET_PIPELINE_LEDGER.",
    _EXPLANATIONS["is full"]: "Free some space and run again.",
}


def _failure(error: Exception) -> StorageError:
    told = str(error).lower()
    what = next((what for sign, what in _EXPLANATIONS.items() if sign in told), "The ledger's database failed.")
    kind = LedgerLocked if what == _EXPLANATIONS["is locked"] else StorageError
    return kind(what, _REMEDIES.get(what, "Check that the database is up and has space."))
