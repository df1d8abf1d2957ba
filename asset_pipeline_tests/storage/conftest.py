"""Every store test runs on a real folder and on a real S3 server."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from asset_pipeline.storage.folder import FolderStore
from asset_pipeline.storage.s3 import S3Store


@pytest.fixture(params=["folder", "s3"])
def store(request, tmp_path):
    if request.param == "folder":
        (tmp_path / "store").mkdir()
        return FolderStore(tmp_path / "store")
    bucket = request.getfixturevalue("s3_settings")
    return S3Store(bucket.address("some/prefix"), endpoint=bucket.endpoint)


@pytest.fixture
def made(tmp_path):
    """Makes a file to store; returns it and its digest."""

    def make(body: bytes, name: str = "body") -> tuple[Path, str]:
        path = tmp_path / name
        path.write_bytes(body)
        return path, hashlib.sha256(body).hexdigest()

    return make
