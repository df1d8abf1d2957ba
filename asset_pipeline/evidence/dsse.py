"""The envelope of everything that is signed: DSSE, https://github.com/secure-systems-lab/dsse/blob/v1.0.2/envelope.md.

What is signed is the pre-authentication encoding (PAE) of type and payload, so that no signature can be carried
over to a payload of another type. An envelope is itself written as canonical JSON: it has one form too.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from asset_pipeline.evidence import canonical
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.keys import Signer


@dataclass(frozen=True, slots=True)
class Signature:
    """64 bytes of Ed25519, and the id of the key that made them."""

    key_id: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload with its type and one or more signatures, in order."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]

    def pae(self) -> bytes:
        """The bytes that were signed."""
        return pae(self.payload_type, self.payload)

    def link(self) -> bytes:
        """SHA-256 over PAE and signatures: what the next event of a chain names, and a checkpoint covers."""
        return hashlib.sha256(self.pae() + b"".join(signature.value for signature in self.signatures)).digest()

    def dumps(self) -> bytes:
        """The envelope as canonical JSON."""
        return canonical.dumps(
            {
                "payload": _encode(self.payload),
                "payloadType": self.payload_type,
                "signatures": [{"keyid": row.key_id, "sig": _encode(row.value)} for row in self.signatures],
            }
        )


def pae(payload_type: str, payload: bytes) -> bytes:
    """Pre-authentication encoding, version 1."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def sign(payload_type: str, payload: bytes, signers: Sequence[Signer]) -> Envelope:
    """``payload`` in an envelope that each of ``signers`` signs."""
    message = pae(payload_type, payload)
    return Envelope(payload_type, payload, tuple(Signature(signer.key_id, signer.sign(message)) for signer in signers))


def loads(body: bytes) -> Envelope:
    """The envelope that ``body`` holds. Raises NotCanonical for anything that ``Envelope.dumps`` would not write."""
    value = canonical.parse(body)
    try:
        envelope = Envelope(
            _text(value["payloadType"]),
            _decode(value["payload"]),
            tuple(Signature(_text(row["keyid"]), _decode(row["sig"])) for row in value["signatures"]),
        )
    except (TypeError, KeyError, binascii.Error, UnicodeError):
        raise NotCanonical from None
    if envelope.dumps() != body:
        raise NotCanonical
    return envelope


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise NotCanonical
    return value


def _encode(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _decode(value: Any) -> bytes:
    return base64.b64decode(_text(value), validate=True)
