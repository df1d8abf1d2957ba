"""What every store promises, on a folder and on S3."""

from __future__ import annotations

import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from asset_pipeline.errors import IntegrityError
from asset_pipeline.storage.store import TEMPORARY, Swept, object_key


def read(store, key):
    with store.open(key) as stream:
        return stream.read()


def test_stored_bytes_come_back(store, made):
    source, digest = made(os.urandom(3_000_000))
    assert store.put_once(object_key(digest), source, digest) is True
    assert read(store, object_key(digest)) == source.read_bytes()
    assert store.exists(object_key(digest))


def test_an_empty_file_can_be_stored(store, made):
    source, digest = made(b"")
    assert store.put_once("empty", source, digest)
    assert read(store, "empty") == b""


def test_a_stream_is_read_in_the_pieces_asked_for(store, made):
    source, digest = made(bytes(range(256)) * 10_000)
    store.put_once("a", source, digest)
    with store.open("a") as stream:
        assert stream.read(5) == bytes(range(5))
        assert stream.read(5) == bytes(range(5, 10))


def test_a_second_write_leaves_the_first(store, made):
    first, first_digest = made(b"first")
    second, second_digest = made(b"second", "other")
    assert store.put_once("same", first, first_digest) is True
    assert store.put_once("same", second, second_digest) is False
    assert read(store, "same") == b"first"


def test_of_sixteen_writers_exactly_one_wins(store, made):
    sources = [made(f"writer {n}".encode() * 1000, f"writer-{n}") for n in range(16)]
    start = threading.Barrier(16)

    def write(n):
        start.wait()
        return store.put_once("contested", *sources[n])

    with ThreadPoolExecutor(16) as pool:
        won = [n for n, written in enumerate(pool.map(write, range(16))) if written]
    assert len(won) == 1
    assert read(store, "contested") == sources[won[0]][0].read_bytes()
    assert [entry.key for entry in store.list()] == ["contested"]


def test_bytes_with_another_digest_are_not_stored(store, made):
    source, _ = made(b"something")
    with pytest.raises(IntegrityError):
        store.put_once("wrong", source, hashlib.sha256(b"else").hexdigest())
    assert not store.exists("wrong")
    assert list(store.list()) == []


def test_repair_replaces_only_bytes_that_are_not_what_their_name_says(store, made):
    source, digest = made(b"right bytes")
    key = object_key(digest)
    store.put_once(key, source, digest)
    assert store.repair(key, source, digest) is False
    store.put_current(key, b"damaged")
    wrong, _ = made(b"something else", "other")
    with pytest.raises(IntegrityError):
        store.repair(key, wrong, digest)
    assert read(store, key) == b"damaged"
    assert store.repair(key, source, digest) is True
    assert read(store, key) == b"right bytes"
    assert [entry.key for entry in store.list()] == [key]


def test_repair_puts_what_is_gone(store, made):
    source, digest = made(b"right bytes")
    assert store.repair(object_key(digest), source, digest) is True
    assert read(store, object_key(digest)) == b"right bytes"


def test_a_sweep_removes_what_was_never_finished_and_nothing_else(store, made):
    source, digest = made(b"kept")
    store.put_once(object_key(digest), source, digest)
    store.put_current(f"{TEMPORARY}check-left-behind", b"12345")
    now = datetime.now(UTC)
    assert store.sweep_temporary(now - timedelta(hours=1)) == Swept(0, 0), "it may still be in use"
    assert store.sweep_temporary(now + timedelta(hours=1)) == Swept(1, 5)
    assert store.sweep_temporary(now + timedelta(hours=1)) == Swept(0, 0)
    assert read(store, object_key(digest)) == b"kept"


def test_a_missing_key_is_a_key_error(store, tmp_path):
    assert store.exists("objects/none") is False
    with pytest.raises(KeyError), store.open("objects/none"):
        pass
    with pytest.raises(KeyError):
        store.fetch("objects/none", tmp_path / "target", "0" * 64)
    assert not (tmp_path / "target").exists()


