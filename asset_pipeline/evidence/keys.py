"""Ed25519 keys: who signs (``Signer``), how a private key is written down, and where key services are found.

A key's id is the start of the SHA-256 of its public key, so that nobody can choose one. Events are signed while the
ledger's counter is locked, which no network call may hold up: a key service therefore certifies a local event key
and signs checkpoints, never single events. Addresses of services are ``file:<path>`` and ``env:<VARIABLE>``; any
other scheme is looked up among the entry points ``asset_pipeline.key_services`` of installed packages: a callable
that takes the address and returns a ``Signer``.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from asset_pipeline.errors import ConfigurationError

SERVICES = "asset_pipeline.key_services"
"""Entry point group of key services beyond files and variables."""

SEED = 32
"""Bytes of a private key."""

_REMEDY = "A key is 32 bytes in hex, or an Ed25519 private key in PEM without a password."


class Signer(Protocol):
    """Whatever can sign with one Ed25519 key; the key itself may be elsewhere."""

    @property
    def public_key(self) -> bytes:
        """The 32 bytes of the public key."""
        ...

    @property
    def key_id(self) -> str:
        """``key_id_of`` the public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature of ``message``."""
        ...


@dataclass(frozen=True, slots=True)
class LocalSigner:
    """A private key in this process."""

    private: Ed25519PrivateKey
    public_key: bytes
    key_id: str

    @classmethod
    def of(cls, private: Ed25519PrivateKey) -> LocalSigner:
        """The signer of a private key."""
        public = private.public_key().public_bytes_raw()
        return cls(private, public, key_id_of(public))

    def sign(self, message: bytes) -> bytes:
        return self.private.sign(message)


def key_id_of(public_key: bytes) -> str:
    """Id of a public key: 32 hex characters of its SHA-256."""
    return hashlib.sha256(public_key).hexdigest()[:32]


def is_signed(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether ``signature`` of ``message`` was made with the private half of ``public_key``."""
    try:
        _public(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


@lru_cache(maxsize=64)
def _public(public_key: bytes) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(public_key)


def read_key(text: str, where: str) -> LocalSigner:
    """The signer whose private key is ``text`` (hex or PEM). Raises ConfigurationError, naming ``where`` it was."""
    stripped = text.strip()
    try:
        if stripped.startswith("-----BEGIN"):
            private = load_pem_private_key(stripped.encode("ascii"), None)
        else:
            private = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(stripped))
    except (ValueError, TypeError):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise ConfigurationError(f"{where} holds no Ed25519 key.", _REMEDY)
    return LocalSigner.of(private)


def open_key(address: str) -> Signer:
    """The signer at ``address``: ``file:<path>``, ``env:<VARIABLE>`` or a service. Raises ConfigurationError."""
    scheme, _, place = address.partition(":")
    match scheme:
        case "file":
            return _read_file(Path(place.removeprefix("//")))
        case "env":
            return read_key(os.environ.get(place, ""), "The variable that a key address names")
    found = [point for point in entry_points(group=SERVICES) if point.name == scheme]
    if not found:
        raise ConfigurationError(
            "The key's address is of an unknown kind.",
            f"Write file:<path> or env:<VARIABLE>, or install a package with an entry point in {SERVICES}.",
        )
    service: Callable[[str], Signer] = found[0].load()
    return service(address)


def key_file(folder: Path, key_id: str) -> Path:
    """Where the private key with this id lies."""
    return folder / f"event-{key_id}.key"


def make_key(folder: Path) -> LocalSigner:
    """A new private key in a file of its own in ``folder``, for its owner alone. Raises ConfigurationError."""
    seed = secrets.token_bytes(SEED)
    signer = LocalSigner.of(Ed25519PrivateKey.from_private_bytes(seed))
    path = key_file(folder, signer.key_id)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, seed.hex().encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        _make_durable(folder)
    except OSError as error:
        raise ConfigurationError(
            f"The key that signs events cannot be written ({error.strerror}).",
            "Check the folder that ASSET_PIPELINE_KEYS names.",
        ) from None
    return signer


def load_key(folder: Path, key_id: str) -> LocalSigner | None:
    """The signer with this id, or None when ``folder`` has no such key. Raises ConfigurationError."""
    path = key_file(folder, key_id)
    signer = _read_file(path) if path.exists() else None
    if signer is not None and signer.key_id != key_id:
        raise ConfigurationError("A key file holds another key than its name says.", "Restore it from a backup.")
    return signer


def _read_file(path: Path) -> LocalSigner:
    try:
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        raise ConfigurationError(
            "A key file cannot be read.", "Check its place and that its owner runs this program."
        ) from None
    return read_key(text, "A key file")


def _make_durable(folder: Path) -> None:
    """An event signed with a key that a power failure takes away could never be followed by another."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
