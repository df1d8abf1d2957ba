"""Checks a log, or a part of it, with public keys alone: every signature, number and link, then every checkpoint.

The signature is checked before the payload is looked at. A fault is told once, where it is: what only follows from it
(the link after an altered event, the root above a gap) is not told again. Long logs are checked by processes side
by side, since a signature takes longer than all the rest.
"""

from __future__ import annotations

import multiprocessing
import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from asset_pipeline.evidence import canonical, dsse
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.chain import EVENT, GENESIS, SCHEMA
from asset_pipeline.evidence.dsse import Envelope
from asset_pipeline.evidence.findings import Fault, Finding
from asset_pipeline.evidence.keys import is_signed
from asset_pipeline.evidence.merkle import Frontier, leaf_hash, root_of_range
from asset_pipeline.evidence.notes import Checkpoint, NoteError, open_note
from asset_pipeline.evidence.trust import Trust, TrustedKey
from asset_pipeline.evidence.types import KEY_ROTATED

Raw = bytes | Envelope
"""An event as it was found: the line of an export, or an envelope put together from a row."""

PORTION = 1000
"""Events that a process checks at a time; a log no longer than this needs no second process."""


@dataclass(frozen=True, slots=True)
class RangeProof:
    """That a part of a log, from ``first_seq`` to ``last_seq``, belongs to the tree of a checkpoint of ``size``."""

    first_seq: int
    last_seq: int
    size: int
    hashes: tuple[bytes, ...]


@dataclass(slots=True)
class Verdict:
    """What was found. ``anchored`` is the last event that a sound checkpoint covers (0: none)."""

    events: int = 0
    first: int | None = None
    last: int = 0
    anchored: int = 0
    checkpoints: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def unanchored(self) -> int:
        """Events after the last checkpoint."""
        return max(0, self.last - self.anchored)

    def add(self, fault: Fault, seq: int | None, what: str) -> None:
        """Note a fault."""
        self.findings.append(Finding(fault, seq, what))


class _Fact(NamedTuple):
    """What one event told. ``fault`` empty: all of it holds."""

    fault: Fault | None
    what: str
    seq: int
    prev: bytes
    link: bytes


def verify(
    events: Iterable[Raw],
    trust: Trust,
    notes: Sequence[str] = (),
    *,
    proof: RangeProof | None = None,
    processes: int | None = None,
) -> Verdict:
    """Check ``events`` in the order given: a whole log or, with ``proof``, the part of one that starts there."""
    opened, bad = _opened(notes, trust)
    verdict = Verdict(findings=bad)
    base = trust.first_seq - 1
    walk = _Walk(verdict, first=proof.first_seq if proof else base + 1, base=base, partial=proof is not None)
    walk.wanted = {row.size for row in opened}
    for fact in _facts(events, trust, processes or os.cpu_count() or 1):
        walk.step(fact)
    walk.end()
    if proof is None:
        _compare_all(verdict, walk, opened)
    else:
        _compare_part(verdict, walk, [row for row in opened if row.size == proof.size], proof)
    verdict.findings.sort(key=lambda found: (found.seq is None, found.seq or 0))
    return verdict


