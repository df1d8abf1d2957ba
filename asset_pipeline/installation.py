"""One opened installation: its settings, policy, ledger and stores, handed to every room that works.

Opening contacts the ledger (and brings an empty one to the newest schema) but no store; a store says
that it is away when it is used. Short-lived: open, use, close; closing covers what was recorded with a
checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from asset_pipeline.evidence.keys import Signer
from asset_pipeline.evidence.trust import Trust
from asset_pipeline.ledger.checkpoints import Checkpointer
from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.signing import Recorder, current_key, ensure_key, recorded_trust
from asset_pipeline.policy import Policy, load_policy
from asset_pipeline.settings import Settings
from asset_pipeline.storage.store import Store, open_store


@dataclass(frozen=True, slots=True)
class Installation:
    """Everything a room may need."""

    settings: Settings
    policy: Policy
    ledger: Ledger
    inbox: Store
    sources: Store
    archive: Store
    quarantine: Store
    recorder: Recorder
    checkpoints: Checkpointer

    def signer(self) -> Signer:
        """Who signs now: the key of the next event."""
        with self.ledger.read() as conn:
            key_id = current_key(conn)
        return self.recorder.signer(str(key_id))

    def trust(self) -> Trust:
        """Trust in the keys that the ledger names, and in the key service where there is one."""
        authority = self.recorder.authority()
        with self.ledger.read() as conn:
            return recorded_trust(conn, authority.public_key if authority else None)


def installed_policy(settings: Settings) -> Policy:
    """The policy in force. Only the default place may be empty: a file that somebody named must be there."""
    return load_policy(settings.policy_file, required=settings.policy != Path())


def installed_ledger(settings: Settings, *, check: bool = True, recorder: Recorder | None = None) -> Ledger:
    """The ledger as ``open_ledger`` opens it. Only the default folder is made: a named one must be there."""
    if not settings.ledger.get_secret_value():
        with suppress(OSError):  # told by whoever makes the file in it
            settings.home.mkdir(parents=True, exist_ok=True)
    return open_ledger(settings.ledger_url, check=check, recorder=recorder)


@contextmanager
def open_installation(settings: Settings) -> Iterator[Installation]:
    """Open what ``settings`` name. Raises ConfigurationError, StorageError or LedgerBehindError."""
    policy = installed_policy(settings)
    recorder = Recorder(
        settings.keys_folder, settings.event_key.get_secret_value(), settings.key_service, policy.digest
    )
    ledger = installed_ledger(settings, recorder=recorder)
    try:
        stores = {name: open_store(settings.store_address(name), settings, name) for name in _STORES}
        second = _second_store(settings)
        checkpoints = Checkpointer(ledger, recorder, [stores["archive"], *([second] if second else [])])
        ledger.when_recorded = checkpoints.recorded
        _ensure_key(ledger)
        try:
            yield Installation(
                settings=settings, policy=policy, ledger=ledger, recorder=recorder, checkpoints=checkpoints, **stores
            )
        finally:
            checkpoints.close()
    finally:
        ledger.close()


def _ensure_key(ledger: Ledger) -> None:
    """Make the key that signs events when the ledger is new, so that it can be backed up before it is needed."""
    with ledger.read() as conn:
        known = current_key(conn)
    if known is None:
        with ledger.begin() as tx:
            ensure_key(tx, datetime.now(UTC))


_STORES = ("inbox", "sources", "archive", "quarantine")


def _second_store(settings: Settings) -> Store | None:
    """The second store of checkpoints. Only an installation that has one pays for the import of S3's client."""
    if not settings.checkpoints:
        return None
    from asset_pipeline.storage.locked import open_second_store

    return open_second_store(settings)
