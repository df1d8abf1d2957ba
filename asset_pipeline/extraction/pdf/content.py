"""Reads a content stream: one instruction after the other, in bounded memory, to its very end.

A reader of our own, not pikepdf's: measured on 300,000 operators, one regular expression takes half the
time and nothing but the bytes (pikepdf keeps 470 bytes an operator, near a gigabyte at the default
limit), finds the exact end of inline data, and reads on behind damage as viewers do. Every pattern is
possessive, so no input makes it go back. What instructions mean belongs in ``walker``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pikepdf

Instruction = tuple[bytes, bytes, list[bytes]]

WHITE = rb"\x00\t\n\x0c\r "
_REGULAR = rb"[^" + WHITE + rb"()<>\[\]{}/%]"
_SKIP = rb"(?:[" + WHITE + rb"]++|%[^\r\n]*+)*+"
_STRING = rb"\((?:[^()\\]++|\\.)*+\)"
_HEX = rb"<[0-9A-Fa-f" + WHITE + rb"]*+>"
_SIMPLE = rb"[^()\[\]<>%]*+"

# At most so many numbers are tried before an operator, so that a run of numbers without one stays linear.
_NUMBERS = rb"(?:[-+.0-9]++[" + WHITE + rb"]++){%d,40}+"
# 1: numbers, 2: operator; 3: numbers without an operator, or an operand in one piece; 4: a closer look is needed.
_INSTRUCTION = re.compile(
    _SKIP
    + rb"(?:("
    + _NUMBERS % 0
    + rb")([A-Za-z'\"]"
    + _REGULAR
    + rb"*+)|("
    + _NUMBERS % 1
    + rb"|/"
    + _REGULAR
    + rb"*+|[-+.0-9]"
    + _REGULAR
    + rb"*+|\["
    + _SIMPLE
    + rb"(?:(?:"
    + _STRING
    + rb"|"
    + _HEX
    + rb")"
    + _SIMPLE
    + rb")*+\]|"
    + _STRING
    + rb"|"
    + _HEX
    + rb")|(.)|\Z)",  # the end matches too, or white space before it would be tried from each of its places
    re.DOTALL,
)
_TOKEN = re.compile(
    _SKIP + rb"(" + _STRING + rb"|" + _HEX + rb"|<<|>>|/" + _REGULAR + rb"*+|" + _REGULAR + rb"++|.)", re.DOTALL
)
_IN_STRING = re.compile(rb"[()]|\\.", re.DOTALL)
_WORDS = frozenset((b"true", b"false", b"null"))
_OPERANDS = 256
_MOST = 1e12


class ContentReader:
    """Instructions of one content stream: (operator, its numbers, its other operands), as written.

    Numbers directly before the operator come in one piece, everything else in a list that is valid until
    the next instruction. At ``BI`` the caller reads the picture from ``position`` and sets it behind it.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    def __iter__(self) -> Iterator[Instruction]:
        operands: list[bytes] = []
        resume: int | None = 0
        while resume is not None:
            begin, resume = resume, None
            for match in _INSTRUCTION.finditer(self.data, begin):
                kind = match.lastindex
                if kind == 2:
                    operator = match[2]
                    if operator in _WORDS:
                        operands += [match[1], operator] if match[1] else [operator]
                        continue
                    if operator == b"BI":
                        self.position = match.end()
                        yield operator, match[1], operands
                        operands.clear()
                        resume = max(self.position, match.end())
                        break
                    yield operator, match[1], operands
                    if operands:
                        operands.clear()
                elif kind == 3:
                    operands.append(match[3])
                    if len(operands) > _OPERANDS:
                        del operands[: _OPERANDS // 2]
                elif kind == 4:
                    end = _end_of_object(self.data, match.start(4))
                    operands.append(self.data[match.start(4) : end])
                    if end > match.end():
                        resume = end
                        break


def _end_of_object(data: bytes, start: int) -> int:
    """Where the string, array or dictionary at ``start`` ends; one character on for stray punctuation."""
    if data[start : start + 1] == b"(":
        return _end_of_string(data, start)
    if data[start : start + 1] != b"[" and data[start : start + 2] != b"<<":
        return start + 1
    depth, at = 0, start
    while (match := _TOKEN.match(data, at)) is not None:
        token, at = match[1], match.end()
        if token == b"(":
            at = _end_of_string(data, match.start(1))
        elif token in (b"[", b"<<"):
            depth += 1
        elif token in (b"]", b">>"):
            depth -= 1
            if depth <= 0:
                return at
    return len(data)


def _end_of_string(data: bytes, start: int) -> int:
    depth = 0
    for match in _IN_STRING.finditer(data, start):
        if match[0] == b"(":
            depth += 1
        elif match[0] == b")":
            depth -= 1
            if depth == 0:
                return match.end()
    return len(data)


def inline_entries(data: bytes, start: int) -> tuple[dict[bytes, bytes], int] | None:
    """The entries between BI and ID as written, and where ID ends; None when ID never comes.

    Taken one by one, so that a bad one loses only itself; of a key that comes twice the last one counts.
    """
    entries: dict[bytes, bytes] = {}
    key: bytes | None = None
    at = start
    while (match := _TOKEN.match(data, at)) is not None:
        token, begin, at = match[1], match.start(1), match.end()
        if token == b"ID":
            return entries, at
        if token in (b"BI", b"EI"):
            return None
        if token in (b"(", b"[", b"<<"):
            at = _end_of_object(data, begin)
        if key is None:
            key = token if token.startswith(b"/") else None
        else:
            entries[key] = data[begin:at]
            key = None
    return None


def floats(numbers: bytes) -> list[float]:
    """Numbers as written to floats; as viewers do, a number ends where it stops being one."""
    try:
        return [min(max(float(number), -_MOST), _MOST) for number in numbers.split()]
    except ValueError:
        return [_lenient(number) for number in numbers.replace(b"\0", b" ").split()]


_LEADING = re.compile(rb"([-+]*)(\d*\.?\d*)")


def _lenient(number: bytes) -> float:
    match = _LEADING.match(number)
    if match is None or match[2] in (b"", b"."):
        return 0.0
    size = min(float(match[2]), _MOST)
    return -size if match[1].startswith(b"-") else size


def last_name(operands: list[bytes]) -> bytes | None:
    """The last operand when it is a name, as written."""
    return operands[-1] if operands and operands[-1].startswith(b"/") else None


def resource_name(numbers: bytes, operands: list[bytes]) -> bytes | None:
    """What names a resource right before the operator, as written; a string does as well, as in PDFium."""
    if numbers or not operands:
        return None
    written = operands[-1]
    if written[:1] in (b"(", b"<") and written[:2] != b"<<":
        text = parse_object(written)
        if isinstance(text, pikepdf.String):
            return b"/" + b"".join(b"#%02x" % byte for byte in bytes(text))
    return last_name(operands)


def parse_object(written: bytes) -> pikepdf.Object | None:
    """A dictionary, array or name as written in a content stream; None when it is not sound."""
    try:
        return pikepdf.Object.parse(written)
    except (pikepdf.PikepdfError, ValueError, TypeError):
        return None
