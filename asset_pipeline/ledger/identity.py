"""Ids: random ones, ones derived from what they name, and the key under which a job is unique.

All ids are 26 lower-case base32 characters (130 bits), safe in keys, paths and addresses. A report's id
is keyed with the installation's own key, so that it is stable here, sorts nowhere and tells nobody the
name it was made from (REQUIREMENTS R2.1).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

ID_LENGTH = 26


def new_id() -> str:
    """A random id."""
    return _encode(secrets.token_bytes(17))


def derived_id(*parts: str) -> str:
    """The id of ``parts``: the same for the same parts, different for a different division of the same text."""
    framed = b"".join(len(part.encode()).to_bytes(8, "big") + part.encode() for part in parts)
    return _encode(hashlib.sha256(framed).digest())


def report_id(install_key: bytes, collection: str, month: str, name: str) -> str:
    """Id of the report that is uploaded as ``collection/month/name``."""
    message = f"{collection}/{month}/{name}".encode("utf-8", "surrogateescape")
    return _encode(hmac.new(install_key, message, hashlib.sha256).digest())


def job_key(report_id: str, source_hash: str, extractor_version: str) -> str:
    """What makes a job one job: these bytes, under this report, read by this extractor."""
    return f"extract:{report_id}:{source_hash}:{extractor_version}"


def job_id_of(job_key: str) -> str:
    """Id of the job with this key."""
    return derived_id("job", job_key)


def unit_id_of(job_id: str, sequence: int) -> str:
    """Id of the unit at ``sequence`` (from 0) of a job."""
    return f"{job_id}-{sequence:05d}"


def attempt_id_of(unit_id: str, fence: int) -> str:
    """Id of the attempt that holds ``fence``."""
    return f"{unit_id}-{fence}"


def _encode(digest: bytes) -> str:
    return base64.b32encode(digest).decode("ascii").lower()[:ID_LENGTH]
