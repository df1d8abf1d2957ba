"""Makes checkpoints, and puts them where the log itself is not: into the archive store and, if set, a second store.

Due after 256 events, looked at by whoever has just recorded one; 60 seconds after the first event that none covers,
looked at by a timer, so that a process with nothing to do keeps to it too; and when an installation is closed, so at
the end of every run. What a process that was killed left uncovered, others find (``catch_up``). A checkpoint that
cannot be stored never undoes or holds up the work: the next one covers its events too. Before it is signed the new
events are checked to follow each other, so that nothing that was tampered with meanwhile is vouched for.
"""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from sqlalchemy import Connection, select

from asset_pipeline.errors import IntegrityError, PipelineError
from asset_pipeline.evidence import canonical
from asset_pipeline.evidence.merkle import Frontier
from asset_pipeline.evidence.notes import Checkpoint, sign_note
from asset_pipeline.ledger.chain import Log, envelope_of, last_seq
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.ledger.schema import checkpoints
from asset_pipeline.ledger.signing import Recorder, current_key, recorded_trust
from asset_pipeline.ledger.statements import insert_new
from asset_pipeline.reasons import Reason
from asset_pipeline.storage.store import Store

EVENTS = 256
SECONDS = 60.0
PAUSE_SECONDS = 10.0
"""How long after a failure it is not tried again but at the end."""

PREFIX = "checkpoints/"

logger = logging.getLogger(__name__)


def checkpoint_key(size: int) -> str:
    """Key of a checkpoint in a store; keys sort as sizes do."""
    return f"{PREFIX}{size:012d}.note"


def stored_notes(store: Store) -> Iterator[str]:
    """The checkpoints that lie in ``store``, by size."""
    for entry in store.list(PREFIX):
        with store.open(entry.key) as stream:
            yield stream.read().decode("utf-8", "replace")


class Checkpointer:
    """Keeps the part of a ledger's log that no checkpoint covers short. Threads may share it."""

    def __init__(self, ledger: Ledger, recorder: Recorder, stores: Sequence[Store]) -> None:
        self._ledger, self._recorder, self.stores = ledger, recorder, stores
        self._lock = threading.Lock()
        self._covered: int | None = None
        self._recorded = 0
        self._exposed_since = 0.0
        self._not_before = 0.0
        self._arming = threading.Lock()
        self._timer: threading.Timer | None = None
        self._closed = False

    def recorded(self, seq: int) -> None:
        """Take note of an event that was committed, and make a checkpoint if one is due. Never raises PipelineError."""
        self._arm(SECONDS)
        if not self._lock.acquire(blocking=False):
            self._recorded = max(self._recorded, seq)
            return
        try:
            now = time.monotonic()
            if self._covered is None or self._recorded <= self._covered:
                self._exposed_since = now
            self._recorded = max(self._recorded, seq)
            if now >= self._not_before:
                self._make_quietly(only_if_due=True)
        finally:
            self._lock.release()

    def seal(self) -> Checkpoint | None:
        """Cover every event now; None when that is so already. Raises StorageError or IntegrityError."""
        with self._lock:
            return self._make()

    def catch_up(self, seconds: float = SECONDS) -> None:
        """Cover what has been uncovered for so long, whoever left it; a failure is logged.

        Raises StorageError when the ledger is away.
        """
        with self._lock:
            with self._ledger.read() as conn:
                covered = _base(conn) + _last(conn)[0]
            if self._left_before(covered, seconds):
                self._make_quietly()

    def close(self) -> None:
        """Cover what this process recorded, if the stores let it."""
        with self._arming:
            self._closed = True
            if self._timer is not None:
                self._timer.cancel()
        with self._lock:
            if self._recorded > (self._covered or 0):
                self._make_quietly()

    def _arm(self, seconds: float) -> None:
        """See to it that somebody looks in so many seconds, whatever else happens."""
        with self._arming:
            if self._timer is None and not self._closed:
                self._timer = threading.Timer(seconds, self._look)
                self._timer.daemon = True
                self._timer.name = "checkpoints"
                self._timer.start()

    def _look(self) -> None:
        with self._arming:
            self._timer = None
        with self._lock:
            if self._closed or self._recorded <= (self._covered or 0):
                return
            self._make_quietly(only_if_due=True)
            exposed = time.monotonic() - self._exposed_since
            if self._recorded > (self._covered or 0):
                self._arm(max(SECONDS - exposed, PAUSE_SECONDS if exposed >= SECONDS else 0.0))

    def _is_due(self, now: float) -> bool:
        if self._covered is None:
            with self._ledger.read() as conn:
                self._covered = _base(conn) + _last(conn)[0]
            # What another process left uncovered may be old: it is not known how old.
            return self._recorded - self._covered >= EVENTS or self._left_before(self._covered, SECONDS)
        return self._recorded - self._covered >= EVENTS or now - self._exposed_since >= SECONDS

    def _left_before(self, covered: int, seconds: float) -> bool:
        with self._ledger.read() as conn:
            first = next(iter(Log(conn, covered + 1, covered + 1).rows()), None)
        return first is not None and (datetime.now(UTC) - first["at"]).total_seconds() >= seconds

    def _make_quietly(self, *, only_if_due: bool = False) -> None:
        try:
            if not only_if_due or self._is_due(time.monotonic()):
                self._make()
        except PipelineError as error:
            self._not_before = time.monotonic() + PAUSE_SECONDS
            # While another failure ends the work, that one is told; this is its consequence.
            level = logging.INFO if _follows_another(error) else logging.ERROR
            logger.log(level, "no checkpoint could be made: %s", error)

    def _make(self) -> Checkpoint | None:
        with self._ledger.read() as conn:
            key_id, last = current_key(conn), last_seq(conn)
            base, (size, frontier) = _base(conn), _last(conn)
            self._covered = base + size
            if key_id is None or last <= self._covered:
                return None
            authority = self._recorder.authority()
            origin = recorded_trust(conn, None).origin
            head = _grow(conn, frontier, self._covered, last)
        checkpoint = Checkpoint(origin, frontier.size, frontier.root(), head)
        note = sign_note(checkpoint, authority or self._recorder.signer(key_id))
        failed = self._store(checkpoint.size, note)
        if failed is None or failed[0] is not self.stores[0]:
            row = {
                "size": checkpoint.size,
                "note": note,
                "frontier": canonical.dumps([row.hex() for row in frontier.hashes]).decode(),
                "made_at": datetime.now(UTC),
            }
            with self._ledger.begin() as tx:
                insert_new(tx, checkpoints, [row])
            self._covered = last
        if failed is not None:
            raise failed[1]
        return checkpoint

    def _store(self, size: int, note: str) -> tuple[Store, PipelineError] | None:
        """Put the note into every store; the first that failed."""
        failed = None
        for store in self.stores:
            try:
                _put(store, checkpoint_key(size), note.encode())
            except PipelineError as error:
                failed = failed or (store, error)
        return failed


