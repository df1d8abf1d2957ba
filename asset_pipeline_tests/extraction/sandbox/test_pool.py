"""A decoder process can be lost in any way without losing its caller, and says only what was checked."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderLost, DecoderPool
from asset_pipeline.extraction.turns import deal
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason

pytestmark = pytest.mark.usefixtures("started_zygotes")

MakePool = Callable[..., DecoderPool]
MakeRequest = Callable[..., Request]


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _gone(pid: int) -> bool:
    """Whether ``pid`` ends within two seconds."""
    until = time.monotonic() + 2
    while _alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not _alive(pid)


def _zygotes() -> list[int]:
    """Zygotes that this test process started."""
    listing = subprocess.run(
        ["ps", "-ww", "-o", "pid=,args=", "--ppid", str(os.getpid())], capture_output=True, text=True
    )
    return [int(line.split()[0]) for line in listing.stdout.splitlines() if "sandbox.zygote" in line]


def test_an_answer_comes_back_with_its_files_and_nothing_else(make_pool: MakePool, make_request: MakeRequest) -> None:
    request = make_request()
    with make_pool() as pool:
        extraction = pool.extract("Honest", request)
    assert [page.page for page in extraction.pages] == [1, 2, 3]
    assert [entry.name for entry in request.out.iterdir()] == [extraction.pictures[0].file]
    assert extraction.peak_rss_bytes > 0


def test_the_bytes_of_a_quarantined_picture_come_back_where_they_were_asked_for(
    make_pool: MakePool, make_request: MakeRequest
) -> None:
    request, other = make_request(), make_request(withhold=False)
    with make_pool() as pool:
        (held,) = pool.extract("Withholds", request).withheld
        with pytest.raises(DecoderLost):
            pool.extract("Withholds", other)
    assert [entry.read_bytes() for entry in request.out.iterdir()] == [b"bytes"]
    assert (held.name, held.sha256) == ("page-001-image-001", hashlib.sha256(b"bytes").hexdigest())
    assert list(other.out.iterdir()) == []


def test_an_inspection_leaves_its_folder_empty(make_pool: MakePool, make_request: MakeRequest) -> None:
    request = make_request()
    with make_pool() as pool:
        inspection = pool.inspect("Honest", request)
    assert inspection.source.pages == 3
    assert list(request.out.iterdir()) == []


def test_a_deadline_ends_the_decoder_and_not_only_the_wait(make_pool: MakePool, make_request: MakeRequest) -> None:
    with make_pool(document_seconds=0.3) as pool:
        pool.inspect("Honest", make_request())
        before = time.monotonic()
        with pytest.raises(DecoderLost) as lost:
            pool.extract("Sleeps", make_request())
        assert time.monotonic() - before < 2
        zygote = _zygotes()[0]
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(zygote)], capture_output=True, text=True)
        assert children.stdout.split() == []
    assert lost.value.reason is Reason.DEADLINE_EXCEEDED


def test_a_caller_can_shorten_the_deadline(make_pool: MakePool, make_request: MakeRequest) -> None:
    with make_pool(document_seconds=60) as pool, pytest.raises(DecoderLost) as lost:
        pool.extract("Spins", make_request(), seconds=0.2)
    assert lost.value.reason is Reason.DEADLINE_EXCEEDED


@pytest.mark.parametrize("engine", ["Allocates", "AllocatesAtOnce", "DiesOfHunger"])
def test_memory_beyond_the_limit_is_told_from_a_crash(
    make_pool: MakePool, make_request: MakeRequest, engine: str
) -> None:
    with make_pool(decoder_bytes=512 * 1024 * 1024) as pool, pytest.raises(DecoderLost) as lost:
        pool.extract(engine, make_request())
    assert lost.value.reason is Reason.MEMORY_EXCEEDED


def test_a_crash_loses_only_its_own_document(make_pool: MakePool, make_request: MakeRequest) -> None:
    with make_pool(workers=2) as pool, ThreadPoolExecutor(4) as callers:
        crashes = [callers.submit(pool.extract, "Aborts", make_request()) for _ in range(3)]
        honest = [callers.submit(pool.extract, "Honest", make_request()) for _ in range(3)]
        assert all(answer.result().outcome == "ok" for answer in honest)
        reasons = [getattr(crash.exception(), "reason", None) for crash in crashes]
        assert reasons == [Reason.DECODER_CRASHED] * 3
        assert len(_zygotes()) == 1


@pytest.mark.parametrize(
    "engine",
    [
        *("LinksToKey", "HardLink", "NamedPipe", "OtherBytes", "OtherDocument", "OtherPage"),
        *("DeepAnswer", "TwiceTheKey", "NoAnswer", "HugeAnswer", "AnswerIsLink", "ClosesEverything"),
        *("EndlessNumber", "OtherCounts", "NumberBeyondDatabases", "NameOfAnotherPage", "PictureWithoutFile"),
        *("UnknownField", "WithholdsLink", "WithholdsOfNothing", "WithholdsMuch", "PagesWithoutEnd"),
    ],
)
def test_an_answer_that_lies_is_not_believed(make_pool: MakePool, make_request: MakeRequest, engine: str) -> None:
    """On a kernel without filters, where a decoder can make links and pipes to begin with."""
    request = make_request()
    with make_pool(filters=[]) as pool, pytest.raises(DecoderLost) as lost:
        pool.extract(engine, request)
    assert lost.value.reason is Reason.DECODER_CRASHED
    assert list(request.out.iterdir()) == []


@pytest.mark.parametrize("engine", ["RemovesFolder", "FolderIsLink"])
def test_a_folder_that_was_taken_away_costs_nobody_else_a_file(
    make_pool: MakePool, make_request: MakeRequest, engine: str
) -> None:
    request = make_request()
    with make_pool(filters=[]) as pool:
        with pytest.raises(DecoderLost) as lost:
            pool.extract(engine, request)
        assert pool.extract("Honest", make_request()).outcome == "ok"
    assert lost.value.reason is Reason.DECODER_CRASHED
    assert request.document.exists()


def test_text_of_a_document_does_not_pass_for_a_name_and_is_made_plain(
    make_pool: MakePool, make_request: MakeRequest
) -> None:
    with make_pool() as pool:
        page = pool.extract("TextOfTheDocument", make_request()).pages[0]
    assert (page.placements[0].filter, page.placements[0].colour_space) == (["FlateDecode", "other"], "other")
    assert page.label == "i  ?<b>"


def test_a_file_beyond_the_limit_refuses_the_document(make_pool: MakePool, make_request: MakeRequest) -> None:
    request = make_request()
    with make_pool(expanded_bytes=1 << 20) as pool:
        assert pool.extract("WritesTooMuch", request).outcome is Reason.EXPANDED_SIZE_EXCEEDED
        assert list(request.out.iterdir()) == []


@pytest.mark.parametrize("engine", ["Spins", "IgnoresSignals", "Sleeps"])
def test_a_deadline_is_overshot_by_no_more_than_a_tenth_of_a_second(
    make_pool: MakePool, make_request: MakeRequest, engine: str
) -> None:
    """The best of five, since what else this machine does at that moment is not the pool's to answer for."""
    with make_pool() as pool:
        pool.extract("Honest", make_request())
        overshot = []
        for _ in range(5):
            began = time.monotonic()
            with pytest.raises(DecoderLost) as lost:
                pool.extract(engine, make_request(), seconds=0.3)
            assert lost.value.reason is Reason.DEADLINE_EXCEEDED
            overshot.append(time.monotonic() - began - 0.3)
        assert pool.extract("Honest", make_request()).outcome == "ok"
    assert 0 <= min(overshot) <= 0.1


