"""What a manifest says about one job, built from the ledger alone.

Two parts. ``content`` holds no id, time or name: the same document read by the same extractor under the
same policy gives the same content in every installation, and its digest is the data version. ``record``
holds what is particular: ids, times, deadlines, edition. Every time in it is one the ledger recorded, so
that the same ledger always gives the same bytes. A job that did not succeed vouches for no page.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

import rfc8785
from sqlalchemy import Connection, Row, RowMapping, Text, cast, select

from asset_pipeline.errors import IntegrityError
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import jobs, objects, policies, source_documents, units, uploads
from asset_pipeline.model import Page
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import object_key

SCHEMA = "asset-pipeline/manifest/1"
SETTLED = frozenset({"succeeded", "failed_permanently", "dead_lettered"})
_EXTRACTION_PARTS = ("limits", "decorative", "figures", "media_types")


@dataclass(frozen=True, slots=True)
class Edition:
    """Which edition of a report's manifest this is, the digest of the one before, and since when its files are gone."""

    number: int = 1
    previous_digest: str | None = None
    deleted_at: datetime | None = None


@dataclass(frozen=True)
class ReportState:
    """A settled job as the ledger has it, ready to be written down."""

    job: RowMapping
    name: str | None
    content: dict[str, Any]
    units: list[dict[str, Any]]

    @cached_property
    def content_digest(self) -> str:
        """SHA-256 (hex) of the canonical content, which for a long document is what takes the longest here."""
        return sha256_hex(canonical_bytes(self.content))

    def is_told_by(self, latest: RowMapping | None) -> bool:
        """Whether the ledger's row of the newest edition is of this state: another one is due otherwise."""
        said = latest and (latest["content_digest"], latest["job_id"], latest["deleted_at"])
        return said == (self.content_digest, self.job["job_id"], self.job["expired_at"])

    def envelope(self, edition: Edition) -> dict[str, Any]:
        """The whole manifest of ``edition``."""
        return {"schema": SCHEMA, "content": self.content, "record": self._record(edition)}

    def _record(self, edition: Edition) -> dict[str, Any]:
        job = self.job
        deleted = {"deleted_at": _moment(edition.deleted_at)} if edition.deleted_at else {}
        return {
            "job_id": job["job_id"],
            "report_id": job["report_id"],
            "correlation_id": job["correlation_id"],
            "month": job["month"],
            "collection": job["collection"],
            "name": self.name,
            "revision": job["revision"],
            "parent_revision": job["parent_revision"],
            "bundle_id": None,
            "child_id": None,
            "state": job["state"],
            "edition": edition.number,
            "previous_digest": edition.previous_digest,
            "policy_digest": job["policy_digest"],
            "queued_at": _moment(job["queued_at"]),
            "started_at": _moment(job["started_at"]),
            "finished_at": _moment(job["finished_at"]),
            "working_until": _moment(job["working_until"]),
            "archive_until": _moment(job["archive_until"]),
            **deleted,
            "units": self.units,
        }


def read_report(conn: Connection, job_id: str) -> ReportState | None:
    """The state of a job, or None while it is not settled.

    IntegrityError when one of its pictures is not stored; an expired job tells what was there.
    """
    job = conn.execute(select(jobs).where(jobs.c.job_id == job_id)).mappings().one()
    if job["state"] not in SETTLED:
        return None
    body = select(cast(policies.c.body, Text)).where(policies.c.digest == job["policy_digest"])
    policy_digest, show_names = _of_policy(conn.execute(body).scalar_one())
    succeeded = job["state"] == "succeeded"
    pages = reading.pages_of(conn, job_id) if succeeded else []
    content = {
        "source": _source(conn, job),
        "outcome": "ok" if succeeded else job["reason"],
        "extractor_version": job["extractor_version"],
        "policy_digest": policy_digest,
        "pages": [page.model_dump(mode="json", by_alias=True) for page in pages],
        "pictures": list(_pictures(conn, pages, expired=job["expired_at"] is not None)),
    }
    name = _name(conn, job) if show_names else None
    return ReportState(job, name, content, _units(conn, job_id) if succeeded else [])


def extraction_digest(policy_body: dict[str, Any]) -> str:
    """Digest of the parts of a recorded policy that can change a result; equals ``Policy.extraction_digest``."""
    return sha256_hex(rfc8785.dumps({part: policy_body[part] for part in _EXTRACTION_PARTS}))