def _put(store: Store, key: str, body: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "note")
        copy.write_bytes(body)
        if store.put_once(key, copy, sha256(body).hexdigest()):
            return
    with store.open(key) as stream:
        there = stream.read()
    if there.partition(b"\n\n")[0] != body.partition(b"\n\n")[0]:
        raise IntegrityError(
            "A stored checkpoint covers other events than the ledger has.",
            "Run `asset-pipeline evidence verify`, and keep ledger and stores as they are.",
            Reason.RECEIPT_CONFLICT,
        )


def _base(conn: Connection) -> int:
    """Number of the event before the first signed one."""
    return recorded_trust(conn, None).first_seq - 1


def _last(conn: Connection) -> tuple[int, Frontier]:
    """Size of the newest checkpoint, and its tree."""
    query = select(checkpoints.c.size, checkpoints.c.frontier).order_by(checkpoints.c.size.desc()).limit(1)
    found = conn.execute(query).one_or_none()
    if found is None:
        return 0, Frontier()
    return found.size, Frontier(found.size, [bytes.fromhex(row) for row in json.loads(found.frontier)])


def _grow(conn: Connection, frontier: Frontier, covered: int, last: int) -> bytes:
    """Add the events after ``covered`` to the tree; the link of the last. IntegrityError when one does not follow."""
    before = next(iter(Log(conn, covered, covered)), None)
    link = before.link() if before is not None and frontier.size else bytes(32)
    seq = covered
    for row in Log(conn, covered + 1, last).rows():
        if _place(row["payload"]) != (seq + 1, link.hex()):
            break
        seq += 1
        link = envelope_of(row).link()
        frontier.add(link)
    if seq != last:
        what = "The events that were recorded last do not follow each other: no checkpoint is made of them."
        remedy = "Run `asset-pipeline evidence verify`, and keep ledger and stores as they are."
        raise IntegrityError(what, remedy, Reason.RECEIPT_CONFLICT)
    return link


def _place(payload: str) -> tuple[int, str] | None:
    """Number and link to the one before of an event; None when it is no event any more."""
    try:
        body = json.loads(payload)
        return body["seq"], body["prev"]
    except (ValueError, KeyError, TypeError):
        return None


def _follows_another(error: BaseException) -> bool:
    context = error.__context__
    return context is not None and (isinstance(context, PipelineError) or _follows_another(context))
