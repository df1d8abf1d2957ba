"""What a verifier finds in a log that somebody touched, and what it cannot find."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache

import pytest

from asset_pipeline.evidence import dsse
from asset_pipeline.evidence import verify as verifying
from asset_pipeline.evidence.chain import EVENT, Event
from asset_pipeline.evidence.dsse import Envelope, Signature
from asset_pipeline.evidence.findings import Fault
from asset_pipeline.evidence.merkle import leaf_hash, range_proof
from asset_pipeline.evidence.trust import TrustedKey, certify, trust_of
from asset_pipeline.evidence.verify import RangeProof, Verdict, verify
from asset_pipeline_tests.evidence.logs import NOW, MadeLog, signer

EVENTS = 700
FIRST_SEALED = 256
ROTATED = 301
SEALED = 640
MUTATIONS = 1000
STRANGER = signer(9)


@cache
def made() -> MadeLog:
    """A rotation in the middle, a checkpoint after every 256 events and at the end of a run, and a few events more."""
    log = MadeLog()
    log.append(FIRST_SEALED)
    log.seal()
    log.append(ROTATED - 1 - FIRST_SEALED)
    log.rotate(signer(2))
    log.append(2 * FIRST_SEALED - ROTATED)
    log.seal()
    log.append(SEALED - 2 * FIRST_SEALED)
    log.seal()
    log.append(EVENTS - SEALED)
    return log


@pytest.fixture
def checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one line tells by itself is worked out once a line: nearly all lines of a thousand logs are the same."""
    check = verifying._check
    told: dict[bytes, verifying._Fact] = {}

    def once(line: verifying.Raw, keys: Mapping[str, TrustedKey]) -> verifying._Fact:
        assert isinstance(line, bytes)
        return told.get(line) or told.setdefault(line, check(line, keys))

    monkeypatch.setattr(verifying, "_check", once)


def judge(lines: list[bytes], log: MadeLog | None = None) -> Verdict:
    log = log or made()
    return verify(lines, log.trust(), log.notes, processes=1)


def faults(verdict: Verdict) -> list[tuple[Fault, int | None]]:
    return [(found.fault, found.seq) for found in verdict.findings]


def test_a_clean_log_verifies_with_a_rotation_in_the_middle_and_says_how_far_it_is_anchored() -> None:
    verdict = judge(made().lines())
    assert faults(verdict) == []
    assert (verdict.events, verdict.first, verdict.last) == (EVENTS, 1, EVENTS)
    assert (verdict.anchored, verdict.unanchored, verdict.checkpoints) == (SEALED, EVENTS - SEALED, 3)


