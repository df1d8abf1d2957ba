"""Where the data of an inline picture ends (PDF 8.9.7): by its filter and size, not by looking for ``EI``.

Binary data may hold ``EI``. Each filter with an end of its own is followed to it, raw data is measured
by its geometry, and the result counts only when ``EI`` really follows. Where none of this helps, the
first ``EI`` behind which the content reads on as content is taken. Nothing is decoded into memory.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Sequence

from asset_pipeline.extraction.pdf.content import WHITE, ContentReader

_END = re.compile(rb"[" + WHITE + rb"]*+EI(?=[" + WHITE + rb"/<(\[%]|$|Q)")
_SOME_END = re.compile(rb"EI(?=[" + WHITE + rb"/<(\[%]|$)")
_BEFORE_END = (b"\0", b"\t", b"\n", b"\x0c", b"\r", b" ", b">")
_FURTHER = 4096
_PATIENCE = 8
_STEP = 1 << 14
_LOOK = 64

OPERATORS = frozenset(
    b"q Q cm w J j M d ri i gs m l c v y h re S s f F f* B B* b b* n W W* BT ET Tc Tw Tz TL Tf Tr Ts Td TD Tm T* "
    b"Tj TJ ' \" d0 d1 CS cs SC SCN sc scn G g RG rg K k sh BI Do MP DP BMC BDC EMC BX EX".split()
)


class EndFinder:
    """Finds the ends of inline pictures in one content stream.

    After a few pictures that are not what they say, filters are followed no more: each would be followed
    in vain to the end of the content, and a hostile page has a million of them.
    """

    def __init__(self) -> None:
        self._patience = _PATIENCE

    def find(self, data: bytes, after_id: int, first_filter: str | None, sizes: Sequence[int]) -> tuple[int, int, int]:
        """(start, end, position behind EI) of the picture's data. ``sizes`` are what its length may be.

        ``after_id`` is the position behind ``ID``; one white space belongs to it, two when they end a line.
        """
        one = after_id + (data[after_id : after_id + 1] in (b" ", b"\n", b"\r", b"\t", b"\0", b"\x0c"))
        starts = [one] if data[after_id : after_id + 2] != b"\r\n" else [one + 1, one]
        for start in starts:
            for end in self._ends(data, start, first_filter, sizes):
                match = _END.match(data, end)
                if match is not None:
                    return start, end, match.end()
        return _search(data, starts[0])

    def _ends(self, data: bytes, start: int, first_filter: str | None, sizes: Sequence[int]) -> Iterator[int]:
        yield from (start + size for size in sizes if start + size <= len(data))
        follow = _FOLLOW.get(first_filter or "")
        if follow is not None and self._patience > 0:
            self._patience -= 1
            end = follow(data, start)
            if end is not None:
                if _END.match(data, end) is not None:
                    self._patience += 1
                yield end


def _search(data: bytes, start: int) -> tuple[int, int, int]:
    """The first EI after white space behind which content reads on, else the first one glued to the data."""
    glued: int | None = None
    for match in _SOME_END.finditer(data, start):
        at = match.start()
        if glued is not None and at > glued + _FURTHER:
            break
        apart = data[at - 1 : at] in _BEFORE_END or data[at - 2 : at] == b"~>"
        if (apart or glued is None) and _reads_on(data, match.end()):
            if apart:
                return start, at - (at > start and data[at - 1 : at] in (b" ", b"\n", b"\r")), match.end()
            glued = at
    return (start, len(data), len(data)) if glued is None else (start, glued, glued + 2)


def _reads_on(data: bytes, at: int) -> bool:
    """Whether what follows looks like content: plain characters, and a known operator if one comes soon."""
    near = data[at : at + _LOOK]
    if any(byte > 126 or (byte < 32 and byte not in b"\0\t\n\x0c\r") for byte in near[:16]):
        return False
    whole = at + _LOOK >= len(data)
    for operator, _, _ in ContentReader(near if whole else near.rsplit(None, 1)[0] if near.split() else near):
        return operator in OPERATORS or operator == b"EI"
    return whole or not near.strip(b"\0\t\n\x0c\r ") or len(near.split()) > 1


def _end_of_flate(data: bytes, start: int) -> int | None:
    decoder = zlib.decompressobj()
    try:
        for at in range(start, len(data), _STEP):
            piece = data[at : at + _STEP]
            while piece and not decoder.eof:
                decoder.decompress(piece, _STEP)
                piece = decoder.unconsumed_tail
            if decoder.eof:
                return at + len(data[at : at + _STEP]) - len(decoder.unused_data)
    except zlib.error:
        return None
    return None


def _end_of_hex(data: bytes, start: int) -> int | None:
    end = data.find(b">", start)
    return None if end < 0 else end + 1


def _end_of_85(data: bytes, start: int) -> int | None:
    end = data.find(b"~>", start)
    return None if end < 0 else end + 2


def _end_of_runs(data: bytes, start: int) -> int | None:
    at = start
    while at < len(data):
        code = data[at]
        if code == 128:
            return at + 1
        at += code + 2 if code < 128 else 2
    return None


def _end_of_lzw(data: bytes, start: int) -> int | None:
    """Up to code 257. Codes are counted, not decoded: their width depends on nothing else."""
    held = count = 0
    width, table = 9, 258
    for at in range(start, len(data)):
        held = (held << 8) | data[at]
        count += 8
        if count < width:
            continue
        count -= width
        code = held >> count
        held &= (1 << count) - 1
        if code == 257:
            return at + 1
        if code == 256:
            width, table = 9, 257
            continue
        table = min(table + 1, 4096)
        if table + 1 >= 1 << width and width < 12:
            width += 1
    return None


def _end_of_jpeg(data: bytes, start: int) -> int | None:
    """Behind the end marker; markers inside segments (thumbnails) are stepped over."""
    at = start
    while (at := data.find(b"\xff", at)) >= 0 and at + 1 < len(data):
        marker = data[at + 1]
        if marker == 0xD9:
            return at + 2
        if marker in (0x00, 0x01, 0xD8, 0xFF) or 0xD0 <= marker <= 0xD7:
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))
    return None


_FOLLOW: dict[str, Callable[[bytes, int], int | None]] = {
    "FlateDecode": _end_of_flate,
    "ASCIIHexDecode": _end_of_hex,
    "ASCII85Decode": _end_of_85,
    "RunLengthDecode": _end_of_runs,
    "LZWDecode": _end_of_lzw,
    "DCTDecode": _end_of_jpeg,
}
