"""Hands a month's evidence to somebody else: a BagIt bag (RFC 8493) that verifies alone, offline, with public keys.

Of the log it holds the part from the month's first event to its last, whole, other months' events between them
included: so nothing can have been left out of it, which picking the month's events one by one could not show. The
Merkle proof ties that part to a checkpoint over the entire log. Events hold no names; manifests hold those that the
policy shows. ``bagit`` checks the files, ``verify_bag`` the log, the manifests against it, and pictures by digest.
"""

from __future__ import annotations

import csv
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import bagit  # type: ignore[import-untyped]

from asset_pipeline.archive.content import sha256_hex
from asset_pipeline.archive.envelope import open_manifest
from asset_pipeline.errors import ConfigurationError, IntegrityError, UsageError
from asset_pipeline.evidence import canonical, trust
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.findings import Fault
from asset_pipeline.evidence.merkle import leaf_hash, range_proof
from asset_pipeline.evidence.trust import Trust
from asset_pipeline.evidence.types import PREMIS
from asset_pipeline.evidence.verify import RangeProof, Verdict, verify
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.chain import Log, notes, span_of_month
from asset_pipeline.storage.store import fetch_checked

EVENTS, NOTE, PROOF, TRUST = "log/events.jsonl", "log/checkpoint.note", "log/proof.json", "log/trust.json"
PROOF_SCHEMA = "asset-pipeline/range-proof/1"

EVENT_COLUMNS = ("seq", "at", "type", "premis_event_type", "month", "job_id", "actor", "actor_source", "code_version")
PICTURE_COLUMNS = (
    *("report_id", "revision", "edition", "source_sha256", "page", "name", "kind", "status", "reason"),
    *("original", "display", "width", "height", "extractor_version"),
)


@dataclass(frozen=True, slots=True)
class Bagged:
    """What went into a bag."""

    events: int
    manifests: int
    pictures: int


def write_bag(inst: Installation, month: str, target: Path, *, pictures: bool = False) -> Bagged:
    """Write the evidence of ``month`` to the new folder ``target``.

    Raises UsageError when there is none or the target is taken, StorageError when a store is away.
    """
    if target.exists():
        raise UsageError("The target exists already.", "Name a folder that does not exist.")
    inst.checkpoints.seal()
    place = target.with_name(f".{target.name}-{secrets.token_hex(8)}")
    try:
        place.mkdir(parents=True)
        bagged = _fill(inst, month, place, pictures)
        bagit.make_bag(str(place), {"External-Identifier": f"evidence-{month}"}, checksums=["sha256"])
        place.rename(target)
    except OSError as error:
        raise ConfigurationError(
            f"The bag cannot be written ({error.strerror}).", "Name another folder for it."
        ) from None
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return bagged


def verify_bag(folder: Path, trusted: Trust | None = None) -> Verdict:
    """Check a bag. Without ``trusted``, by the keys in the bag itself: then only that it agrees with itself."""
    try:
        bag = bagit.Bag(str(folder))
        data = folder / "data"
        under = trusted or trust.loads((data / TRUST).read_bytes())
        note, proof = (data / NOTE).read_text("utf-8"), _proof((data / PROOF).read_bytes())
        lines = (data / EVENTS).read_bytes().splitlines()
    except (bagit.BagError, OSError, UnicodeDecodeError, ValueError):
        raise UsageError(
            "That is not a bag of evidence.", "Name a folder that `asset-pipeline evidence export` wrote."
        ) from None
    verdict = verify(lines, under, [note], proof=proof)
    for what in _altered(bag):
        verdict.add(Fault.ALTERED_FILE, None, what)
    for what in _unproved(data, lines, under):
        verdict.add(Fault.ALTERED_FILE, None, what)
    return verdict


def _fill(inst: Installation, month: str, place: Path, pictures: bool) -> Bagged:
    for folder in ("log", "manifests"):
        (place / folder).mkdir()
    with inst.ledger.read() as conn:
        span = span_of_month(conn, month)
        if span is None:
            raise UsageError("Nothing was recorded of that month.", "See `asset-pipeline status`.")
        bodies = _write_log(inst, conn, span, notes(conn)[-1], place)
    written = list(_write_manifests(inst, month, place))
    _write_csv(place / "events.csv", EVENT_COLUMNS, [_event_row(body) for body in bodies])
    _write_csv(place / "pictures.csv", PICTURE_COLUMNS, [row for body in written for row in _picture_rows(body)])
    count = _write_pictures(inst, written, place) if pictures else 0
    return Bagged(len(bodies), len(written), count)