def test_an_engine_that_raises_is_told_by_place_and_not_by_its_words(
    make_pool: MakePool, make_request: MakeRequest, caplog: pytest.LogCaptureFixture
) -> None:
    with make_pool() as pool, caplog.at_level(logging.INFO):
        assert pool.extract("Raises", make_request()).outcome is Reason.INTERNAL_ERROR
        assert pool.inspect("Raises", make_request()).outcome is Reason.INTERNAL_ERROR
    assert "ValueError at hostile_engines.py:" in caplog.text
    assert "secret" not in caplog.text


def test_a_decoder_sees_no_credentials_and_holds_no_line_to_its_parent(
    make_pool: MakePool, make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "credential")
    monkeypatch.setenv("ASSET_PIPELINE_INSTALL_KEY", "credential")
    request = make_request(password="open sesame")
    with make_pool() as pool:
        (picture,) = pool.extract("Surroundings", request).pictures
    facts = json.loads((request.out / picture.file).read_text())
    assert "credential" not in str(facts)
    assert facts["password"] == "open sesame"
    assert facts["group"] and facts["folder"]
    assert facts["descriptors"] == [0, 1, 2]


def test_turns_are_the_one_line_that_a_decoder_holds_and_nothing_can_be_said_on_it(
    make_pool: MakePool, make_request: MakeRequest
) -> None:
    with make_pool() as pool, deal() as turns, deal() as of_another:
        waiting = make_request(turns=of_another)
        with ThreadPoolExecutor(1) as caller:
            other = caller.submit(pool.extract, "Surroundings", waiting)
            request = make_request(turns=turns)
            (picture,) = pool.extract("Surroundings", request).pictures
            other.result()
    facts = json.loads((request.out / picture.file).read_text())
    assert len(facts["descriptors"]) == 4 and facts["descriptors"][:3] == [0, 1, 2]
    assert facts["writable"] == []