def test_fetch_copies_what_was_stored(store, made, tmp_path):
    source, digest = made(os.urandom(2_500_000))
    store.put_once("a", source, digest)
    assert store.fetch("a", tmp_path / "target", digest) == 2_500_000
    assert (tmp_path / "target").read_bytes() == source.read_bytes()
    assert (tmp_path / "target").stat().st_mode & 0o777 == 0o600


def test_fetch_refuses_altered_bytes_and_leaves_nothing(store, made, tmp_path):
    source, digest = made(b"true bytes")
    store.put_once("a", source, digest)
    store.put_current("a", b"true bytez")
    with pytest.raises(IntegrityError):
        store.fetch("a", tmp_path / "target", digest)
    assert not (tmp_path / "target").exists()


def test_put_current_replaces(store):
    store.put_current("manifests/2025-01/a.json", b"one")
    store.put_current("manifests/2025-01/a.json", b"two")
    assert read(store, "manifests/2025-01/a.json") == b"two"


def test_readers_never_see_half_a_replacement(store):
    bodies = [bytes([n]) * 200_000 for n in range(8)]
    store.put_current("a", bodies[0])
    done = threading.Event()

    def replace():
        for body in bodies * 3:
            store.put_current("a", body)
        done.set()

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(replace)
        while not done.is_set() and not writing.done():
            assert read(store, "a") in bodies
        writing.result()


def test_deleting_twice_is_success(store):
    store.put_current("objects/aa/a", b"a")
    store.delete("objects/aa/a")
    store.delete("objects/aa/a")
    store.delete("objects/never/was")
    assert not store.exists("objects/aa/a")


KEYS = ["a-b/x", "a.txt", "a/b", "a/b-c/d", "a/b.d", "a/b/c", "a0", "ä/ö ü.pdf", "z/\U0001f4c4.pdf"]


def test_keys_are_listed_with_their_sizes(store):
    for key in KEYS:
        if key != "a/b":
            store.put_current(key, key.encode())
    found = list(store.list())
    assert sorted(entry.key for entry in found) == sorted(set(KEYS) - {"a/b"})
    assert all(entry.bytes == len(entry.key.encode()) for entry in found)
    assert all(entry.modified.tzinfo is not None for entry in found)


def test_listing_takes_a_prefix_that_ends_anywhere(store):
    for key in ("team/2025-01/a", "team/2025-01/b", "team/2025-02/a", "team-b/2025-01/a"):
        store.put_current(key, b"x")
    assert [e.key for e in store.list("team/2025-01/")] == ["team/2025-01/a", "team/2025-01/b"]
    assert [e.key for e in store.list("team/2025-0")] == ["team/2025-01/a", "team/2025-01/b", "team/2025-02/a"]
    assert [e.key for e in store.list("team/2025-01/a")] == ["team/2025-01/a"]
    assert len(list(store.list("team"))) == 4
    assert list(store.list("absent/")) == []


def test_a_tag_stays_while_the_file_stays_and_changes_with_it(store):
    store.put_current("a", b"one")
    first = next(store.list()).tag
    assert next(store.list()).tag == first
    store.put_current("a", b"two")
    assert next(store.list()).tag != first


def test_a_healthy_store_passes_its_check_and_keeps_nothing(store):
    store.check()
    assert list(store.list()) == []


def test_one_entry_is_what_the_listing_shows(store):
    store.put_current("team/2025-01/a", b"one")
    (listed,) = store.list()
    found = store.entry("team/2025-01/a")
    assert (found.key, found.bytes, found.tag) == (listed.key, listed.bytes, listed.tag)
    with pytest.raises(KeyError):
        store.entry("team/2025-01/b")
    with pytest.raises(KeyError):
        store.entry("team/2025-01")


def test_folders_are_the_first_parts_of_longer_keys(store):
    for key in ("b/1/x", "b/2/x", "a b/1", "c", "é/1"):
        store.put_current(key, b"x")
    assert list(store.folders()) == ["a b", "b", "é"]
