"""What only a folder can get wrong: links, half-written files, permissions, durability."""

from __future__ import annotations

import os
import random
import stat
from pathlib import Path

import pytest

from asset_pipeline.errors import StorageError
from asset_pipeline.settings import Settings
from asset_pipeline.storage import folder as folder_module
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline.storage.store import SPECIAL, open_store


@pytest.fixture
def root(tmp_path):
    (tmp_path / "store").mkdir()
    return tmp_path / "store"


def test_listing_a_missing_inbox_says_what_to_do(tmp_path):
    with pytest.raises(StorageError) as caught:
        list(open_store(str(tmp_path / "secret-place"), Settings(), "inbox").list())
    assert "The inbox folder does not exist." in str(caught.value)
    assert "ASSET_PIPELINE_INBOX" in str(caught.value)
    assert "secret-place" not in str(caught.value)


def test_keys_are_listed_in_the_order_of_whole_keys(root):
    names = ["a", "a-", "a.b", "a0", "b", "é", "Z"]
    keys = {f"{one}/{two}/{three}" for one in names for two in names for three in names}
    for key in random.Random(1).sample(sorted(keys), len(keys)):
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).touch()
    for name in ("a+", "a-x", "a/z"):
        (root / name).touch()
    listed = [entry.key for entry in FolderStore(root).list()]
    assert listed == sorted([*keys, "a+", "a-x", "a/z"])


def test_a_link_is_listed_but_never_followed(root, tmp_path):
    (tmp_path / "key.pem").write_text("private")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "key.pem").write_text("private")
    (root / "link.pdf").symlink_to(tmp_path / "key.pem")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    os.mkfifo(root / "pipe.pdf")
    store = FolderStore(root)
    assert {entry.key: entry.tag for entry in store.list()} == dict.fromkeys(
        ("folder", "link.pdf", "pipe.pdf"), SPECIAL
    )
    for key in ("link.pdf", "folder/key.pem", "folder", "pipe.pdf"):
        assert store.exists(key) is False
        with pytest.raises(KeyError), store.open(key):
            pass


def test_a_folder_is_not_a_file(root):
    (root / "a").mkdir()
    assert FolderStore(root).exists("a") is False


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "a//b", "a/./b", "", "a/..", "a\0b"])
def test_a_key_cannot_leave_the_folder(root, key):
    for act in (
        FolderStore(root).exists,
        FolderStore(root).delete,
        lambda key: FolderStore(root).put_current(key, b""),
    ):
        with pytest.raises(ValueError):
            act(key)


def test_what_a_killed_writer_left_is_not_listed(root):
    (root / "objects").mkdir()
    (root / "objects" / f"{folder_module.TEMPORARY}abc").write_bytes(b"half")
    assert list(FolderStore(root).list()) == []


def test_a_write_that_fails_half_way_leaves_nothing(root, made, monkeypatch):
    source, digest = made(b"x" * 5_000_000)
    monkeypatch.setattr(folder_module.os, "fsync", _disk_full)
    with pytest.raises(StorageError) as caught:
        FolderStore(root, name="archive").put_once("objects/aa/x", source, digest)
    assert "No space left on device" in str(caught.value)
    assert str(root) not in str(caught.value)
    with pytest.raises(StorageError):
        FolderStore(root).put_current("a", b"x")
    assert [path for path in root.rglob("*") if path.is_file()] == []


def _disk_full(descriptor):
    raise OSError(28, "No space left on device")


def test_file_systems_without_links_still_have_one_winner(root, made, monkeypatch):
    monkeypatch.setattr(folder_module.os, "link", _no_links)
    first, second = made(b"first"), made(b"second", "other")
    store = FolderStore(root)
    assert store.put_once("a", *first) is True
    assert store.put_once("a", *second) is False
    assert (root / "a").read_bytes() == b"first"
    assert [entry.key for entry in store.list()] == ["a"]


def _no_links(source, target):
    raise PermissionError(1, "Operation not permitted")


def test_a_file_that_became_a_link_is_not_published(root, made, tmp_path):
    source, digest = made(b"secret")
    (tmp_path / "link").symlink_to(source)
    with pytest.raises(StorageError):
        FolderStore(root).put_once("a", tmp_path / "link", digest)
    assert list(FolderStore(root).list()) == []


def test_every_new_folder_is_synced_into_its_parent(tmp_path, made, monkeypatch):
    synced = []
    true_fsync = os.fsync

    def fsync(descriptor):
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        true_fsync(descriptor)

    monkeypatch.setattr(folder_module.os, "fsync", fsync)
    root = tmp_path / "new" / "store"
    FolderStore(root).put_once("objects/aa/x", *made(b"x"))
    assert synced[:3] == [tmp_path / "new", root, root / "objects"]
    assert synced[-1] == root / "objects" / "aa"


def test_sources_and_quarantine_are_closed_to_other_users(tmp_path):
    for name, private in (("sources", True), ("quarantine", True), ("archive", False)):
        store = open_store(str(tmp_path / name), Settings(), name)
        store.put_current("objects/aa/x", b"x")
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / name, *(tmp_path / name).rglob("*"))]
        assert all(not mode & 0o077 for mode in modes) is private


def test_an_unreadable_folder_is_a_storage_error_without_its_path(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError) as caught:
        FolderStore(tmp_path / "file", name="archive").put_current("a", b"")
    assert str(tmp_path) not in str(caught.value)
