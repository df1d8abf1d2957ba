"""What only S3 can get wrong: credentials, buckets, addresses, networks."""

from __future__ import annotations

import socket
import threading
import traceback

import pytest

from asset_pipeline.errors import ConfigurationError, PipelineError, StorageError
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline.storage import s3
from asset_pipeline.storage.store import open_store
from asset_pipeline_tests.servers import free_ports, s3_client

SECRET = "wrong-secret-that-must-not-be-shown"


def failure(act) -> tuple[PipelineError, str]:
    with pytest.raises(PipelineError) as caught:
        act()
    return caught.value, "".join(traceback.format_exception(caught.value, chain=True))


def assert_tells_nothing(shown, bucket):
    for hidden in (bucket.access_key, bucket.secret_key, SECRET, bucket.name, "127.0.0.1"):
        assert hidden not in shown


ACTS = {
    "list": lambda store, path: list(store.list()),
    "open": lambda store, path: store.open("a").__enter__(),
    "exists": lambda store, path: store.exists("a"),
    "put_current": lambda store, path: store.put_current("a", b""),
    "put_once": lambda store, path: store.put_once("a", *path),
    "delete": lambda store, path: store.delete("a"),
    "check": lambda store, path: store.check(),
}


@pytest.mark.parametrize("act", ACTS)
def test_a_wrong_secret_is_a_storage_error_that_tells_no_secret(s3_settings, monkeypatch, made, act):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    store = s3.S3Store(s3_settings.address(), endpoint=s3_settings.endpoint, name="archive")
    error, shown = failure(lambda: ACTS[act](store, made(b"")))
    assert isinstance(error, StorageError)
    assert error.what == "The archive store refused the credentials."
    assert_tells_nothing(shown, s3_settings)


@pytest.mark.parametrize("act", ["list", "open", "put_current", "put_once"])
def test_a_missing_bucket_says_so(s3_settings, made, act):
    store = s3.S3Store(f"s3://{s3_settings.name}-absent", endpoint=s3_settings.endpoint, name="inbox")
    error, shown = failure(lambda: ACTS[act](store, made(b"")))
    assert error.what == "The bucket of the inbox store does not exist."
    assert "ASSET_PIPELINE_INBOX" in error.remedy
    assert_tells_nothing(shown, s3_settings)


@pytest.mark.parametrize("act", ["list", "put_once"])
def test_a_server_that_is_away_is_a_transient_error(s3_settings, made, act):
    store = s3.S3Store(s3_settings.address(), endpoint=f"http://127.0.0.1:{free_ports(1)[0]}")
    error, shown = failure(lambda: ACTS[act](store, made(b"")))
    assert error.reason is Reason.STORAGE_UNAVAILABLE
    assert_tells_nothing(shown, s3_settings)


def test_missing_credentials_are_named(s3_settings, monkeypatch, tmp_path):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))
    error, _ = failure(lambda: list(s3.S3Store(s3_settings.address(), endpoint=s3_settings.endpoint).list()))
    assert "AWS_ACCESS_KEY_ID" in error.remedy


def test_an_address_without_a_bucket_is_a_configuration_error():
    with pytest.raises(ConfigurationError):
        open_store("s3://", Settings(), "inbox")
    with pytest.raises(ConfigurationError):
        list(s3.S3Store("s3://bucket", endpoint="no address").list())


def test_opening_a_store_contacts_nothing():
    open_store("s3://bucket/prefix", Settings(s3_endpoint="http://127.0.0.1:9"), "inbox")


def test_stores_under_one_bucket_do_not_see_each_other(s3_settings):
    one, other = (s3.S3Store(s3_settings.address(name), endpoint=s3_settings.endpoint) for name in ("one", "one-b"))
    one.put_current("a", b"1")
    other.put_current("b", b"2")
    assert [entry.key for entry in one.list()] == ["a"]
    assert [entry.key for entry in other.list()] == ["b"]


def test_folder_markers_are_not_files(s3_settings, s3_server):
    client = s3_client(s3_server)
    client.put_object(Bucket=s3_settings.name, Key="inbox/team/", Body=b"")
    client.put_object(Bucket=s3_settings.name, Key="inbox/team/2025-01/a.pdf", Body=b"a")
    store = s3.S3Store(s3_settings.address("inbox"), endpoint=s3_settings.endpoint)
    assert [entry.key for entry in store.list()] == ["team/2025-01/a.pdf"]


def test_a_listing_of_several_pages_is_whole(s3_settings, s3_server):
    client = s3_client(s3_server)
    keys = [f"{n:05d}" for n in range(1_050)]
    for key in keys:
        client.put_object(Bucket=s3_settings.name, Key=key, Body=b"")
    store = s3.S3Store(s3_settings.address(), endpoint=s3_settings.endpoint)
    assert [entry.key for entry in store.list()] == keys


def test_the_server_refuses_bytes_that_changed_on_the_way(s3_settings, made, monkeypatch):
    store = s3.S3Store(s3_settings.address(), endpoint=s3_settings.endpoint)
    monkeypatch.setattr(s3.base64, "b64encode", lambda digest: b"A" * 43 + b"=")
    error, _ = failure(lambda: store.put_once("a", *made(b"body")))
    assert error.what == "The bytes changed on their way to the store."
    assert list(store.list()) == []


def test_an_answer_that_is_cut_is_a_transient_error_and_leaves_no_file(s3_settings, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer_half, args=(server,))
        answering.start()
        store = s3.S3Store(s3_settings.address(), endpoint=f"http://127.0.0.1:{server.getsockname()[1]}")
        error, shown = failure(lambda: store.fetch("a", tmp_path / "target", "0" * 64))
        answering.join()
    assert isinstance(error, StorageError)
    assert_tells_nothing(shown, s3_settings)
    assert not (tmp_path / "target").exists()


def _answer_half(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65_536)
        connection.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nETag: "x"\r\n\r\nhalf of it')