def _flip_payload(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    envelope = made().envelopes[at]
    body = bytearray(envelope.payload)
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    lines = list(_lines())
    lines[at] = replace(envelope, payload=bytes(body)).dumps()
    return lines, {(Fault.BAD_SIGNATURE, at + 1)}


@cache
def _lines() -> tuple[bytes, ...]:
    return tuple(made().lines())


def _flip_line(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    lines = list(_lines())
    body = bytearray(lines[at])
    body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
    lines[at] = bytes(body)
    told = (Fault.BAD_SIGNATURE, Fault.NOT_CANONICAL, Fault.UNKNOWN_KEY)
    return lines, {(fault, at + 1) for fault in told}


def _flip_signature(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    envelope = made().envelopes[at]
    value = bytearray(envelope.signatures[0].value)
    value[chance.randrange(64)] ^= 1 << chance.randrange(8)
    lines = list(_lines())
    first = Signature(envelope.signatures[0].key_id, bytes(value))
    lines[at] = replace(envelope, signatures=(first, *envelope.signatures[1:])).dumps()
    return lines, {(Fault.BAD_SIGNATURE, at + 1)}


def _delete(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    lines = list(_lines())
    del lines[at : at + chance.randint(1, 5)]
    return lines, {(Fault.GAP, at + 1)}


def _exchange(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    lines = list(_lines())
    other = at + chance.randint(1, 9)
    lines[at], lines[other] = lines[other], lines[at]
    return lines, {(Fault.REWRITTEN, at + 1)}


def _repeat(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    lines = list(_lines())
    lines.insert(at + chance.randint(1, 9), lines[at])
    return lines, {(Fault.REWRITTEN, at + 1)}


def _cut(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    kept = SEALED * (100 - chance.choice([1, 10, 50])) // 100
    return list(_lines()[:kept]), {(Fault.CUT_TAIL, kept + 1)}


def _resign(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    """Another key, under its own name or under that of the right one."""
    envelope = made().envelopes[at]
    body = envelope.payload.replace(b'"n":', b'"n":9')
    forged = dsse.sign(EVENT, body, [STRANGER])
    lines = list(_lines())
    if chance.random() < 0.5:
        lines[at] = forged.dumps()
        return lines, {(Fault.UNKNOWN_KEY, at + 1)}
    stolen = Signature(envelope.signatures[0].key_id, forged.signatures[0].value)
    lines[at] = replace(forged, signatures=(stolen,)).dumps()
    return lines, {(Fault.BAD_SIGNATURE, at + 1)}


def _key_twice(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    """In the envelope, or in a payload that the right key signed like that."""
    envelope, lines = made().envelopes[at], list(_lines())
    if chance.random() < 0.5:
        lines[at] = lines[at].replace(b"{", b'{"payload":"",', 1)
    else:
        key = signer(1) if at < ROTATED else signer(2)
        lines[at] = dsse.sign(EVENT, envelope.payload.replace(b"{", b'{"actor":"x",', 1), [key]).dumps()
    return lines, {(Fault.NOT_CANONICAL, at + 1)}


def _rewrite(chance: random.Random, at: int) -> tuple[list[bytes], set[tuple[Fault, int]]]:
    """One event, by the holder of the key, who leaves the later ones as they were."""
    key = signer(1) if at < ROTATED else signer(2)
    lines = list(_lines())
    lines[at] = dsse.sign(EVENT, made().envelopes[at].payload.replace(b'"n":', b'"n":9'), [key]).dumps()
    return lines, {(Fault.REWRITTEN, at + 1)}


KINDS: list[Callable[[random.Random, int], tuple[list[bytes], set[tuple[Fault, int]]]]] = [
    _flip_payload,
    _flip_line,
    _flip_signature,
    _delete,
    _exchange,
    _repeat,
    _cut,
    _resign,
    _key_twice,
    _rewrite,
]


@pytest.mark.usefixtures("checked_once")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__.strip("_"))
def test_every_change_of_what_a_checkpoint_covers_is_told_with_its_kind_and_place(kind) -> None:
    """1,000 over all kinds; nobody touches the rotation itself, which has a test of its own."""
    chance = random.Random(kind.__name__)
    for _ in range(MUTATIONS // len(KINDS)):
        at = chance.choice([n for n in range(SEALED - 10) if n != ROTATED - 1])
        lines, expected = kind(chance, at)
        found = faults(judge(lines))
        assert found, (kind.__name__, at)
        assert found[0] in expected, (kind.__name__, at, found[:3])


def test_a_log_that_the_holder_of_the_keys_wrote_anew_is_told_by_a_checkpoint() -> None:
    """Every signature, number and link of it holds; only the checkpoints know better."""
    forged = MadeLog()
    forged.append(10)
    forged._add(Event("deleted", NOW), [forged.key])
    forged.append(ROTATED - 12)
    forged.rotate(signer(2))
    forged.append(EVENTS - ROTATED)
    assert faults(verify(forged.lines(), made().trust(), processes=1)) == []
    assert faults(judge(forged.lines())) == [
        (Fault.REWRITTEN, covered) for covered in (FIRST_SEALED, 2 * FIRST_SEALED, SEALED)
    ]


def test_nothing_tells_of_a_tail_that_no_checkpoint_covers() -> None:
    verdict = judge(made().lines()[:SEALED])
    assert (faults(verdict), verdict.unanchored) == ([], 0)


def test_an_event_signed_outside_the_range_of_its_key_fails() -> None:
    log = MadeLog()
    log.append(10)
    log.rotate(signer(2))
    old = signer(1)
    log.key = old
    log.append(3)
    assert faults(judge(log.lines(), log))[0] == (Fault.UNKNOWN_KEY, 12)


@pytest.mark.parametrize("signers", [[signer(1)], [signer(2)], [signer(2), signer(1)], [signer(1), STRANGER]])
def test_a_rotation_that_not_both_keys_signed_fails(signers) -> None:
    log = made()
    lines = list(_lines())
    lines[ROTATED - 1] = dsse.sign(EVENT, log.envelopes[ROTATED - 1].payload, signers).dumps()
    assert faults(judge(lines))[0] == (Fault.UNKNOWN_KEY, ROTATED)


@pytest.mark.usefixtures("checked_once")
def test_checkpoints_that_are_no_evidence_are_named() -> None:
    log = made()
    foreign = MadeLog(key=signer(5))
    foreign.append(3)
    altered = log.notes[0].replace(f"\n{FIRST_SEALED}\n", f"\n{FIRST_SEALED - 1}\n")
    for note in (foreign.seal(), altered, log.notes[0][:-9], log.notes[0] + "x", "no note", ""):
        verdict = verify(log.lines(), log.trust(), [*log.notes, note], processes=1)
        assert [found.fault for found in verdict.findings] == [Fault.BAD_CHECKPOINT]
        assert verdict.anchored == SEALED


def test_a_key_that_was_replaced_can_make_no_later_checkpoint() -> None:
    log = MadeLog()
    log.append(5)
    log.rotate(signer(2))
    log.append(5)
    log.seal(by=signer(1))
    assert faults(judge(log.lines(), log)) == [(Fault.BAD_CHECKPOINT, 11)]
    log.notes = []
    log.seal()
    assert faults(judge(log.lines(), log)) == []


def test_with_a_key_service_only_certified_keys_and_its_own_checkpoints_count() -> None:
    service, log = signer(7), MadeLog()
    log.append(5)
    own = log.seal()
    log.notes = [log.seal(by=service)]
    (key,) = log.keys
    certified = replace(key, certificate=certify(service, key.public_key, 1))
    trust = trust_of([certified], service.public_key)
    assert faults(verify(log.lines(), trust, log.notes, processes=1)) == []
    assert faults(verify(log.lines(), trust, [own], processes=1)) == [(Fault.BAD_CHECKPOINT, None)]
    other = replace(key, certificate=certify(STRANGER, key.public_key, 1))
    found = verify(log.lines(), trust_of([other], service.public_key), [], processes=1)
    assert {fault for fault, _ in faults(found)} == {Fault.UNKNOWN_KEY}


def part(first: int, last: int) -> tuple[list[bytes], RangeProof]:
    leaves = [leaf_hash(envelope.link()) for envelope in made().envelopes[:SEALED]]
    return list(_lines()[first - 1 : last]), RangeProof(
        first, last, SEALED, tuple(range_proof(leaves, first - 1, last))
    )


@pytest.mark.parametrize(("first", "last"), [(1, SEALED), (10, 44), (ROTATED, ROTATED), (2, 3), (SEALED, SEALED)])
def test_a_part_of_a_log_verifies_alone_against_a_checkpoint(first: int, last: int) -> None:
    lines, proof = part(first, last)
    verdict = verify(lines, made().trust(), made().notes, proof=proof, processes=1)
    assert (faults(verdict), verdict.anchored, verdict.unanchored) == ([], last, 0)


def test_a_part_of_a_log_that_was_touched_does_not_verify() -> None:
    lines, proof = part(10, 44)
    trust, notes = made().trust(), made().notes
    cases = {
        (Fault.GAP, 20): [*lines[:10], *lines[11:]],
        (Fault.GAP, 10): lines[1:],
        (Fault.CUT_TAIL, 44): lines[:-1],
        (Fault.BAD_SIGNATURE, 10): [made_worse(lines[0]), *lines[1:]],
    }
    for expected, touched in cases.items():
        assert faults(verify(touched, trust, notes, proof=proof, processes=1))[0] == expected
    shifted = replace(proof, hashes=proof.hashes[1:])
    assert faults(verify(lines, trust, notes, proof=shifted, processes=1)) == [(Fault.REWRITTEN, 10)]
    assert faults(verify(lines, trust, [], proof=proof, processes=1)) == [(Fault.BAD_CHECKPOINT, None)]


def made_worse(line: bytes) -> bytes:
    envelope = dsse.loads(line)
    return Envelope(envelope.payload_type, envelope.payload + b" ", envelope.signatures).dumps()


def test_processes_side_by_side_find_the_same() -> None:
    log = MadeLog()
    log.append(2600)
    log.seal()
    lines = log.lines()
    del lines[2400]
    lines[1200] = made_worse(lines[1200])
    alone = verify(lines, log.trust(), log.notes, processes=1)
    together = verify(lines, log.trust(), log.notes, processes=2)
    assert faults(alone) == faults(together) == [(Fault.BAD_SIGNATURE, 1201), (Fault.GAP, 2401)]


def test_a_key_is_trusted_by_its_own_id_only() -> None:
    stranger = TrustedKey(STRANGER.key_id, signer(1).public_key, 1)
    log = MadeLog()
    log.append(2)
    assert faults(verify(log.lines(), trust_of([stranger], None), processes=1))[0] == (Fault.UNKNOWN_KEY, 1)
