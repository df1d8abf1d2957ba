"""One pass of retention: everything past its deadline goes, nothing before it and nothing under a hold.

Order: what a stopped pass intended is ended; reports past their deadline are recorded as expired; gallery and catalogue
leave them out; pictures, sources and quarantined bytes go, each portion told before and after; the manifests get the
edition that says so. Any step may be the last one that happens: the next pass goes on from what the ledger says. Safe
beside any work and beside another pass. What no record names (``archive.sweep``) and working copies (``janitor``) go
with it.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby

from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.archive.sweep import SweptObjects, sweep_objects
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import deletions
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.expiry import (
    WORKING_DEADLINE,
    DueFile,
    Kind,
    due_jobs,
    due_pictures,
    due_sources,
    intended,
    months_to_tell,
)
from asset_pipeline.ledger.holds import keeps_everything
from asset_pipeline.ledger.identity import new_id
from asset_pipeline.ledger.statements import portions
from asset_pipeline.retention.clocks import due_in_quarantine, working_deadline
from asset_pipeline.retention.janitor import Sweep, left_behind, sweep
from asset_pipeline.retention.plan import WORKING_COPY, Line
from asset_pipeline.retention.shown import OpenPreviews, take_out_expired
from asset_pipeline.storage.store import CHUNK, Store

PORTION = 100
"""Files of one intent and of one transaction: how long a publication may have to wait for their rows."""

PARALLEL_DELETES = 8


@dataclass(slots=True)
class Pass:
    """What one pass did. ``reports`` are jobs that expired; ``months`` those whose reports were told anew."""

    at: datetime
    reports: int = 0
    deleted: list[DueFile] = field(default_factory=list)
    months: list[str] = field(default_factory=list)
    shown: int = 0
    manifests: int = 0
    swept: SweptObjects = field(default_factory=SweptObjects)
    leftovers: Sweep = field(default_factory=Sweep)

    @property
    def lines(self) -> list[Line]:
        """What was deleted, by month and kind."""
        files = Counter((row.month, row.kind.value) for row in self.deleted)
        sizes: Counter[tuple[str | None, str]] = Counter()
        for row in self.deleted:
            sizes[row.month, row.kind.value] += row.bytes
        ordered = sorted(files, key=lambda key: (key[0] is None, key[0] or "", key[1]))
        return [Line(month, kind, files[month, kind], sizes[month, kind]) for month, kind in ordered]


def apply(inst: Installation, now: datetime, open_previews: OpenPreviews) -> Pass:
    """Delete everything that is due at ``now``.

    Raises StorageError when a store is away: what was told stands, and the next pass ends it. A manifest that the
    archive contradicts is an IntegrityError, raised when everything else is done.
    """
    for store in (inst.sources, inst.archive, inst.quarantine):
        store.check()
    done = Pass(now)
    with inst.ledger.read() as conn:
        begun = intended(conn)
    for kind, files in groupby(begun, lambda row: row.kind):
        _settle(inst, kind, list(files), done)
    _expire(inst, done)
    with inst.ledger.read() as conn:
        done.months = months_to_tell(conn)
    for month in done.months:
        done.shown += take_out_expired(inst, month, open_previews, now)
    for kind in Kind:
        _delete(inst, kind, done)
    wrong = _tell_in_manifests(inst, done)
    done.swept = sweep_objects(inst, now)
    done.leftovers = _sweep_copies(inst, now)
    if wrong is not None:
        raise wrong
    return done


def _expire(inst: Installation, done: Pass) -> None:
    with inst.ledger.read() as conn:
        due = due_jobs(conn, done.at)
    for _, of_month in groupby(due, lambda row: row.month):
        for some in portions(list(of_month), PORTION):
            with inst.ledger.begin() as tx:
                done.reports += len(deletions.expire_jobs(tx, some, done.at))


def _delete(inst: Installation, kind: Kind, done: Pass) -> None:
    with inst.ledger.read() as conn:
        match kind:
            case Kind.PICTURE:
                found = list(due_pictures(conn, done.at))
            case Kind.SOURCE:
                found = list(due_sources(conn, done.at))
            case Kind.QUARANTINE:
                found = []
    if kind is Kind.QUARANTINE:
        found = list(_quarantined(inst, done.at))
    for some in portions(found, PORTION):
        with inst.ledger.begin() as tx:
            told = deletions.intend(tx, kind, some, done.at)
        _settle(inst, kind, told, done)


def _settle(inst: Installation, kind: Kind, files: Sequence[DueFile], done: Pass) -> None:
    store = {Kind.PICTURE: inst.archive, Kind.SOURCE: inst.sources, Kind.QUARANTINE: inst.quarantine}[kind]
    for some in portions(files, PORTION):
        with inst.ledger.begin() as tx:
            done.deleted += deletions.settle(
                tx, kind, some, lambda due: _delete_bytes(store, due), lambda row: store.exists(row.key), done.at
            )


def _delete_bytes(store: Store, files: Sequence[DueFile]) -> None:
    with ThreadPoolExecutor(PARALLEL_DELETES, thread_name_prefix="retention") as threads:
        list(threads.map(store.delete, [row.key for row in files]))


def _quarantined(inst: Installation, now: datetime) -> Iterator[DueFile]:
    for entry in due_in_quarantine(inst, now):
        digest = hashlib.sha256()
        try:
            with inst.quarantine.open(entry.key) as stream:
                while chunk := stream.read(CHUNK):
                    digest.update(chunk)
        except KeyError:
            continue  # gone meanwhile
        deadline = working_deadline(inst, entry)
        yield DueFile(
            Kind.QUARANTINE, digest.hexdigest(), entry.key, entry.bytes, None, None, deadline, WORKING_DEADLINE
        )


def _tell_in_manifests(inst: Installation, done: Pass) -> IntegrityError | None:
    """Publish the editions that say deleted; the first contradiction, when there was one."""
    wrong: IntegrityError | None = None
    for month in done.months:
        try:
            done.manifests += sum(row.written for row in publish_manifests(inst, month, done.at))
        except IntegrityError as error:
            wrong = wrong or error
    return wrong


def _sweep_copies(inst: Installation, now: datetime) -> Sweep:
    """As the janitor does every quarter of an hour, with an event before."""
    with inst.ledger.read() as conn:
        copies, size = (0, 0) if keeps_everything(conn) else left_behind(inst, now)
    if copies:
        facts = {"deletion_id": new_id(), "kind": WORKING_COPY, "reason": WORKING_DEADLINE}
        with inst.ledger.begin() as tx:
            record_event(tx, "deletion_intended", payload=facts | {"count": copies, "bytes": size}, now=now)
    return sweep(inst, now)
