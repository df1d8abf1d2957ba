"""Made-up logs with their keys and checkpoints, written and read without any database."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from asset_pipeline.evidence import chain
from asset_pipeline.evidence.actor import SYSTEM
from asset_pipeline.evidence.chain import Event
from asset_pipeline.evidence.dsse import Envelope
from asset_pipeline.evidence.keys import LocalSigner
from asset_pipeline.evidence.merkle import Frontier
from asset_pipeline.evidence.notes import Checkpoint, origin_of, sign_note
from asset_pipeline.evidence.trust import Trust, TrustedKey, trust_of

NOW = datetime(2026, 9, 30, 12, tzinfo=UTC)


def signer(seed: int) -> LocalSigner:
    return LocalSigner.of(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


@dataclass
class MadeLog:
    """A log that can be continued, rotated and sealed."""

    key: LocalSigner = field(default_factory=lambda: signer(1))
    envelopes: list[Envelope] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    keys: list[TrustedKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.keys = [TrustedKey(self.key.key_id, self.key.public_key, 1)]

    @property
    def origin(self) -> str:
        return origin_of(self.keys[0].key_id)

    def trust(self, authority: bytes | None = None) -> Trust:
        return trust_of(self.keys, authority)

    def lines(self) -> list[bytes]:
        return [envelope.dumps() for envelope in self.envelopes]

    def append(self, count: int) -> None:
        for _ in range(count):
            seq = len(self.envelopes) + 1
            facts = {"unit_id": f"unit-{seq % 7}", "pictures": [["page-001-image-001", "ab" * 32, None]], "n": seq}
            event = Event("unit_published", NOW + timedelta(seconds=seq), "2026-09", f"job-{seq % 5}", facts)
            self._add(event, [self.key])

    def rotate(self, new: LocalSigner) -> None:
        facts = {"old_key_id": self.key.key_id, "new_key_id": new.key_id}
        self._add(Event("key_rotated", NOW, facts=facts), [self.key, new])
        self.key = new
        self.keys.append(TrustedKey(new.key_id, new.public_key, len(self.envelopes) + 1))

    def seal(self, by: LocalSigner | None = None) -> str:
        tree = Frontier()
        for envelope in self.envelopes:
            tree.add(envelope.link())
        checkpoint = Checkpoint(self.origin, tree.size, tree.root(), self.envelopes[-1].link())
        self.notes.append(sign_note(checkpoint, by or self.key))
        return self.notes[-1]

    def _add(self, event: Event, signers: list[LocalSigner]) -> None:
        prev = self.envelopes[-1].link() if self.envelopes else chain.GENESIS
        self.envelopes.append(chain.seal(event, len(self.envelopes) + 1, prev, signers, SYSTEM, "cd" * 32))
