"""Bounded decoders of the lossless filters: no output grows past ``most`` bytes, whatever the data says.

``zlib`` is bounded by its own ``max_length``; the others stop themselves. Each returns what came out and
whether the data ended soundly, so that the caller can tell *short* from *long enough with a bad tail*:
a Flate stream with a wrong checksum behind all its rows is common and harmless. pikepdf's and pypdf's
decoders are not used, because neither is bounded for every filter.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Callable
from typing import NamedTuple

from asset_pipeline.errors import Refusal
from asset_pipeline.reasons import Reason

_CHUNK = 1 << 16
_DENSEST = 1_032
"""Bytes that one byte of Flate data can stand for at most."""
_WHITE = re.compile(rb"[\0\t\n\x0c\r ]+")


class Expanded(NamedTuple):
    """Output of one filter. ``fault`` says why it ended early, None when the data ended as it should.

    ``clean`` is true when a Flate stream ended with a right checksum and nothing behind it, ``surplus`` when
    it holds more than was asked for.
    """

    data: bytes
    fault: Reason | None = None
    clean: bool = False
    surplus: bool = False


def inflate(data: bytes, most: int) -> Expanded:
    """Flate, at most ``most`` bytes. After a fault the bytes before it are kept, for the caller to judge."""
    decoder = zlib.decompressobj()
    try:
        out = decoder.decompress(data, most)
    except zlib.error:
        return _inflate_until_fault(data, most)
    if len(out) < most:
        return Expanded(out, None if decoder.eof else Reason.TRUNCATED_STREAM, decoder.eof and not decoder.unused_data)
    try:  # all is there: whether the end is sound as well only decides if the data may be wrapped
        surplus = not decoder.eof and bool(decoder.decompress(decoder.unconsumed_tail, 1))
    except zlib.error:
        return Expanded(out)
    return Expanded(out, None, not surplus and decoder.eof and not decoder.unused_data, surplus)


def inflates_beyond(data: bytes, most: int) -> bool:
    """Whether Flate data expands past ``most`` bytes. Keeps nothing: asked before memory is taken for it."""
    if len(data) * _DENSEST <= most:
        return False
    decoder, size, step = zlib.decompressobj(), 0, _CHUNK // 16
    try:
        for at in range(0, len(data), step):
            size += len(decoder.decompress(data[at : at + step]))
            if size > most or decoder.eof:
                break
    except zlib.error:
        return False  # what came out before the fault fits
    return size > most


def _inflate_until_fault(data: bytes, most: int) -> Expanded:
    """As ``inflate`` in steps, so that what came out before the fault is not lost with it."""
    decoder = zlib.decompressobj()
    out = bytearray()
    at, step = 0, _CHUNK
    while at < len(data) and len(out) < most and not decoder.eof:
        before = decoder.copy()
        try:
            part = decoder.decompress(data[at : at + step], most - len(out))
        except zlib.error:
            if step == 1:
                break
            decoder, step = before, 1  # the fault is in this chunk: byte by byte up to it
            continue
        out += part
        at += step
    return Expanded(bytes(out), Reason.MALFORMED_STREAM if len(out) < most else None)


def expand_hex(data: bytes, most: int) -> Expanded:
    """ASCIIHex up to ``>``; an odd last digit counts as followed by 0."""
    body, marker, _ = data.partition(b">")
    body = _WHITE.sub(b"", body)
    if len(body) % 2:
        body += b"0"
    try:
        return Expanded(bytes.fromhex(body.decode("ascii"))[:most], None if marker else Reason.TRUNCATED_STREAM)
    except ValueError:
        raise Refusal(Reason.MALFORMED_STREAM, "hex") from None


def expand_85(data: bytes, most: int) -> Expanded:
    """ASCII85 up to ``~>`` (``~`` alone is accepted), with or without the leading ``<~``."""
    body, marker, _ = data.partition(b"~")
    body = _WHITE.sub(b"", body)
    if not marker and data.lstrip()[:2] == b"<~":
        body = b""
    if body == b"<":  # the partition met the leading <~
        body, marker, _ = data.lstrip()[2:].partition(b"~")
        body = _WHITE.sub(b"", body)
    try:
        return Expanded(base64.a85decode(body)[:most], None if marker else Reason.TRUNCATED_STREAM)
    except ValueError:
        raise Refusal(Reason.MALFORMED_STREAM, "base 85") from None


def expand_runs(data: bytes, most: int) -> Expanded:
    """RunLength up to code 128; a missing end is forgiven when nothing is cut."""
    out = bytearray()
    at, end = 0, len(data)
    while at < end and len(out) < most:
        code = data[at]
        at += 1
        if code == 128:
            return Expanded(bytes(out[:most]))
        if code < 128:
            literal = data[at : at + code + 1]
            out += literal
            if len(literal) <= code:
                return Expanded(bytes(out[:most]), Reason.TRUNCATED_STREAM)
            at += code + 1
        elif at < end:
            out += data[at : at + 1] * (257 - code)
            at += 1
        else:
            return Expanded(bytes(out[:most]), Reason.TRUNCATED_STREAM)
    return Expanded(bytes(out[:most]))


def expand_lzw(data: bytes, most: int, early: int = 1) -> Expanded:
    """LZW (9 to 12 bits, most significant bit first), ``early`` as in /EarlyChange."""
    fresh = [bytes((value,)) for value in range(256)] + [b"", b""]
    table = list(fresh)
    out: list[bytes] = []
    size = held = count = 0
    width = 9
    last = b""
    for byte in data:
        held = (held << 8) | byte
        count += 8
        if count < width:
            continue
        count -= width
        code = held >> count
        held &= (1 << count) - 1
        if code == 256:
            table, width, last = list(fresh), 9, b""
            continue
        if code == 257:
            return Expanded(b"".join(out)[:most])
        if code < len(table):
            entry = table[code]
        elif code == len(table) and last:
            entry = last + last[:1]
        else:
            return Expanded(b"".join(out)[:most], Reason.MALFORMED_STREAM)
        out.append(entry)
        size += len(entry)
        if size >= most:
            return Expanded(b"".join(out)[:most])
        if last and len(table) < 4096:
            table.append(last + entry[:1])
        last = entry
        if len(table) + early >= 1 << width and width < 12:
            width += 1
    return Expanded(b"".join(out)[:most], Reason.TRUNCATED_STREAM)


EXPANDERS: dict[str, Callable[[bytes, int], Expanded]] = {
    "FlateDecode": inflate,
    "ASCIIHexDecode": expand_hex,
    "ASCII85Decode": expand_85,
    "RunLengthDecode": expand_runs,
}
