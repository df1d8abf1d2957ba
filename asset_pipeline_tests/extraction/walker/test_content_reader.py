"""The reader of content streams: it sees what qpdf sees, loses nothing behind damage, and stays linear."""

from __future__ import annotations

import time

import pikepdf
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asset_pipeline.extraction.pdf.content import ContentReader, floats, parse_object

_OPERAND = st.sampled_from(
    ["1", "-.5", "+3.", "0.25", "/A", "/A#20B", "(a)", "(a(b)c)", "(a\\)b)", "(% no comment)", "<0aF >", "[1(a)<00>2]",
     "[[1] 2]", "<</K[/V]/L<</M 1>>>>", "true", "null", "(BI ID EI)"]
)  # fmt: skip
_OPERATOR = st.sampled_from(["q", "Q", "cm", "re", "W*", "f*", "Do", "'", "TJ", "BDC", "scn", "d0"])
_SPACE = st.sampled_from([" ", "\n", "\r\n", "\t", "\0", " % comment ( [ <<\n"])
_STEP = st.tuples(st.lists(_OPERAND, max_size=6), _OPERATOR, _SPACE)


def _ours(data: bytes) -> list[tuple[bytes, int]]:
    seen = []
    for operator, numbers, operands in ContentReader(data):
        count = len(numbers.replace(b"\0", b" ").split())
        for operand in operands:
            count += len(floats(operand)) if operand[:1] in b"+-.0123456789" else parse_object(operand) is not operands
        seen.append((operator, count))
    return seen


@settings(max_examples=150, deadline=None)
@given(st.lists(_STEP, min_size=1, max_size=12))
def test_instructions_are_those_that_qpdf_reads(steps: list[tuple[list[str], str, str]]) -> None:
    data = "".join(space.join([*operands, operator]) + space for operands, operator, space in steps).encode()
    with pikepdf.new() as pdf:
        theirs = [
            (step.operator.unparse(), len(step.operands))
            for step in pikepdf.parse_content_stream(pikepdf.Stream(pdf, data))
        ]
    assert _ours(data) == theirs


@pytest.mark.parametrize(
    "damage", [b")", b">>", b"]", b"}{", b"\xff\xfe", b"<zz>", b"12x34", b"[ m0 ) 5 ]", b"1 2 3 /X", b"% line\r"]
)
def test_damage_between_instructions_costs_at_most_the_next_one(damage: bytes) -> None:
    read = [operator for operator, _, _ in ContentReader(b"q\n" + damage + b" n\nQ /A Do")]
    assert read[0] == b"q"
    assert read[-2:] == [b"Q", b"Do"]


def test_numbers_without_white_space_before_a_name_belong_to_the_operator() -> None:
    assert [(a, b, list(c)) for a, b, c in ContentReader(b"1 0 0 1 5 5 cm/A Do/B gs[1 2]0 d")] == [
        (b"cm", b"1 0 0 1 5 5 ", []),
        (b"Do", b"", [b"/A"]),
        (b"gs", b"", [b"/B"]),
        (b"d", b"0 ", [b"[1 2]"]),
    ]


@pytest.mark.parametrize(
    ("written", "expected"),
    [(b"1 -2 .5", [1, -2, 0.5]), (b"--5 +-3", [-5, 0]), (b"5-3 1.2.3", [5, 1.2]), (b"- . 1", [0, 0, 1]),
     (b"9" * 400, [1e12]), (b"1\0 2", [1, 2])],
)  # fmt: skip
def test_numbers_end_where_they_stop_being_numbers(written: bytes, expected: list[float]) -> None:
    read = floats(written)
    assert len(read) == len(expected)
    assert all(abs(one - other) < 1e-9 or other == 0 for one, other in zip(read, expected, strict=True))


@pytest.mark.parametrize(
    "unit", [b"1 ", b"[", b"(", b"(a ", b"<0 ", b"<<", b"/A ", b"%", b" ", b"[(a)", b"1 1 m ", b"\\", b"[<0 "]
)
def test_no_input_makes_reading_take_more_than_linear_time(unit: bytes) -> None:
    began = time.process_time()
    for _ in ContentReader(unit * (400_000 // len(unit))):
        pass
    assert time.process_time() - began < 5
