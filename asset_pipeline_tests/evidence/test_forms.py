"""The forms that other programs read: canonical JSON, envelopes, trees, notes, trust files."""

from __future__ import annotations

import base64
import hashlib
from contextlib import suppress

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from asset_pipeline.errors import ConfigurationError, UsageError
from asset_pipeline.evidence import canonical, dsse, trust
from asset_pipeline.evidence.actor import SYSTEM, Actor, acting_as, current_actor
from asset_pipeline.evidence.canonical import NotCanonical
from asset_pipeline.evidence.keys import is_signed, key_file, load_key, make_key, open_key, read_key
from asset_pipeline.evidence.merkle import EMPTY_ROOT, Frontier, leaf_hash, range_proof, root_of_range
from asset_pipeline.evidence.notes import NoteError, open_note
from asset_pipeline_tests.evidence.logs import MadeLog, signer

PEM = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g
-----END PRIVATE KEY-----
"""
SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
"""Test 1 of RFC 8032."""


@pytest.mark.parametrize(
    "body",
    [b'{"a":1,"a":1}', b'{"b":1,"a":2}', b'{"a": 1}', b'{"a":1.0}', b'{"a":NaN}', b"{", b"\xff", b'{"a":"\\u0041"}'],
)
def test_what_is_not_in_its_one_form_is_refused(body: bytes) -> None:
    with pytest.raises(NotCanonical):
        canonical.loads(body)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**54), 2**54) | st.floats(-1e15, 1e15) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
"""Also what has no form, or is written the slow way."""


@settings(max_examples=60, deadline=None)
@given(JSON)
@example({'b\x7f\n"\\/': [1, -0.0, True], "a": {}, "": "\x00\x1f"})
@example({"\U0001f600": 1, "\ufb33": 2})
@example({"wide": 2**53 - 1})
@example({"wider": 2**53})
@example("\ud800")
def test_the_one_form_is_that_of_rfc_8785_whichever_way_it_is_written(value) -> None:
    try:
        expected = rfc8785.dumps(value)
    except ValueError:
        with pytest.raises(ValueError):
            canonical.dumps(value)
        return
    assert canonical.dumps(value) == expected
    assert canonical.dumps(canonical.loads(expected)) == expected


@pytest.mark.parametrize("value", [{1: 2}, {"a": {None: 1}}, {"a": object()}])
def test_what_json_cannot_hold_has_no_form(value) -> None:
    with pytest.raises(ValueError):
        canonical.dumps(value)


def test_a_value_too_deep_to_be_read_is_not_canonical() -> None:
    for depth in (700, 2_000, 100_000):
        with suppress(NotCanonical):
            canonical.loads(b"[" * depth + b"]" * depth)


def test_the_signed_bytes_are_those_of_the_dsse_specification() -> None:
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_an_envelope_reads_back_and_any_other_form_of_it_does_not() -> None:
    body = dsse.sign("text/plain", b"tides", [signer(1), signer(2)]).dumps()
    envelope = dsse.loads(body)
    assert (envelope.payload, len(envelope.signatures), envelope.dumps()) == (b"tides", 2, body)
    for other in (body + b"\n", body.replace(b":", b": ", 1), body.replace(b"}", b',"x":1}', 1), b"[]", b'"x"'):
        with pytest.raises(NotCanonical):
            dsse.loads(other)


@pytest.mark.parametrize("text", [SEED, PEM, f" {SEED}\n"])
def test_a_key_is_read_from_hex_and_from_pem(text: str) -> None:
    key = read_key(text, "it")
    assert key.public_key.hex() == PUBLIC
    assert is_signed(key.public_key, key.sign(b"x"), b"x")
    assert not is_signed(key.public_key, key.sign(b"x"), b"y")


@pytest.mark.parametrize("text", ["", "zz", "00" * 31, "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----"])
def test_what_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read_key(text, "ASSET_PIPELINE_EVENT_KEY")
    assert "ASSET_PIPELINE_EVENT_KEY" in str(caught.value)
    assert not text or text not in str(caught.value)


def test_a_key_service_is_found_by_the_scheme_of_its_address(tmp_path, monkeypatch) -> None:
    (tmp_path / "service.pem").write_text(PEM)
    monkeypatch.setenv("SERVICE_KEY", SEED)
    for address in (f"file:{tmp_path}/service.pem", f"file://{tmp_path}/service.pem", "env:SERVICE_KEY"):
        assert open_key(address).public_key.hex() == PUBLIC
    for address in ("awskms:alias/x", "file:/nowhere", "env:NOT_SET"):
        with pytest.raises(ConfigurationError):
            open_key(address)


def test_a_made_key_is_for_its_owner_alone_and_is_found_by_its_id(tmp_path) -> None:
    key = make_key(tmp_path / "keys")
    path = key_file(tmp_path / "keys", key.key_id)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert load_key(tmp_path / "keys", key.key_id) == key or load_key(tmp_path / "keys", key.key_id) is not None
    assert load_key(tmp_path / "keys", "0" * 32) is None
    path.rename(key_file(tmp_path / "keys", "0" * 32))
    with pytest.raises(ConfigurationError, match="another key"):
        load_key(tmp_path / "keys", "0" * 32)


def reference_root(leaves: list[bytes]) -> bytes:
    """RFC 6962, section 2.1, as it is written there."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    k = 1
    while k * 2 < len(leaves):
        k *= 2
    return hashlib.sha256(b"\1" + reference_root(leaves[:k]) + reference_root(leaves[k:])).digest()


