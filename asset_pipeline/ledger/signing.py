"""Which key signs the events of this ledger: made on first use, found by the id the ledger names, replaced by rotation.

The counter row says which key is in use, and is locked while an event is signed; so a process that started before
a rotation signs its next event with the new key. Key files are named by key id and never replaced: a crash in the
middle of a rotation leaves a key nobody uses, never a ledger without its key.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, RowMapping, insert, select, update

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.evidence.keys import LocalSigner, Signer, load_key, make_key, open_key, read_key
from asset_pipeline.evidence.trust import Trust, TrustedKey, certify, since_of, trust_of
from asset_pipeline.ledger.schema import event_counter, signing_keys

COUNTER_ID = 1
RECORDER = "event_recorder"
"""Execution option of a ledger's connections that holds its ``Recorder``."""

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Recorder:
    """What a ledger needs to sign: the folder of key files, or a key given by the environment, and a key service.

    ``policy_digest`` is written into events that do not name a policy themselves.
    """

    folder: Path
    event_key: str = ""
    key_service: str = ""
    policy_digest: str | None = None
    _loaded: dict[str, LocalSigner] = field(default_factory=dict)
    _authority: Signer | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def signer(self, key_id: str) -> LocalSigner:
        """The signer with this id. Raises ConfigurationError when this process does not have it."""
        with self._lock:
            if key_id not in self._loaded:
                self._loaded[key_id] = self._load(key_id)
            return self._loaded[key_id]

    def authority(self) -> Signer | None:
        """The key service, where there is one."""
        with self._lock:
            if self._authority is None and self.key_service:
                self._authority = open_key(self.key_service)
            return self._authority

    def first(self) -> LocalSigner:
        """The first key of a ledger: the one given, or a new one in a file."""
        if self.event_key:
            return read_key(self.event_key, "ASSET_PIPELINE_EVENT_KEY")
        signer = make_key(self.folder)
        logger.warning(
            "A key that signs this installation's records was made in the keys folder. Keep a copy of the folder in a "
            "safe place, and hand the trust file (`asset-pipeline evidence trust`) to whoever shall verify."
        )
        return signer

    def _load(self, key_id: str) -> LocalSigner:
        given = read_key(self.event_key, "ASSET_PIPELINE_EVENT_KEY") if self.event_key else None
        found = given if given and given.key_id == key_id else load_key(self.folder, key_id)
        if found is None:
            raise ConfigurationError(
                "The key that signs this ledger's events is not here.",
                "Bring its file into the folder that ASSET_PIPELINE_KEYS names, or set ASSET_PIPELINE_EVENT_KEY to it.",
            )
        return found


def recorder_of(tx: Connection) -> Recorder:
    """The recorder of the ledger whose transaction this is."""
    recorder = tx.get_execution_options().get(RECORDER)
    if not isinstance(recorder, Recorder):
        raise ConfigurationError("The ledger was opened without a key to sign events.", "Open the installation.")
    return recorder


def current_key(conn: Connection) -> str | None:
    """Id of the key that signs now; None before the first."""
    key_id = select(event_counter.c.key_id).where(event_counter.c.counter_id == COUNTER_ID)
    found: str | None = conn.execute(key_id).scalar_one()
    return found


def ensure_key(tx: Connection, now: datetime) -> tuple[RowMapping, LocalSigner]:
    """The counter's row, locked until the transaction ends, and who signs the next event: a new key if need be."""
    recorder = recorder_of(tx)
    query = select(event_counter).where(event_counter.c.counter_id == COUNTER_ID)
    counter = tx.execute(query.with_for_update()).mappings().one()
    if counter["key_id"] is not None:
        return counter, recorder.signer(counter["key_id"])
    signer = recorder.first()
    introduce(tx, signer, counter["seq"] + 1, now)
    return counter, signer


def introduce(tx: Connection, signer: Signer, first_seq: int, now: datetime) -> None:
    """Make ``signer`` the one that signs from ``first_seq`` on, certified where there is a key service."""
    authority = recorder_of(tx).authority()
    row = {
        "key_id": signer.key_id,
        "public_key": signer.public_key.hex(),
        "first_seq": first_seq,
        "certificate": certify(authority, signer.public_key, first_seq) if authority else None,
        "introduced_at": now,
    }
    tx.execute(insert(signing_keys).values(**row))
    tx.execute(update(event_counter).where(event_counter.c.counter_id == COUNTER_ID).values(key_id=signer.key_id))


def recorded_trust(conn: Connection, authority: bytes | None) -> Trust:
    """Trust in the keys that the ledger names: as good as the ledger itself, and no better."""
    found = conn.execute(select(signing_keys).order_by(signing_keys.c.first_seq)).mappings()
    keys = [
        TrustedKey(row["key_id"], bytes.fromhex(row["public_key"]), row["first_seq"], None, row["certificate"])
        for row in found
    ]
    return trust_of(keys, authority, since_of(keys) if authority else 0)
