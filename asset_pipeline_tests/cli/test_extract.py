"""`extract`: pictures in a folder, a report, and an exit status that a script can use."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from asset_pipeline_tests.small_documents import picture_pdf


def test_pictures_and_report_are_in_the_folder(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10, 20, 10])
    ended = command("extract", "a.pdf", "--out", "out")
    assert ended.status == 0, ended.err
    report = json.loads((place / "out" / "report.json").read_text())
    assert report["outcome"] == "ok"
    assert [(page["archived"], page["collapsed"]) for page in report["pages"]] == [(1, 0), (1, 0), (0, 1)]
    for picture in report["pictures"]:
        assert hashlib.sha256((place / "out" / picture["file"]).read_bytes()).hexdigest() == picture["sha256"]


def test_json_on_standard_output_is_the_report(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10])
    ended = command("extract", "a.pdf", "--out", "out", "--json")
    assert json.loads(ended.out) == json.loads((place / "out" / "report.json").read_text())


def test_csv_has_a_row_for_each_placement(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10, 20])
    ended = command("extract", "a.pdf", "--out", "out", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [(row["name"], row["page"], row["status"]) for row in rows] == [
        ("page-001-image-001", "1", "archived"),
        ("page-002-image-001", "2", "archived"),
    ]


def test_a_refused_document_has_exit_status_3_and_a_report(command: Callable, place: Path) -> None:
    picture_pdf(place / "locked.pdf", [10], encrypted=True)
    ended = command("extract", "locked.pdf", "--out", "out")
    assert ended.status == 3
    assert "encrypted" in ended.err
    assert json.loads((place / "out" / "report.json").read_text())["outcome"] == "encrypted"


def test_a_password_from_a_file_opens_a_document(command: Callable, place: Path) -> None:
    picture_pdf(place / "locked.pdf", [10], encrypted=True)
    (place / "password").write_text("secret\n")
    ended = command("extract", "locked.pdf", "--out", "out", "--password-file", "password")
    assert ended.status == 0, ended.err


def test_what_to_do_about_a_password_is_told_for_this_command(command: Callable, place: Path) -> None:
    picture_pdf(place / "locked.pdf", [10], encrypted=True)
    assert "--password-file" in command("extract", "locked.pdf", "--out", "out").err
    (place / "password").write_text("wrong\n")
    ended = command("extract", "locked.pdf", "--out", "out", "--password-file", "password")
    assert ended.status == 3
    assert "The password does not open it" in ended.err


def test_a_page_that_was_not_read_is_named_in_the_summary(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10, 20])
    (place / "policy.yaml").write_text("limits: {operators: 2}\n")
    ended = command("extract", "a.pdf", "--out", "out", "--policy", "policy.yaml")
    assert ended.status == 0
    assert "2 pages not read" in ended.err
    as_for_all = command("extract", "a.pdf", "--out", "again", ASSET_PIPELINE_POLICY="policy.yaml")
    assert "2 pages not read" in as_for_all.err, "the rules of the installation, where none are named"
    assert "Not read, content_budget_exceeded: page 1, 2. A page's drawing is larger than allowed." in ended.err


@pytest.mark.parametrize(
    ("name", "body", "reason", "words"),
    [
        ("empty.pdf", b"", "empty_document", "holds no bytes"),
        ("program.pdf", b"%!PS-Adobe-3.0\n(%PDF-1.4) print\n", "signature_mismatch", "another type than the name"),
        ("program.ps", b"%!PS-Adobe-3.0\n(%PDF-1.4) print\n", "media_type_not_allowed", "as PDF"),
    ],
)
def test_a_file_that_is_no_document_is_refused_for_what_it_is(
    command: Callable, place: Path, name: str, body: bytes, reason: str, words: str
) -> None:
    (place / name).write_bytes(body)
    ended = command("extract", name, "--out", "out")
    assert (ended.status, json.loads((place / "out" / "report.json").read_text())["outcome"]) == (3, reason)
    assert words in ended.err


def test_a_quarantined_picture_is_not_a_failure(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10], broken_picture=True)
    ended = command("extract", "a.pdf", "--out", "out")
    assert ended.status == 0, ended.err
    assert "1 quarantined" in ended.err
    report = json.loads((place / "out" / "report.json").read_text())
    assert "withheld" not in report
    files = {picture["file"] for picture in report["pictures"]}
    assert {path.name for path in (place / "out").iterdir()} == files | {"report.json"}, "nothing of a quarantined one"


STARTS_AHEAD = """
import glob, sys, time
from asset_pipeline.cli import ahead
ahead.start(sys.argv[1:])
line = ahead.taken()
children, ends = "", time.monotonic() + 10
while line and not children and time.monotonic() < ends:
    children = "".join(open(thread).read() for thread in glob.glob("/proc/self/task/*/children")).strip()
print(line.hello.warm if line else None, sorted({"typer", "pydantic", "numpy"} & set(sys.modules)), children, sep="|")
"""


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ("extract a.pdf --out out", "['pdf']"),
        ("--debug extract --engine pypdf A.PDF --out out", "['pypdf']"),
        ("extract --out=out a.docx", "['ooxml']"),
        ("extract a.pdf --out out --help", "None"),
        ("status extract a.pdf", "None"),
    ],
)
def test_a_decoder_process_starts_before_anything_slow_is_loaded_and_never_stays_behind(
    place: Path, words: str, loaded: str
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", STARTS_AHEAD, *words.split()], cwd=place, capture_output=True, text=True, check=True
    )
    warm, slow, child = ended.stdout.strip().split("|")
    assert (warm, slow, child != "") == (loaded, "[]", loaded != "None")
    ends = time.monotonic() + 30
    while child and Path(f"/proc/{child}").exists():  # nobody took what was started
        assert time.monotonic() < ends
        time.sleep(0.01)
