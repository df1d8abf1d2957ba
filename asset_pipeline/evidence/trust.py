"""The trust file: which keys may sign which part of a log. All that a verifier needs beside the log itself.

Canonical JSON, public by nature; what makes it trustworthy is how it reached the verifier, so hand it over apart from
the log. With an ``authority`` (a key service) every key needs its certificate, and the authority alone signs
checkpoints; but where a log was begun without one, that holds for what comes after the keys of its beginning, whose
last is followed by a rotation that it signed itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from asset_pipeline.errors import UsageError
from asset_pipeline.evidence import canonical, dsse
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.keys import Signer, is_signed, key_id_of
from asset_pipeline.evidence.notes import origin_of

SCHEMA = "asset-pipeline/trust/1"
CERTIFICATE = "application/vnd.asset-pipeline.key-certificate+json"


@dataclass(frozen=True, slots=True)
class TrustedKey:
    """A public key and the events it may sign: from ``first_seq`` to ``last_seq`` (None: no end yet)."""

    key_id: str
    public_key: bytes
    first_seq: int
    last_seq: int | None = None
    certificate: str | None = None

    def covers(self, seq: int) -> bool:
        """Whether the key may sign the event with this number."""
        return self.first_seq <= seq and (self.last_seq is None or seq <= self.last_seq)


@dataclass(frozen=True, slots=True)
class Trust:
    """The keys of one log, in order. Ranges follow each other without gap or overlap.

    ``since``: keys whose range begins at this event or later need a certificate, earlier ones do not.
    """

    origin: str
    keys: tuple[TrustedKey, ...]
    authority: bytes | None = None
    since: int = 0

    @property
    def first_seq(self) -> int:
        """Number of the first signed event."""
        return self.keys[0].first_seq if self.keys else 1

    def accepted(self) -> dict[str, TrustedKey]:
        """Keys by id: with an authority, only those it certified and those of before it."""
        return {key.key_id: key for key in self.keys if self._needs_none(key) or self._is_certified(key)}

    def note_keys(self) -> dict[str, bytes]:
        """Public keys, by id, that may sign checkpoints."""
        own = {key.key_id: key.public_key for key in self.keys if self._needs_none(key)}
        return own if self.authority is None else own | {key_id_of(self.authority): self.authority}

    @property
    def is_uncertified(self) -> bool:
        """Whether there is an authority that has not certified the key in use: it was named after the log began."""
        return self.authority is not None and bool(self.keys) and self._needs_none(self.keys[-1])

    def _needs_none(self, key: TrustedKey) -> bool:
        return self.authority is None or key.first_seq < self.since

    def _is_certified(self, key: TrustedKey) -> bool:
        return self.authority is not None and _is_certified(key, self.authority)

    def dumps(self) -> bytes:
        """The trust file."""
        since = {"certified_since": self.since} if self.since else {}
        return canonical.dumps(
            since
            | {
                "schema": SCHEMA,
                "origin": self.origin,
                "authority": self.authority.hex() if self.authority else None,
                "keys": [
                    {
                        "key_id": key.key_id,
                        "public_key": key.public_key.hex(),
                        "first_seq": key.first_seq,
                        "last_seq": key.last_seq,
                        "certificate": key.certificate,
                    }
                    for key in self.keys
                ],
            }
        )


def trust_of(keys: Sequence[TrustedKey], authority: bytes | None, since: int = 0) -> Trust:
    """The trust in ``keys`` of one log, whose ranges end where the next begins. ``since``: see ``Trust``."""
    ordered = sorted(keys, key=lambda key: key.first_seq)
    ends = [key.first_seq - 1 for key in ordered[1:]]
    ranged = tuple(replace(key, last_seq=end) for key, end in zip(ordered, [*ends, None], strict=False))
    return Trust(origin_of(ranged[0].key_id) if ranged else "", ranged, authority, since)


def since_of(keys: Sequence[TrustedKey]) -> int:
    """From which event on keys need certificates, by those that ``keys`` of one log have: 0 where its first has one."""
    begun = takewhile(lambda key: key.certificate is None, sorted(keys, key=lambda key: key.first_seq))
    return max((key.first_seq + 1 for key in begun), default=0)


def loads(body: bytes) -> Trust:
    """The trust in a trust file. Raises UsageError."""
    try:
        value = canonical.loads(body)
        keys = tuple(_key(row) for row in value["keys"])
        authority = bytes.fromhex(value["authority"]) if value["authority"] else None
        since = value.get("certified_since", 0)
        trust = Trust(value["origin"], keys, authority, since)
        sound = value["schema"] == SCHEMA and trust.dumps() == body and trust == trust_of(keys, authority, since)
        sound = sound and type(since) is int
    except (NotCanonical, KeyError, TypeError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise UsageError("That is not a trust file.", "Make one with `asset-pipeline evidence trust`.")
    return trust


def certify(authority: Signer, public_key: bytes, first_seq: int) -> str:
    """The authority's word that this key may sign events from ``first_seq`` on."""
    body = {"key_id": key_id_of(public_key), "public_key": public_key.hex(), "first_seq": first_seq}
    return dsse.sign(CERTIFICATE, canonical.dumps(body), [authority]).dumps().decode()


def _is_certified(key: TrustedKey, authority: bytes) -> bool:
    try:
        envelope = dsse.loads((key.certificate or "").encode())
        body = canonical.loads(envelope.payload)
    except NotCanonical:
        return False
    said = {"key_id": key.key_id, "public_key": key.public_key.hex(), "first_seq": key.first_seq}
    (signature,) = envelope.signatures if len(envelope.signatures) == 1 else (None,)
    return (
        signature is not None
        and envelope.payload_type == CERTIFICATE
        and body == said
        and is_signed(authority, signature.value, envelope.pae())
    )


def _key(row: dict[str, Any]) -> TrustedKey:
    key = TrustedKey(
        row["key_id"], bytes.fromhex(row["public_key"]), row["first_seq"], row["last_seq"], row["certificate"]
    )
    if key.key_id != key_id_of(key.public_key):
        raise ValueError("a key's id is not its own")
    return key