def _write_log(inst: Installation, conn: Any, span: tuple[int, int], note: str, place: Path) -> list[dict[str, Any]]:
    """The part of the log, its proof, checkpoint and trust file; the events as they read."""
    known = inst.trust()
    base, size = known.first_seq - 1, int(note.split("\n")[1])
    first, last = max(span[0], known.first_seq), span[1]
    leaves, bodies = [], []
    with (place / EVENTS).open("wb") as stream:
        for seq, envelope in enumerate(Log(conn, known.first_seq, base + size), known.first_seq):
            leaves.append(leaf_hash(envelope.link()))
            if first <= seq <= last:
                stream.write(envelope.dumps() + b"\n")
                bodies.append(json.loads(envelope.payload))
    hashes = range_proof(leaves, first - 1 - base, last - base)
    proof = {"schema": PROOF_SCHEMA, "first_seq": first, "last_seq": last, "size": size}
    (place / PROOF).write_bytes(canonical.dumps(proof | {"hashes": [row.hex() for row in hashes]}))
    (place / NOTE).write_text(note, "utf-8")
    (place / TRUST).write_bytes(known.dumps())
    return bodies


def _write_manifests(inst: Installation, month: str, place: Path) -> Iterator[dict[str, Any]]:
    """Every edition that the archive holds; the newest ones as they read."""
    prefix = f"manifests/{month}/"
    for entry in inst.archive.list(prefix):
        name = entry.key.removeprefix(prefix)
        target = place / "manifests" / name
        target.parent.mkdir(exist_ok=True)
        with inst.archive.open(entry.key) as stream:
            stored = stream.read()
        target.write_bytes(stored)
        if "/" not in name:
            yield open_manifest(stored).body


def _write_pictures(inst: Installation, written: Sequence[Mapping[str, Any]], place: Path) -> int:
    kept = (body for body in written if "deleted_at" not in body["record"])
    files = {row["file"]: row["sha256"] for body in kept for row in body["content"]["pictures"]}
    for key, digest in sorted(files.items()):
        target = place / key
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            fetch_checked(inst.archive, key, target, digest)
        except KeyError:
            raise IntegrityError("The archive lacks pictures of the month.", "Export it without pictures.") from None
    return len(files)


def _write_csv(target: Path, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    with target.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def _event_row(body: Mapping[str, Any]) -> dict[str, Any]:
    return {**body, "premis_event_type": PREMIS.get(body["type"], "")}


def _picture_rows(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content, record = body["content"], body["record"]
    of_report = {name: record[name] for name in ("report_id", "revision", "edition")}
    of_report |= {"source_sha256": content["source"]["sha256"], "extractor_version": content["extractor_version"]}
    for page in content["pages"]:
        for row in page["placements"]:
            yield {**row, **of_report, "page": page["page"], "original": row["picture"]}


def _proof(body: bytes) -> RangeProof:
    try:
        value = canonical.loads(body)
        hashes = tuple(bytes.fromhex(row) for row in value["hashes"])
        return RangeProof(value["first_seq"], value["last_seq"], value["size"], hashes)
    except (NotCanonical, KeyError, TypeError) as error:
        raise ValueError("it is not a proof") from error


def _altered(bag: bagit.Bag) -> Iterator[str]:
    """What BagIt finds: files that are missing, were added or changed."""
    try:
        bag.validate()
    except bagit.BagValidationError as error:
        yield from (str(detail) for detail in error.details or [error])


def _unproved(data: Path, lines: Sequence[bytes], under: Trust) -> Iterator[str]:
    """Manifests that no event of the log names or no trusted key signed, and pictures that are not what they say."""
    published = {body.get("digest") for body in _bodies(lines) if body.get("type") == "manifest_published"}
    for path in sorted((data / "manifests").rglob("*.json")):
        stored = path.read_bytes()
        try:
            is_signed = open_manifest(stored).is_signed_under(under)
        except IntegrityError:
            is_signed = False
        if not is_signed or sha256_hex(stored) not in published:
            yield f"manifest {path.stem} is not one that the log names"
    for path in sorted((data / "objects").rglob("*")):
        if path.is_file() and sha256_hex(path.read_bytes()) != path.name:
            yield f"picture {path.name} is not the one its name says"


def _bodies(lines: Sequence[bytes]) -> Iterator[dict[str, Any]]:
    """The payloads that can be read; what is wrong with the others is told elsewhere."""
    from asset_pipeline.evidence import dsse

    for line in lines:
        try:
            body = canonical.loads(dsse.loads(line).payload)
        except NotCanonical:
            continue
        if isinstance(body, dict):
            yield body
