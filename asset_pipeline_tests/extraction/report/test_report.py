"""One file in, pictures and a report out: the same for a good document, a bad one and a bad page."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pikepdf
import pytest

import asset_pipeline
from asset_pipeline import account
from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import ENGINES, Request
from asset_pipeline.extraction.pdf.engine import REVISION
from asset_pipeline.extraction.reading import merge
from asset_pipeline.extraction.sandbox.line import start_zygote
from asset_pipeline.extraction.sandbox.pool import DecoderPool
from asset_pipeline.extraction.turns import MOST_PAGES
from asset_pipeline.model import Extraction, Page, Source, Status
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

MakeDocument = Callable[..., Path]


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
def test_pictures_and_report_are_in_the_folder(make_document: MakeDocument, tmp_path: Path, engine: str) -> None:
    document = make_document([10, 20, 10])
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine=engine, workers=1)
    assert extraction.outcome == "ok"
    assert extraction.source.sha256 == hashlib.sha256(document.read_bytes()).hexdigest()
    assert [(page.drawn, page.archived, page.collapsed) for page in extraction.pages] == [
        (1, 1, 0),
        (1, 1, 0),
        (1, 0, 1),
    ]
    assert extraction.peak_rss_bytes > 0
    written = {entry.name for entry in (tmp_path / "out").iterdir()}
    assert written == {"report.json", *(picture.file for picture in extraction.pictures)}
    for picture in extraction.pictures:
        content = (tmp_path / "out" / picture.file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == picture.sha256
        assert len(content) == picture.bytes


def test_the_calling_process_loads_no_decoder_library(make_document: MakeDocument, tmp_path: Path) -> None:
    """They take half a second, which the decoder process spends already; and what they read is hostile."""
    script = (
        "import sys, asset_pipeline\n"
        "read = asset_pipeline.extract(sys.argv[1], sys.argv[2])\n"
        "heavy = {'numpy', 'pandas', 'PIL', 'pikepdf', 'pypdfium2', 'pypdf', 'simplejpeg', 'pydantic_settings'}\n"
        "by = read.extractor_version.split('+')[0]\n"
        "print(read.outcome, len(read.pictures), by, sorted(heavy & set(sys.modules)))\n"
    )
    arguments = [sys.executable, "-c", script, str(make_document([10])), str(tmp_path / "out")]
    ended = subprocess.run(arguments, capture_output=True, text=True)
    assert ended.stdout.strip() == f"ok 1 pdf/{REVISION} []", ended.stderr


def test_a_zygote_that_was_started_before_reads_the_document_and_ends(
    make_document: MakeDocument, tmp_path: Path
) -> None:
    started = start_zygote(["pdf"])
    extraction = asset_pipeline.extract(make_document([10]), tmp_path / "out", started=started)
    assert (extraction.outcome, started.greeted, started.over) == ("ok", True, True)


def test_the_report_says_what_the_call_returned(make_document: MakeDocument, tmp_path: Path) -> None:
    extraction = asset_pipeline.extract(make_document([10]), tmp_path / "out", engine="pypdf", workers=1)
    text = (tmp_path / "out" / "report.json").read_text()
    assert Extraction.model_validate_json(text) == extraction
    report = json.loads(text)
    assert report["schema"] == "asset-pipeline/extract-report/1"
    row = report["pages"][0]["placements"][0]
    assert {"name", "picture", "parts", "caption", "alt", "display", "status", "reason"} <= set(row)


@pytest.mark.parametrize("engine", ["pypdf", "TakesNoTurns"])
def test_many_processes_give_the_same_result_as_one(make_document: MakeDocument, tmp_path: Path, engine: str) -> None:
    document = make_document([number % 7 for number in range(30)])
    one = asset_pipeline.extract(document, tmp_path / "one", engine="pypdf", workers=1)
    many = asset_pipeline.extract(document, tmp_path / "many", engine=engine, workers=3)
    assert (one.pages, one.pictures) == (many.pages, many.pictures)
    assert account.unaccounted(many.pages, 30) == []
    assert len(many.pictures) == 7


@pytest.mark.parametrize("padding", [0, 2_000_000])
def test_pages_for_which_nobody_answered_are_read_again(
    make_document: MakeDocument, tmp_path: Path, padding: int
) -> None:
    """Of a document so small that its first pages are read ahead, and of one that is all dealt out."""
    document = make_document(list(range(30)))
    with document.open("ab") as file:
        file.write(b"%" + b" " * padding)
    one = asset_pipeline.extract(document, tmp_path / "one", engine="pypdf", workers=1)
    kept = asset_pipeline.extract(document, tmp_path / "kept", engine="KeepsTurns", workers=2)
    assert (kept.pages, kept.pictures) == (one.pages, one.pictures)
    written = {entry.name for entry in (tmp_path / "kept").iterdir()}
    assert written == {"report.json", *(picture.file for picture in kept.pictures)}


@pytest.mark.parametrize("engine", ["TakesOneTurn", "TakesOneTurnForAll"])
def test_decoders_that_take_turns_one_by_one_do_not_fill_memory_with_their_answers(
    make_document: MakeDocument, tmp_path: Path, engine: str
) -> None:
    asked = []

    class Counting(DecoderPool):
        def extract(self, engine: str, request: Request, **how: Any) -> Extraction:
            asked.append(request.turns is not None)
            return super().extract(engine, request, **how)

    pages = MOST_PAGES + 20
    document = make_document([number % 3 for number in range(pages)])
    with Counting(2, Policy(), engines=dict(ENGINES), warm=()) as pool:
        extraction = asset_pipeline.extract(document, tmp_path / "out", engine=engine, workers=2, pool=pool)
    assert (extraction.outcome, account.unaccounted(extraction.pages, pages)) == ("ok", [])
    assert [page.drawn for page in extraction.pages] == [1] * pages
    assert sum(asked) <= 4


def test_a_page_that_every_decoder_leaves_out_carries_a_reason(make_document: MakeDocument, tmp_path: Path) -> None:
    document = make_document(list(range(30)))
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine="LeavesPageOut", workers=2)
    assert (extraction.outcome, account.unaccounted(extraction.pages, 30)) == ("ok", [])
    unread = {page.page: page.reason for page in extraction.pages if page.drawn is None}
    assert unread == {12: Reason.DECODER_CRASHED}
    assert len(extraction.pictures) == 29


def test_a_report_has_no_page_that_the_document_has_not(make_document: MakeDocument, tmp_path: Path) -> None:
    document = make_document(list(range(30)))
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine="CountsMorePages", workers=2)
    assert (extraction.outcome, extraction.source.pages) == ("ok", 30)
    assert [page.page for page in extraction.pages] == list(range(1, 31))


def test_a_decoder_is_followed_by_another_once_it_has_read_its_share(
    make_document: MakeDocument, tmp_path: Path
) -> None:
    """In what it keeps of each page; so the memory of one does not grow with the document."""
    pages = MOST_PAGES + 20
    document = make_document([number % 3 for number in range(pages)])
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine="CrashesOnCounting", workers=1)
    assert account.unaccounted(extraction.pages, pages) == []
    assert [page.archived + page.collapsed for page in extraction.pages] == [1] * pages


@pytest.mark.parametrize("padding", [0, 2_000_000])
@pytest.mark.parametrize("engine", ["CrashesOnPage3", "HungryOnPage3"])
def test_a_page_that_loses_its_decoder_loses_no_other_page(
    make_document: MakeDocument, tmp_path: Path, engine: str, padding: int
) -> None:
    document = make_document([10, 20, 30, 40])
    with document.open("ab") as file:
        file.write(b"%" + b" " * padding)
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine=engine, workers=2)
    assert extraction.outcome == "ok"
    assert [page.drawn for page in extraction.pages] == [1, 1, None, 1]
    expected = Reason.DECODER_CRASHED if engine == "CrashesOnPage3" else Reason.MEMORY_EXCEEDED
    assert extraction.pages[2].reason is expected
    assert len(extraction.pictures) == 3
    assert account.unaccounted(extraction.pages, 4) == []


@pytest.mark.parametrize(
    ("engine", "reason"),
    [("HangsOnPage3", Reason.DEADLINE_EXCEEDED), ("CrashesOnOpening", Reason.DECODER_CRASHED)],
)
def test_a_document_that_loses_its_decoder_is_refused_and_leaves_no_picture(
    make_document: MakeDocument, tmp_path: Path, engine: str, reason: Reason
) -> None:
    policy = Policy(limits=Limits(document_seconds=1.5))
    extraction = asset_pipeline.extract(make_document([10, 20, 30, 40]), tmp_path / "out", engine=engine, policy=policy)
    assert extraction.outcome is reason
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["report.json"]


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("program.pdf", b"MZ\x90\x00 a program", Reason.SIGNATURE_MISMATCH),
        ("letter.docx", b"PK\x03\x04" + b"\0" * 26 + b"[Content_Types].xml", Reason.TRUNCATED_DOCUMENT),
        ("picture.png", b"\x89PNG\r\n\x1a\n", Reason.MEDIA_TYPE_NOT_ALLOWED),
        ("empty.pdf", b"", Reason.EMPTY_DOCUMENT),
    ],
)
def test_what_is_no_document_is_refused_with_a_report(
    tmp_path: Path, engine: str, name: str, content: bytes, reason: Reason
) -> None:
    (tmp_path / name).write_bytes(content)
    extraction = asset_pipeline.extract(tmp_path / name, tmp_path / "out", engine=engine)
    assert extraction.outcome is reason
    assert json.loads((tmp_path / "out" / "report.json").read_text())["outcome"] == reason


@pytest.mark.parametrize("pages", [1, 8, 20])
def test_pages_of_a_small_document_are_read_without_a_process_that_counts_them(
    make_document: MakeDocument, tmp_path: Path, pages: int
) -> None:
    document = make_document(list(range(pages)))
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine="CrashesOnCounting", workers=2)
    assert (extraction.outcome, extraction.source.pages, len(extraction.pictures)) == ("ok", pages, pages)
    assert account.unaccounted(extraction.pages, pages) == []


def test_a_document_over_the_size_limit_is_refused(make_document: MakeDocument, tmp_path: Path) -> None:
    policy = Policy(limits=Limits(source_bytes=100))
    extraction = asset_pipeline.extract(make_document([10]), tmp_path / "out", policy=policy)
    assert extraction.outcome is Reason.PAYLOAD_TOO_LARGE


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
def test_a_password_opens_a_protected_document(make_document: MakeDocument, tmp_path: Path, engine: str) -> None:
    # RC4, since the AES of the second opinion needs a library that is optional there.
    protection = pikepdf.Encryption(user="secret", owner="owner", R=3, aes=False, metadata=False)
    document = make_document([10], encryption=protection)
    closed = asset_pipeline.extract(document, tmp_path / "closed", engine=engine)
    assert (closed.outcome, closed.source.encrypted) == (Reason.ENCRYPTED, "user")
    opened = asset_pipeline.extract(document, tmp_path / "open", engine=engine, password="secret")
    assert (opened.outcome, opened.source.encrypted, len(opened.pictures)) == ("ok", "user", 1)


def test_a_wrong_call_says_so(make_document: MakeDocument, tmp_path: Path) -> None:
    document = make_document([10])
    with pytest.raises(UsageError, match="no file"):
        asset_pipeline.extract(tmp_path / "absent.pdf", tmp_path / "out")
    with pytest.raises(UsageError, match="no engine"):
        asset_pipeline.extract(document, tmp_path / "out", engine="unheard-of")
    with pytest.raises(UsageError, match="cannot be written"):
        asset_pipeline.extract(document, document)
    with pytest.raises(UsageError, match="no UTF-8"):
        asset_pipeline.extract(document.rename(tmp_path / "\udcff.pdf"), tmp_path / "out")


@pytest.mark.parametrize("change", ["replaced", "removed", "cut", "appended to"])
def test_a_file_that_is_changed_while_it_is_read_gives_no_report(
    make_document: MakeDocument, tmp_path: Path, change: str
) -> None:
    """Decoders open it by its name, each for itself: they might have read two documents, and the digest be a third."""
    document, other, out = make_document([10]), make_document([20], "other.pdf"), tmp_path / "out"

    def interfere() -> None:
        while not (waiting := list(out.glob(".reading-*/*/waiting"))):
            time.sleep(0.01)
        if change == "replaced":
            other.replace(document)
        elif change == "removed":
            document.unlink()
        else:
            with document.open("r+b") as file:
                file.truncate(document.stat().st_size + (7 if change == "appended to" else -7))
        (waiting[0].parent / "go").touch()

    with ThreadPoolExecutor(1) as aside, pytest.raises(UsageError, match="was changed while it was read"):
        aside.submit(interfere)
        asset_pipeline.extract(document, out, engine="Waits", workers=1)
    assert list(out.iterdir()) == []


def test_an_interrupt_waits_for_no_decoder(make_document: MakeDocument, tmp_path: Path) -> None:
    script = (
        "import os, pathlib, signal, sys, threading, time\n"
        "import asset_pipeline\n"
        "from asset_pipeline.extraction.engine import ENGINES\n"
        "ENGINES['Waits'] = 'failing_engines:Waits'\n"
        "document, out = map(pathlib.Path, sys.argv[1:])\n"
        "def interrupt():\n"
        "    while len(list(out.glob('.reading-*/*/waiting'))) < 2: time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
        "try: asset_pipeline.extract(document, out, engine='Waits', workers=2)\n"
        "except KeyboardInterrupt: print('interrupted', list(out.iterdir()))\n"
    )
    document = make_document([10, 20])
    with document.open("ab") as file:
        file.write(b"%" + b" " * 2_000_000)
    arguments = [sys.executable, "-c", script, str(document), str(tmp_path / "out")]
    # The deadline of a document is a minute.
    ended = subprocess.run(arguments, capture_output=True, text=True, cwd=Path(__file__).parent, timeout=30)
    assert ended.stdout.strip() == "interrupted []", ended.stderr


def test_what_a_killed_reading_left_goes_with_the_next_and_what_another_reads_stays(
    make_document: MakeDocument, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    left, used = out / ".reading-left", out / ".reading-used"
    for folder in (left, used):
        (folder / "1").mkdir(parents=True)
        (folder / "1" / "picture.png").write_bytes(b"picture")
    descriptor = os.open(used, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        asset_pipeline.extract(make_document([10]), out)
    finally:
        os.close(descriptor)
    assert [entry for entry in out.iterdir() if entry.is_dir()] == [used]
    assert (used / "1" / "picture.png").exists()


def test_pictures_can_be_read_by_whom_the_report_can_be(make_document: MakeDocument, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        asset_pipeline.extract(make_document([10, 20]), tmp_path / "out")
    finally:
        os.umask(before)
    assert {entry.stat().st_mode & 0o777 for entry in (tmp_path / "out").iterdir()} == {0o640}


def test_a_picture_that_cannot_be_put_in_its_place_is_told(make_document: MakeDocument, tmp_path: Path) -> None:
    document = make_document([10])
    (picture,) = asset_pipeline.extract(document, tmp_path / "out").pictures
    (tmp_path / "out" / picture.file).unlink()
    (tmp_path / "out" / picture.file).mkdir()
    with pytest.raises(UsageError, match="cannot be written"):
        asset_pipeline.extract(document, tmp_path / "out")
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == [picture.file]


@pytest.mark.parametrize("engine", ["pdf", "pypdf"])
@pytest.mark.parametrize("size", [(-5, -7), (0, 0), (2**62, -(2**62)), (2**53, 8)])
def test_a_picture_that_states_an_absurd_size_loses_no_other(
    make_document: MakeDocument, tmp_path: Path, engine: str, size: tuple[int, int]
) -> None:
    document = make_document([10, 20])
    with pikepdf.open(document, allow_overwriting_input=True) as pdf:
        one, other = pdf.pages
        one.Resources.XObject.Im1 = other.Resources.XObject.Im0
        one.Contents = pdf.make_stream(b"q 100 0 0 100 20 20 cm /Im1 Do /Im0 Do Q")
        one.Resources.XObject.Im0.Width, one.Resources.XObject.Im0.Height = size
        pdf.save(document)
    extraction = asset_pipeline.extract(document, tmp_path / "out", engine=engine)
    rows = extraction.pages[0].placements
    assert [row.status for row in rows] == [Status.ARCHIVED, Status.QUARANTINED]
    assert (rows[1].width, rows[1].height) == tuple(max(1 - 2**53, min(stated, 2**53 - 1)) for stated in size)
    assert len(extraction.pictures) == 1


def test_odd_characters_of_a_name_are_no_obstacle(make_document: MakeDocument, tmp_path: Path) -> None:
    document = make_document([10]).rename(tmp_path / "a b\n-é.pdf")
    assert asset_pipeline.extract(document, tmp_path / "out").outcome == "ok"


@pytest.mark.usefixtures("started_zygotes")
def test_no_decoder_outlives_the_call(make_document: MakeDocument, tmp_path: Path) -> None:
    before = _children()
    asset_pipeline.extract(make_document([10]), tmp_path / "out", engine="pypdf")
    assert _children() <= before


def _children() -> set[str]:
    """Process ids of what this process has started, by whichever thread."""
    found: set[str] = set()
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # another thread has ended: what it started is now listed with a living one
            found.update(thread.read_text().split())
    return found


def test_parts_merge_in_page_order_whatever_order_they_came_in() -> None:
    source = Source(sha256="0" * 64, bytes=1, media_type=None, pages=2, encrypted="none")
    whole = Extraction(source=source, outcome="ok", extractor_version="test/1")
    parts = [
        whole.model_copy(update={"pages": [Page(page=number, drawn=0)], "peak_rss_bytes": number}) for number in (2, 1)
    ]
    merged = merge(parts, whole)
    assert [page.page for page in merged.pages] == [1, 2]
    assert merged.peak_rss_bytes == 2
    assert Status.ARCHIVED not in [row.status for page in merged.pages for row in page.placements]
