"""The signed form of a manifest: a DSSE envelope around the canonical JSON of schema, content and record.

Signed once, with the key that signs the events at that time. Id and signature are kept in the ledger, so that the
same bytes can be put together again when the key is long replaced; nothing is ever signed a second time. What a
manifest says belongs in ``content``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from asset_pipeline.archive.schema import check_manifest
from asset_pipeline.errors import IntegrityError
from asset_pipeline.evidence import canonical, dsse
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.dsse import Envelope, Signature
from asset_pipeline.evidence.keys import Signer, is_signed
from asset_pipeline.evidence.trust import Trust

MANIFEST = "application/vnd.asset-pipeline.manifest+json"


@dataclass(frozen=True, slots=True)
class SignedManifest:
    """A manifest as it is stored. ``body`` holds schema, content and record."""

    envelope: Envelope
    body: dict[str, Any]

    @property
    def key_id(self) -> str:
        """Id of the key that signed."""
        return self.envelope.signatures[0].key_id

    def is_signed_under(self, trust: Trust) -> bool:
        """Whether a key of ``trust`` signed it."""
        key = trust.accepted().get(self.key_id)
        return key is not None and is_signed(key.public_key, self.envelope.signatures[0].value, self.envelope.pae())


def seal(body: dict[str, Any], signer: Signer) -> Envelope:
    """``body`` signed. IntegrityError when it does not satisfy the published schema."""
    check_manifest(body)
    return dsse.sign(MANIFEST, canonical.dumps(body), [signer])


def put_together(body: dict[str, Any], key_id: str, signature: str) -> bytes:
    """The stored bytes of a manifest that was signed before."""
    return Envelope(MANIFEST, canonical.dumps(body), (Signature(key_id, bytes.fromhex(signature)),)).dumps()


def open_manifest(stored: bytes) -> SignedManifest:
    """The manifest in ``stored`` bytes, its signature not yet checked. IntegrityError when they are none."""
    try:
        envelope = dsse.loads(stored)
        body = canonical.loads(envelope.payload)
    except NotCanonical:
        envelope, body = None, None
    if envelope is None or envelope.payload_type != MANIFEST or len(envelope.signatures) != 1:
        raise IntegrityError("That is not a signed manifest.", "Restore it from a backup.")
    check_manifest(body)
    return SignedManifest(envelope, body)
