"""The content of pages, forms and patterns as bytes, expanded within bounds (REQUIREMENTS R5.3).

A content stream may expand without end; nothing is handed to a reader before its size is known. What
comes out before a fault is kept, as viewers keep it, and the fault is told.
"""

from __future__ import annotations

import zlib
from typing import Any

import pikepdf

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.pdf.expand import Expanded
from asset_pipeline.extraction.pdf.streams import Stored, expand_last, is_empty, open_stream
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason

_FLUSHED = b"\x00\x00\xff\xff"


def expand_content(content: Any, most: int, limits: Limits) -> tuple[bytes, Reason | None]:
    """Bytes of a content stream, or of an array of them joined by line ends, and why something is missing.

    Raises Refusal(CONTENT_BUDGET_EXCEEDED) when they are more than ``most``.
    """
    streams = list(content) if isinstance(content, pikepdf.Array) else [content]
    parts: list[bytes] = []
    fault: Reason | None = None
    for stream in streams:
        if not isinstance(stream, pikepdf.Stream):
            continue  # null or missing: viewers go on
        part, missing = _expand(stream, most, limits)
        most -= len(part) + 1
        fault = fault or missing
        parts.append(part)
    return b"\n".join(parts), fault


def _expand(stream: pikepdf.Stream, most: int, limits: Limits) -> tuple[bytes, Reason | None]:
    most = max(most, 0)
    bounds = limits.model_copy(update={"encoded_bytes": max(most, 1), "expanded_bytes": max(most, 1)})
    try:
        stored = open_stream(stream, bounds)
        if stored.codec is not None:
            return b"", Reason.MALFORMED_STREAM
        predicted = stored.predictor
        size = most + 1 if predicted is None else predicted.stored_size(most) + predicted.stored_size(1)
        out = expand_last(stored, size)
        data = out.data if predicted is None else predicted.undo(out.data)
    except Refusal as refusal:
        if refusal.reason in (Reason.PAYLOAD_TOO_LARGE, Reason.EXPANDED_SIZE_EXCEEDED):
            raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED) from None
        return b"", None if is_empty(stream) else refusal.reason
    if len(data) > most:
        raise Refusal(Reason.CONTENT_BUDGET_EXCEEDED)
    return data, None if out.fault is None or _is_whole(stored, out) else out.fault


def _is_whole(stored: Stored, out: Expanded) -> bool:
    """Whether Flate data is all there and only lacks its end or checksum, as some producers leave it."""
    if stored.last is None or stored.last.name != "FlateDecode":
        return False
    if out.fault is Reason.TRUNCATED_STREAM and stored.data.rstrip(b"\r\n").endswith(_FLUSHED):
        return True
    decoder = zlib.decompressobj(-15)
    try:
        decoder.decompress(stored.data[2:], len(out.data) + 1)
    except zlib.error:
        return False
    return decoder.eof