@dataclass(slots=True)
class _Walk:
    """Goes through the facts in order; keeps the tree as long as nothing is wrong."""

    verdict: Verdict
    first: int
    base: int
    partial: bool
    wanted: set[int] = field(default_factory=set)
    expected: int = 0
    before: _Fact | None = None
    missing: list[list[int]] = field(default_factory=list)
    broken_at: int | None = None
    tree: Frontier = field(default_factory=Frontier)
    leaves: list[bytes] = field(default_factory=list)
    roots: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expected = self.first

    def step(self, fact: _Fact) -> None:
        """Take the next event."""
        self.verdict.events += 1
        if fact.fault is not None:
            seq = fact.seq or self.expected
            self._fail(fact.fault, seq, fact.what)
            self.expected = max(self.expected, seq) + 1
            self.before = None
        elif fact.seq < self.expected:
            self._moved(fact)
        else:
            self._in_order(fact)
        self.verdict.last = max(self.verdict.last, self.expected - 1)

    def end(self) -> None:
        """Tell the gaps that nothing filled."""
        self.verdict.first = self.first if self.verdict.events else None
        for low, high in self.missing:
            self._fail(Fault.GAP, low, f"{high - low + 1} missing: {low} to {high}" if high > low else "it is missing")

    def is_sound_up_to(self, seq: int) -> bool:
        """Whether nothing was wrong with any event up to this one."""
        return self.broken_at is None or self.broken_at > seq

    def _in_order(self, fact: _Fact) -> None:
        if fact.seq > self.expected:
            self.missing.append([self.expected, fact.seq - 1])
            self.broken_at = min(self.broken_at or self.expected, self.expected)
        elif self.before is not None:
            if fact.prev != self.before.link:
                self._fail(Fault.REWRITTEN, self.before.seq, "it is not the event that the next one follows")
        elif fact.seq == self.base + 1 and fact.prev != GENESIS:
            self._fail(Fault.REWRITTEN, fact.seq, "it is not the first of a log")
        self.expected = fact.seq + 1
        self.before = fact
        if self.broken_at is None:
            self._grow(fact)

    def _grow(self, fact: _Fact) -> None:
        if self.partial:
            self.leaves.append(leaf_hash(fact.link))
            return
        self.tree.add(fact.link)
        if self.tree.size in self.wanted:
            self.roots[self.tree.size] = (self.tree.root(), fact.link)

    def _moved(self, fact: _Fact) -> None:
        """An event that should have come earlier, or came already."""
        for at, (low, high) in enumerate(self.missing):
            if low <= fact.seq <= high:
                self.missing[at : at + 1] = [
                    row for row in ([low, fact.seq - 1], [fact.seq + 1, high]) if row[0] <= row[1]
                ]
                self._fail(Fault.REWRITTEN, fact.seq, "it stands at another place than its number says")
                return
        self._fail(Fault.REWRITTEN, fact.seq, "its number occurs more than once")

    def _fail(self, fault: Fault, seq: int, what: str) -> None:
        self.verdict.add(fault, seq, what)
        self.broken_at = min(self.broken_at or seq, seq)


def _opened(notes: Sequence[str], trust: Trust) -> tuple[list[Checkpoint], list[Finding]]:
    """Checkpoints of this log that a key signed which may, by size, and what is wrong with the others."""
    keys, ranges = trust.note_keys(), {key.key_id: key for key in trust.keys}
    good: dict[Checkpoint, None] = {}
    bad: list[Finding] = []
    for note in dict.fromkeys(notes):
        try:
            checkpoint, key_id = open_note(note, keys)
        except NoteError as error:
            bad.append(Finding(Fault.BAD_CHECKPOINT, None, str(error)))
            continue
        last = trust.first_seq - 1 + checkpoint.size
        if checkpoint.origin != trust.origin:
            bad.append(Finding(Fault.BAD_CHECKPOINT, last, "it is of another log"))
        elif key_id in ranges and not _may_seal(ranges[key_id], last):
            bad.append(Finding(Fault.BAD_CHECKPOINT, last, "its key was not in use at that event"))
        else:
            good[checkpoint] = None
    return sorted(good, key=lambda row: row.size), bad


def _may_seal(key: TrustedKey, last: int) -> bool:
    """A new key may seal what ends with the event that introduced it."""
    return key.first_seq - 1 <= last and (key.last_seq is None or last <= key.last_seq)


def _compare_all(verdict: Verdict, walk: _Walk, checkpoints: Sequence[Checkpoint]) -> None:
    """Whether the log is the one that the checkpoints, by size, cover."""
    verdict.checkpoints = len(checkpoints)
    for checkpoint in checkpoints:
        last = walk.base + checkpoint.size
        if last > verdict.last:
            what = f"a checkpoint covers {checkpoints[-1].size} events, and the log ends at {verdict.last}"
            verdict.add(Fault.CUT_TAIL, verdict.last + 1, what)
            return
        if not walk.is_sound_up_to(last):
            continue
        if walk.roots.get(checkpoint.size) == (checkpoint.root, checkpoint.head):
            verdict.anchored = last
        else:
            verdict.add(Fault.REWRITTEN, last, "the events up to here are not those that a checkpoint covers")


