"""`compare`: what only one engine finds, how often each refuses, and an exit status that a script can use."""

from __future__ import annotations

import csv
import io
import json
import zlib
from collections.abc import Callable
from pathlib import Path

import pikepdf
from pikepdf import Dictionary, Name

from asset_pipeline_tests.small_documents import picture_pdf


def pattern_pdf(path: Path) -> None:
    """A page that draws one picture itself and another one in a tiling pattern, which only our own walk enters."""
    with pikepdf.new() as pdf:
        pictures = []
        for tone in (40, 200):
            picture = pdf.make_stream(zlib.compress(bytes([tone, tone // 2, 9]) * 400), Width=20, Height=20)
            picture.Type, picture.Subtype, picture.Filter = Name.XObject, Name.Image, Name.FlateDecode
            picture.ColorSpace, picture.BitsPerComponent = Name.DeviceRGB, 8
            pictures.append(picture)
        pattern = pdf.make_stream(b"q 50 0 0 50 0 0 cm /P Do Q", PatternType=1, PaintType=1, TilingType=1)
        pattern.BBox, pattern.XStep, pattern.YStep = pikepdf.Array([0, 0, 50, 50]), 50, 50
        pattern.Resources = Dictionary(XObject=Dictionary(P=pictures[1]))
        page = pdf.add_blank_page(page_size=(300, 300))
        page.Resources = Dictionary(XObject=Dictionary(A=pictures[0]), Pattern=Dictionary(T=pattern))
        page.Contents = pdf.make_stream(b"q 90 0 0 90 10 10 cm /A Do Q /Pattern cs /T scn 150 150 100 100 re f")
        pdf.save(path)


def test_engines_that_agree_have_exit_status_0_and_the_same_figures(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10, 20])
    picture_pdf(place / "b.pdf", [30])
    ended = command("compare", "pdf", "pypdf", "a.pdf", "b.pdf", "--json")
    assert ended.status == 0, ended.err
    body = json.loads(ended.out)
    assert (body["equal"], body["differences"]) == (True, [])
    assert [(row["engine"], row["documents"], row["receipts"]) for row in body["engines"]] == [
        ("pdf", 2, 3),
        ("pypdf", 2, 3),
    ]
    assert all(0 < row["decode_p50_ms"] <= row["decode_p95_ms"] for row in body["engines"])
    assert {path.name for path in place.iterdir() if not path.name.startswith(".")} == {"a.pdf", "b.pdf"}


def test_a_picture_that_one_engine_misses_is_listed_with_its_page(command: Callable, place: Path) -> None:
    pattern_pdf(place / "a.pdf")
    ended = command("compare", "pypdf", "pdf", "a.pdf", "--format", "csv")
    assert ended.status == 1, ended.err
    rows = list(csv.DictReader(io.StringIO(ended.out)))
    assert [(row["what"], row["engine"], row["page"], row["kind"]) for row in rows] == [
        ("only_one", "pdf", "1", "pattern")
    ]


def test_a_refused_document_counts_for_the_rejection_rate(command: Callable, place: Path) -> None:
    picture_pdf(place / "locked.pdf", [10], encrypted=True)
    picture_pdf(place / "open.pdf", [10])
    ended = command("compare", "pdf", "pypdf", "locked.pdf", "open.pdf", "--json")
    assert ended.status == 0, ended.err
    assert [row["rejection_rate"] for row in json.loads(ended.out)["engines"]] == [0.5, 0.5]


def test_a_failure_is_not_taken_for_a_difference(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10])
    (place / "broken.yaml").write_text("limits: 5\n")
    for words, complaint in (
        (("pdf", "pdf", "a.pdf"), "Both engines are 'pdf'"),
        (("pdf", "none", "a.pdf"), "no engine 'none'"),
        (("pdf", "pypdf", "missing.pdf"), "no file missing.pdf"),
        (("pdf", "pypdf", "a.pdf", "--policy", "broken.yaml"), "limits"),
    ):
        ended = command("compare", *words)
        assert (ended.status, ended.out) == (2, "")
        assert complaint in ended.err


def test_the_table_tells_both_engines_side_by_side(command: Callable, place: Path) -> None:
    picture_pdf(place / "a.pdf", [10])
    ended = command("compare", "pdf", "pypdf", "a.pdf")
    assert ended.status == 0, ended.err
    assert "rejection rate" in ended.out
    assert "pypdf" in ended.out
    assert "The engines agree." in ended.err