def test_more_pages_than_are_allowed_are_not_counted_up_to(make_pool: MakePool, make_request: MakeRequest) -> None:
    with make_pool() as pool, pytest.raises(DecoderLost):
        pool.inspect("PagesWithoutEnd", make_request())


def test_a_zygote_that_dies_is_replaced(make_pool: MakePool, make_request: MakeRequest) -> None:
    with make_pool() as pool:
        pool.extract("Honest", make_request())
        (first,) = _zygotes()
        with ThreadPoolExecutor(1) as caller:
            waiting = caller.submit(pool.extract, "Sleeps", make_request())
            time.sleep(0.3)
            os.kill(first, 9)
            assert getattr(waiting.exception(5), "reason", None) is Reason.DECODER_CRASHED
        assert pool.extract("Honest", make_request()).outcome == "ok"
        assert _zygotes() != [first]


def test_closing_ends_every_process_and_answers_every_caller(make_pool: MakePool, make_request: MakeRequest) -> None:
    pool = make_pool()
    pool.inspect("Honest", make_request())
    (zygote,) = _zygotes()
    with ThreadPoolExecutor(1) as caller:
        waiting = caller.submit(pool.extract, "Sleeps", make_request())
        time.sleep(0.3)
        pool.close()
        assert isinstance(waiting.exception(5), DecoderLost)
    assert _gone(zygote)
    with pytest.raises(DecoderLost):
        pool.extract("Honest", make_request())


def test_a_pool_whose_owner_is_killed_leaves_no_process(tmp_path: Path) -> None:
    script = (
        "import sys, threading, pathlib, os, time\n"
        "from asset_pipeline.extraction.sandbox import DecoderPool\n"
        "from asset_pipeline.policy import Policy\n"
        "pool = DecoderPool(1, Policy(), warm=()).__enter__()\n"
        "while not pool._line.greeted: time.sleep(0.01)\n"
        "children = os.popen(f'ps -ww -o pid=,args= --ppid {os.getpid()}').read().splitlines()\n"
        "print(next(c.split()[0] for c in children if 'zygote' in c), flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    owner = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert _gone(int(owner.stdout))


def test_an_unknown_library_of_the_zygote_is_a_configuration_error(
    make_request: MakeRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with DecoderPool(1, Policy(), warm=()) as pool:
        with pytest.raises(DecoderLost):
            pool.extract("pdf", make_request())
        with pytest.raises(ConfigurationError):
            pool.extract("pdf", make_request())
