"""One opened installation: its settings, policy, ledger and stores, handed to every room that works.

Opening contacts the ledger (and brings an empty one to the newest schema) but no store; a store says
that it is away when it is used. Short-lived: open, use, close.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from asset_pipeline.ledger.database import Ledger, open_ledger
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


def installed_policy(settings: Settings) -> Policy:
    """The policy in force. Only the default place may be empty: a file that somebody named must be there."""
    return load_policy(settings.policy_file, required=settings.policy != Path())


@contextmanager
def open_installation(settings: Settings) -> Iterator[Installation]:
    """Open what ``settings`` name. Raises ConfigurationError, StorageError or LedgerBehindError."""
    policy = installed_policy(settings)
    ledger = open_ledger(settings.ledger_url)
    try:
        stores = {name: open_store(settings.store_address(name), settings, name) for name in _STORES}
        yield Installation(settings=settings, policy=policy, ledger=ledger, **stores)
    finally:
        ledger.close()


_STORES = ("inbox", "sources", "archive", "quarantine")