def _compare_part(verdict: Verdict, walk: _Walk, checkpoints: Sequence[Checkpoint], proof: RangeProof) -> None:
    """Whether the part of a log is all that ``proof`` says, and in the log that the checkpoint covers."""
    verdict.checkpoints = len(checkpoints)
    if verdict.last < proof.last_seq:
        what = f"the part goes to {proof.last_seq}, and ends at {verdict.last}"
        verdict.add(Fault.CUT_TAIL, verdict.last + 1, what)
        return
    if not checkpoints:
        verdict.add(Fault.BAD_CHECKPOINT, None, "there is no checkpoint that covers this part of the log")
    if walk.broken_at is not None:
        return
    start = walk.first - 1 - walk.base
    for checkpoint in checkpoints:
        if root_of_range(checkpoint.size, start, walk.leaves, proof.hashes) == checkpoint.root:
            verdict.anchored = verdict.last
        else:
            verdict.add(Fault.REWRITTEN, walk.first, "this part of the log is not the one that a checkpoint covers")


def _facts(events: Iterable[Raw], trust: Trust, processes: int) -> Iterator[_Fact]:
    keys = trust.accepted()
    rest = iter(events)
    portion = list(islice(rest, PORTION))
    following = list(islice(rest, PORTION))
    if processes < 2 or not following:
        yield from _check_all(portion, keys)
        while following:
            yield from _check_all(following, keys)
            following = list(islice(rest, PORTION))
        return
    # Started anew, not forked: whoever calls may have threads.
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as pool:
        waiting: deque[Future[list[_Fact]]] = deque(
            pool.submit(_check_all, some, keys) for some in (portion, following)
        )
        while waiting:
            while len(waiting) < 3 * processes and (some := list(islice(rest, PORTION))):
                waiting.append(pool.submit(_check_all, some, keys))
            yield from waiting.popleft().result()


def _check_all(events: Sequence[Raw], keys: Mapping[str, TrustedKey]) -> list[_Fact]:
    return [_check(raw, keys) for raw in events]


def _check(raw: Raw, keys: Mapping[str, TrustedKey]) -> _Fact:
    try:
        envelope = dsse.loads(raw) if isinstance(raw, bytes) else raw
    except NotCanonical:
        return _wrong(Fault.NOT_CANONICAL, "its envelope is not in canonical form")
    if not envelope.signatures or envelope.payload_type != EVENT:
        return _wrong(Fault.BAD_SIGNATURE, "it has no signature of an event")
    message = envelope.pae()
    for signature in envelope.signatures:
        key = keys.get(signature.key_id)
        if key is None:
            return _wrong(Fault.UNKNOWN_KEY, "its key is not trusted")
        if not is_signed(key.public_key, signature.value, message):
            return _wrong(Fault.BAD_SIGNATURE, "its signature does not fit")
    try:
        body = canonical.loads(envelope.payload)
        seq, prev, kind = body["seq"], bytes.fromhex(body["prev"]), body["type"]
        sound = body["schema"] == SCHEMA and type(seq) is int and seq > 0 and len(prev) == 32
    except (NotCanonical, KeyError, TypeError, ValueError):
        sound = False
    if not sound:
        return _wrong(Fault.NOT_CANONICAL, "its payload is not an event in canonical form")
    if wrong := _wrong_keys(envelope, body, seq, kind, keys):
        return _Fact(Fault.UNKNOWN_KEY, wrong, seq, prev, b"")
    return _Fact(None, "", seq, prev, envelope.link())


def _wrong_keys(
    envelope: Envelope, body: Mapping[str, Any], seq: int, kind: str, keys: Mapping[str, TrustedKey]
) -> str:
    """What is wrong with who signed; empty when nothing is."""
    signed = [keys[signature.key_id] for signature in envelope.signatures]
    if not signed[0].covers(seq):
        return "its key may not sign events of that number"
    if kind != KEY_ROTATED:
        return "" if len(signed) == 1 else "it has more signatures than it may have"
    if len(signed) != 2 or signed[1].key_id != body.get("new_key_id") or signed[1].first_seq != seq + 1:
        return "the old and the new key must both sign, and the new one's range begins after it"
    return ""


def _wrong(fault: Fault, what: str) -> _Fact:
    return _Fact(fault, what, 0, b"", b"")