@lru_cache(maxsize=16)
def _of_policy(recorded: str) -> tuple[str, bool]:
    """Extraction digest of a recorded policy, and whether it shows names: reports by the hundred have the same one."""
    body = json.loads(recorded)
    return extraction_digest(body), body.get("show_names", True)


def canonical_bytes(content: Any) -> bytes:
    """What ``rfc8785.dumps`` gives, several times faster where the standard library writes numbers in the same way."""
    try:
        return _encode(_plain(content)).encode()
    except (_Unusual, TypeError):  # a key that is no text is judged by the standard too
        return rfc8785.dumps(content)


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")).encode
_LARGEST_WHOLE = 2**53 - 1


class _Unusual(Exception):
    """A value that the two may write differently."""


def _plain(value: Any) -> Any:
    """``value`` with whole floats as integers, which is how RFC 8785 writes them. Raises _Unusual."""
    kind = type(value)
    if kind is float:
        size = abs(value)
        if value.is_integer() and size <= _LARGEST_WHOLE:
            return int(value)
        # Beyond, one of the two writes an exponent, or a whole number as a fraction; also what is no number.
        if not 1e-4 <= size <= _LARGEST_WHOLE:
            raise _Unusual
        return value
    if kind is dict:
        if not "".join(value).isascii():  # others sort by UTF-16
            raise _Unusual
        # Most values are text: a call for each would take longer than all else here.
        return {key: item if type(item) is str else _plain(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    if kind is str or kind is bool or value is None or (kind is int and -_LARGEST_WHOLE <= value <= _LARGEST_WHOLE):
        return value
    raise _Unusual


def sha256_hex(body: bytes) -> str:
    """SHA-256 of ``body`` in hex."""
    return hashlib.sha256(body).hexdigest()


def _source(conn: Connection, job: RowMapping) -> dict[str, Any]:
    columns = (source_documents.c.bytes, source_documents.c.media_type)
    size, media_type = conn.execute(select(*columns).where(source_documents.c.sha256 == job["source_hash"])).one()
    return {
        "sha256": job["source_hash"],
        "bytes": size,
        "media_type": media_type,
        "pages": job["pages"],
        "encrypted": job["encrypted"],
    }


def _units(conn: Connection, job_id: str) -> list[dict[str, Any]]:
    """The page ranges in which a succeeded job was worked; of any other job, late workers may still change them."""
    columns = [units.c[name] for name in ("unit_id", "sequence", "first_page", "last_page", "fence")]
    found = conn.execute(select(*columns).where(units.c.job_id == job_id).order_by(units.c.sequence)).mappings()
    return [dict(row) for row in found]


def _name(conn: Connection, job: RowMapping) -> str | None:
    """The upload's name: the same for every upload of a report, because the report id is made from it."""
    query = select(uploads.c.name).where(uploads.c.report_id == job["report_id"]).order_by(uploads.c.first_seen_at)
    return conn.execute(query.limit(1)).scalar()


def _pictures(conn: Connection, pages: list[Page], *, expired: bool) -> Iterator[dict[str, Any]]:
    """One row for each stored file that a placement names, by digest."""
    originals = {row.picture for page in pages for row in page.placements if row.picture}
    displays = {row.display for page in pages for row in page.placements if row.display}
    for digest, has_alpha, *facts in _object_rows(conn, originals | displays, expired=expired):
        yield {
            "sha256": digest,
            "file": object_key(digest),
            "renditions": ["original"] * (digest in originals) + ["display"] * (digest in displays),
            "has_alpha": bool(has_alpha),
            **dict(zip(_FACTS, facts, strict=True)),
        }


_FACTS = ("media_type", "bytes", "width", "height", "bits", "mode", "icc", "pixel_sha256", "phash")


def _object_rows(conn: Connection, digests: Iterable[str], *, expired: bool) -> list[Row[Any]]:
    """Digest, whether it has alpha, and ``_FACTS`` of each file."""
    wanted = sorted(digests)
    columns = [objects.c[name] for name in ("sha256", "has_alpha", *_FACTS)]
    rows: list[Row[Any]] = []
    for some in (wanted[at : at + 500] for at in range(0, len(wanted), 500)):
        query = select(*columns).where(objects.c.sha256.in_(some))
        if not expired:
            query = query.where(objects.c.state == "stored")
        rows += conn.execute(query.order_by(objects.c.sha256)).all()
    if len(rows) != len(wanted):
        raise IntegrityError(
            "A report names a picture that the archive does not hold.", "Restore the archive.", Reason.RECEIPT_CONFLICT
        )
    return rows


def _moment(value: datetime | None) -> str | None:
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