def test_a_growing_tree_has_the_root_of_rfc_6962_at_every_size() -> None:
    tree, leaves = Frontier(), []
    assert tree.root() == EMPTY_ROOT == reference_root([])
    for number in range(70):
        leaves.append(bytes([number]) * 32)
        tree.add(leaves[-1])
        assert tree.root() == reference_root(leaves)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 13])
def test_every_range_of_a_tree_can_be_proved_and_no_other_passes(size: int) -> None:
    leaves = [bytes([number]) * 32 for number in range(size)]
    hashes, root = [leaf_hash(leaf) for leaf in leaves], reference_root(leaves)
    for start in range(size):
        for end in range(start + 1, size + 1):
            proof, inside = range_proof(hashes, start, end), hashes[start:end]
            assert root_of_range(size, start, inside, proof) == root
            assert root_of_range(size, start, [*inside[:-1], b"x" * 32], proof) != root
            assert root_of_range(size, start, inside, [*proof, b"x" * 32]) is None
            assert root_of_range(size, start, [], proof) is None
            if proof:
                assert root_of_range(size, start, inside, proof[:-1]) is None


def test_a_note_is_read_by_the_rules_of_signed_notes() -> None:
    log = MadeLog()
    log.append(3)
    note = log.seal()
    lines = note.split("\n")
    assert (lines[0], lines[1], lines[4]) == (log.origin, "3", "")
    mark, signature = base64.b64decode(lines[5].split(" ")[2])[:4], base64.b64decode(lines[5].split(" ")[2])[4:]
    assert mark == hashlib.sha256(f"{log.origin}\n\x01".encode() + log.key.public_key).digest()[:4]
    assert is_signed(log.key.public_key, signature, note.split("\n\n")[0].encode() + b"\n")
    checkpoint, key_id = open_note(note, {log.key.key_id: log.key.public_key})
    assert (checkpoint.size, key_id) == (3, log.key.key_id)
    with pytest.raises(NoteError):
        open_note(note, {"other": signer(4).public_key})


def test_a_trust_file_reads_back_and_an_altered_one_does_not() -> None:
    log = MadeLog()
    log.append(3)
    log.rotate(signer(2))
    body = log.trust(signer(7).public_key).dumps()
    assert trust.loads(body) == log.trust(signer(7).public_key)
    assert [(key.first_seq, key.last_seq) for key in trust.loads(body).keys] == [(1, 4), (5, None)]
    for altered in (
        body.replace(b'"last_seq":4', b'"last_seq":9'),
        body.replace(b'"first_seq":5', b'"first_seq":3'),
        body.replace(log.key.public_key.hex().encode(), signer(3).public_key.hex().encode()),
        body + b" ",
        b"{}",
        b"[1]",
    ):
        with pytest.raises(UsageError):
            trust.loads(altered)


def test_the_actor_is_who_acts_here_and_its_name_holds_nothing_that_an_event_must_not() -> None:
    assert current_actor() == SYSTEM
    with acting_as(Actor("Jörg Møller\n", "authenticated")):
        assert current_actor() == Actor("J_rg_M_ller_", "authenticated")
    assert current_actor() == SYSTEM
