"""Documents with damage that nobody thought of: a result every time, a pool that works on, no word in a log.

It begins with the same documents every time and goes on for 30 s. ``ASSET_PIPELINE_FUZZ_SECONDS`` is how long it goes
on over documents of that moment; `make fuzz` goes on for ten minutes. What it finds is written to the folder that the
failure names, and becomes a fixture of the room that mends it.
"""

from __future__ import annotations

import io
import logging
import os
import re
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

import asset_pipeline
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.policy import Limits, Policy
from asset_pipeline.reasons import Reason

pytestmark = pytest.mark.usefixtures("started_zygotes")

LONG = "ASSET_PIPELINE_FUZZ_SECONDS" in os.environ
SECONDS = float(os.environ.get("ASSET_PIPELINE_FUZZ_SECONDS", "30"))
FIXTURES = Path(__file__).parents[2] / "fixtures" / "inbox"
LARGEST = 400_000
SIGNATURE = 16
POLICY = Policy(limits=Limits(document_seconds=20))

_NUMBER = re.compile(rb"\d+")
_STREAM = re.compile(rb"stream\r?\n(.{8,}?)\r?\nendstream", re.DOTALL)
_NASTY = (
    *(b"0", b"-1", b"65536", b"4294967295", b"2147483648", b"99999999999999999999", b"1e400", b"null", b"[", b"<<"),
    *(b"/\x00", b"R"),
)


def _seeds() -> list[bytes]:
    """The small ones of the fixtures: PDF and office files."""
    found = sorted((path.read_bytes() for path in FIXTURES.rglob("*") if path.is_file()), key=len)
    return [content for content in found if len(content) <= LARGEST]


def _flip(content: bytearray, at: int, value: int) -> None:
    content[at % len(content)] = value % 256


def _cut(content: bytearray, at: int, value: int) -> None:
    at %= len(content)
    del content[at : at + value % 4096]


def _repeat(content: bytearray, at: int, value: int) -> None:
    at %= len(content)
    content[at:at] = content[at : at + value % 4096]


def _renumber(content: bytearray, at: int, value: int) -> None:
    """Another number, or something else altogether, where a number stands."""
    number = _NUMBER.search(content, at % len(content))
    if number:
        content[number.start() : number.end()] = _NASTY[value % len(_NASTY)]


def _damage_inside(content: bytearray, at: int, value: int) -> None:
    """Damage what a Flate stream holds, and pack it again, so that it is met behind the first check."""
    stream = _STREAM.search(content, at % len(content)) or _STREAM.search(content)
    if stream is None:
        return
    try:
        inside = bytearray(zlib.decompress(stream[1]))
    except zlib.error:
        return
    if inside:
        _renumber(inside, value, value)
        _flip(inside, value * 7919, value)
        content[stream.start(1) : stream.end(1)] = zlib.compress(bytes(inside), 1)


def _splice(content: bytearray, at: int, value: int) -> None:
    """A piece of the document somewhere else in it."""
    piece = content[at % len(content) :][: value % 2048]
    into = (at * 31 + value) % len(content)
    content[into : into + len(piece)] = piece


Mutation = Callable[[bytearray, int, int], None]
Damage = tuple[Mutation, int, int]
FAULTS = {Reason.INTERNAL_ERROR, Reason.DECODER_CRASHED, Reason.MEMORY_EXCEEDED, Reason.DEADLINE_EXCEEDED}
"""What no document of this size may end in, however damaged."""

MUTATIONS: tuple[Mutation, ...] = (
    *(_flip, _cut, _repeat, _renumber, _renumber, _damage_inside, _damage_inside, _splice),
)
steps = st.lists(
    st.tuples(st.sampled_from(MUTATIONS), st.integers(0, 10**7), st.integers(0, 10**5)), min_size=1, max_size=12
)


def _damaged(original: bytes, damage: list[Damage]) -> bytes:
    """``original`` after all steps; of a package, one part after all steps, packed again."""
    if not original.startswith(b"PK"):
        return _apply(original, damage)
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(original)) as source, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as made:
        names = source.namelist()
        hit = names[damage[0][1] % len(names)]
        for name in names:
            content = source.read(name)
            made.writestr(name, _apply(content, damage) if name == hit else content)
    return packed.getvalue()


def _apply(original: bytes, damage: list[Damage]) -> bytes:
    """All but the signature, behind which no decoder would ever be met."""
    content = bytearray(original[SIGNATURE:])
    for mutate, at, value in damage:
        if content:
            mutate(content, at, value)
    return original[:SIGNATURE] + bytes(content)


@pytest.mark.timeout(SECONDS * 4 + 300)
def test_mutated_documents_never_harm_whoever_reads_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, record_property: Callable[[str, object], None]
) -> None:
    originals = _seeds()
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + SECONDS
    findings = tmp_path / "findings"
    findings.mkdir()

    with DecoderPool(1, POLICY) as pool, caplog.at_level(logging.ERROR):
        zygote = pool.cage

        @settings(
            max_examples=10,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.sampled_from(range(len(originals))), steps, st.sampled_from(["pdf", "pypdf"]))
        def read(number: int, damage: list[Damage], engine: str) -> None:
            content = _damaged(originals[number], damage)
            suffix = ".docx" if content[:2] == b"PK" else ".pdf"
            document = tmp_path / f"document{suffix}"
            document.write_bytes(content)
            caplog.clear()
            extraction = asset_pipeline.extract(document, tmp_path / "out", engine=engine, workers=1, pool=pool)
            outcomes[str(extraction.outcome)] += 1
            reasons = {extraction.outcome, *(page.reason for page in extraction.pages)}
            reasons |= {row.reason for page in extraction.pages for row in page.placements}
            if reasons & FAULTS:
                place = findings / f"{sum(outcomes.values())}-{engine}{suffix}"
                place.write_bytes(content)
                place.with_suffix(".txt").write_text(f"{sorted(map(str, reasons - {None}))}\n{caplog.text}")
            for file in (tmp_path / "out").iterdir():
                file.unlink()

        batch = int(time.time()) if LONG else 0  # a change is judged by the same documents every time
        while time.monotonic() < until:
            batch += 1
            seed(batch)(read)()
        assert pool.cage == zygote
        assert asset_pipeline.extract(_whole(originals, tmp_path), tmp_path / "out", pool=pool).outcome == "ok"

    record_property("fuzz", f"{outcomes.total()} documents in {SECONDS:.0f} s: {dict(outcomes.most_common())}")
    assert outcomes.total() > 0
    found = sorted(path.read_text() for path in findings.glob("*.txt"))
    assert not found, f"{len(found)} findings in {findings}:\n" + "\n".join(found[:5])


def _whole(originals: list[bytes], folder: Path) -> Path:
    document = folder / "whole.pdf"
    document.write_bytes(next(content for content in originals if content.startswith(b"%PDF-")))
    return document
