"""A disk that is full while a decoder writes: no document is blamed for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asset_pipeline_tests.small_documents import noisy_pdf

_READ_ON_A_SMALL_DISK = """
import hashlib, json, subprocess, sys
from pathlib import Path
from asset_pipeline.errors import StorageError
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.policy import Policy

document, disk, engine, caged = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "caged"
content = document.read_bytes()
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=True)
out = Path(disk, "out")
out.mkdir()
request = Request(document, out, Policy(), hashlib.sha256(content).hexdigest(), len(content))
told = []
with DecoderPool(1, request.policy, caged=caged) as pool:
    for read in (pool.extract, pool.inspect):
        try:
            read(engine, request)
        except StorageError as error:
            told.append([str(error), len(list(out.iterdir()))])
        try:  # an answer is small: nothing at all is left for the next one
            Path(disk, "filler").write_bytes(bytes(65536))
        except OSError:
            pass
    subprocess.run(["mount", "-o", "remount,size=8m", disk], check=True)
    read = pool.extract(engine, request)
    told.append([row.reason for page in read.pages for row in page.placements])
print(json.dumps(told))
"""


@pytest.mark.parametrize("how", ["caged", "in this process"])
@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
def test_a_full_disk_is_told_as_such_and_no_picture_is_held_back_for_it(tmp_path: Path, engine: str, how: str) -> None:
    document, disk = tmp_path / "a.pdf", tmp_path / "disk"
    noisy_pdf(document, 2, side=200)
    disk.mkdir()
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    command = [*namespace, sys.executable, "-c", _READ_ON_A_SMALL_DISK, str(document), str(disk), engine, how]
    ended = subprocess.run(command, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    full = "What was read cannot be written: the disk is full. Make room where the work folder or --out is."
    assert json.loads(ended.stdout) == [[full, 0], [full, 0], [None, None]]
