"""A captured decoder gets nowhere: not to the network, to other files, to programs, processes or its parent."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pikepdf
import pytest

from asset_pipeline.extraction.comparison import compare
from asset_pipeline.extraction.engine import ENGINES, Request
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.extraction.sandbox.confine import probe
from asset_pipeline.installation import open_installation
from asset_pipeline.policy import Policy
from asset_pipeline.storage.store import object_key
from asset_pipeline.work.previews import open_previews
from asset_pipeline_tests.small_documents import fresh_settings, picture_pdf

pytestmark = pytest.mark.usefixtures("started_zygotes")

MakePool = Callable[..., DecoderPool]
MakeRequest = Callable[..., Request]

needs_filters = pytest.mark.skipif(
    probe(["landlock", "seccomp"]) != {"landlock", "seccomp"}, reason="this kernel has no Landlock or no seccomp"
)


def _gone(pid: int) -> bool:
    """Whether ``pid`` ends within two seconds."""
    until = time.monotonic() + 2
    while Path(f"/proc/{pid}/stat").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}/stat").exists()


def _told(pool: DecoderPool, request: Request) -> str:
    (picture,) = pool.extract("Tries", request).pictures
    return str(json.loads((request.out / picture.file).read_text()))


@needs_filters
def test_nothing_that_a_captured_decoder_tries_succeeds_and_its_parent_works_on(
    make_pool: MakePool, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from trying_engines import FORBIDDEN

    first = make_request()
    neighbour = first.document.parent / "neighbour"
    neighbour.mkdir()
    (neighbour / "document").write_bytes(b"somebody else's")
    before = (first.document.stat(), first.document.parent.stat().st_mode)
    with make_pool() as pool:
        came = {name: _told(pool, make_request(password=name)) for name in FORBIDDEN}
        assert pool.extract("Honest", make_request()).outcome == "ok"
        assert pool.cage.startswith("landlock-") and pool.cage.endswith("+seccomp+rlimits")
    assert {name: what for name, what in came.items() if not what.startswith("refused")} == {}
    after = first.document.stat()
    assert (after.st_mtime, after.st_uid, after.st_mode) == (before[0].st_mtime, before[0].st_uid, before[0].st_mode)
    assert first.document.parent.stat().st_mode == before[1]


@needs_filters
def test_a_decoder_can_do_its_own_work_in_its_cage(
    make_pool: MakePool, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    from trying_engines import ALLOWED

    with make_pool() as pool:
        came = {name: _told(pool, make_request(password=name)) for name in ALLOWED}
    assert {name: what for name, what in came.items() if not what.startswith("got")} == {}
    assert came["read its document"] == "got '%PDF-'"


@pytest.mark.parametrize("engine", ["LeavesChild", "LeavesSession"])
def test_without_filters_the_processes_that_a_decoder_left_behind_are_ended(
    make_pool: MakePool, make_request: MakeRequest, engine: str
) -> None:
    request = make_request()
    with make_pool(filters=[]) as pool:
        assert pool.extract(engine, request).outcome == "ok"
        assert _gone(int(request.document.with_suffix(".pid").read_text()))
        assert pool.cage == "rlimits"


def test_documents_are_read_without_a_cage_only_when_asked_and_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import asset_pipeline

    picture_pdf(tmp_path / "a.pdf", [10, 20])
    caged = asset_pipeline.extract(tmp_path / "a.pdf", tmp_path / "caged")
    assert "cage" not in caplog.text
    monkeypatch.setenv("ASSET_PIPELINE_SANDBOX", "false")
    with caplog.at_level(logging.WARNING):
        bare = asset_pipeline.extract(tmp_path / "a.pdf", tmp_path / "bare")
    assert "documents are read without a cage" in caplog.text
    assert (bare.outcome, bare.pages, bare.pictures) == (caged.outcome, caged.pages, caged.pictures)
    with DecoderPool(1, Policy(), caged=False) as pool:
        assert pool.cage == "none"


@needs_filters
def test_a_comparison_of_engines_reads_in_the_cage_unless_it_is_switched_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(ENGINES, "free", "trying_engines:FindsItselfFree")
    monkeypatch.setitem(ENGINES, "honest", "hostile_engines:Honest")
    picture_pdf(tmp_path / "a.pdf", [10])
    caged = compare("honest", "free", [tmp_path / "a.pdf"], Policy())
    assert (caged.second.documents, caged.second.refused) == (1, 0)
    assert "cage" not in caplog.text
    monkeypatch.setenv("ASSET_PIPELINE_SANDBOX", "false")
    with caplog.at_level(logging.WARNING):
        free = compare("honest", "free", [tmp_path / "a.pdf"], Policy())
    assert (free.second.documents, free.second.refused) == (1, 1)
    assert "documents are read without a cage" in caplog.text


@pytest.mark.parametrize("caged", [True, False])
def test_previews_are_made_in_the_cage_unless_it_is_switched_off(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, caged: bool
) -> None:
    picture_pdf(tmp_path / "a.pdf", [10])
    sha256 = hashlib.sha256((tmp_path / "a.pdf").read_bytes()).hexdigest()
    drawn: list[int] = []
    with caplog.at_level(logging.WARNING), open_installation(fresh_settings(tmp_path, sandbox=caged)) as inst:
        inst.sources.put_once(object_key(sha256), tmp_path / "a.pdf", sha256)
        with open_previews(inst, 1) as previews:
            previews.pages(sha256, [(1, True)], lambda page: drawn.append(page.page))
    assert drawn == [1]
    assert ("documents are read without a cage" in caplog.text) != caged


def test_a_decoder_cannot_be_kept_out_of_its_cage_by_a_missing_document(
    make_pool: MakePool, make_request: MakeRequest
) -> None:
    request = make_request()
    request.document.unlink()
    with make_pool() as pool:
        assert pool.extract("Honest", request).outcome == "ok"


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
@pytest.mark.parametrize("revision", [3, 4, 6])
def test_an_encrypted_document_is_read_in_the_cage(tmp_path: Path, engine: str, revision: int) -> None:
    import asset_pipeline

    picture_pdf(tmp_path / "plain.pdf", [10])
    with pikepdf.open(tmp_path / "plain.pdf") as pdf:
        security = pikepdf.Encryption(
            owner="owner", user="open sesame", R=revision, aes=revision > 3, metadata=revision > 3
        )
        pdf.save(tmp_path / "locked.pdf", encryption=security)
    read = asset_pipeline.extract(tmp_path / "locked.pdf", tmp_path / "out", engine=engine, password="open sesame")
    assert (read.outcome, read.source.encrypted, len(read.pictures) > 0) == ("ok", "user", True)


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
def test_an_engine_loads_nothing_once_it_is_warm(engine: str, tmp_path: Path) -> None:
    """In its cage it could not: a library that is loaded late would fail there, and there alone."""
    script = (
        "import sys, hashlib\n"
        "from pathlib import Path\n"
        "from asset_pipeline.extraction.engine import Request, load_engine\n"
        "from asset_pipeline.extraction.sandbox import zygote\n"
        "from asset_pipeline.extraction.sandbox.warm import warm_up\n"
        "from asset_pipeline.policy import Policy\n"
        "name, inbox, place = sys.argv[1:]\n"
        "warm_up(name)\n"
        "loaded, opened = set(sys.modules), []\n"
        "watch = lambda event, args: opened.append(args[0]) if event == 'open' and isinstance(args[0], str) else None\n"
        "sys.addaudithook(watch)\n"
        "for number, document in enumerate(sorted(Path(inbox).rglob('*.pdf'))):\n"
        "    out = Path(place, str(number)); out.mkdir()\n"
        "    request = Request(document=document, out=out, policy=Policy(), source_sha256='0' * 64,\n"
        "                      source_bytes=document.stat().st_size, pixels=True)\n"
        "    load_engine(name).inspect(request)\n"
        "    load_engine(name).extract(request).model_dump(mode='json')\n"
        "print(sorted(set(sys.modules) - loaded))\n"
        "print([path for path in opened if not path.startswith((inbox, place))])\n"
    )
    inbox = Path(__file__).parents[3] / "fixtures" / "inbox"
    arguments = [sys.executable, "-c", script, engine, str(inbox), str(tmp_path)]
    ended = subprocess.run(arguments, capture_output=True, text=True, cwd=inbox.parents[1], env=dict(os.environ))
    assert ended.stdout.split("\n") == ["[]", "[]", ""], ended.stderr
