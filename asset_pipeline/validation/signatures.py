"""What bytes are, by their first bytes: the declared filter or type is compared with this, never trusted.

Knows only what can turn up in or behind a picture. Used for the stream under a filter and for data
that hides behind the end of a picture.
"""

from __future__ import annotations

JPEG = "image/jpeg"
JP2 = "image/jp2"
J2K = "image/j2c"

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\xff\xd8\xff", JPEG),
    (b"\x00\x00\x00\x0cjP  \r\n\x87\n", JP2),
    (b"\xff\x4f\xff\x51", J2K),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"\x97JB2\r\n\x1a\n", "image/x-jbig2"),
    (b"II+\x00", "image/tiff"),
    (b"MM\x00+", "image/tiff"),
    (b"8BPS", "image/vnd.adobe.photoshop"),
    (b"\xd7\xcd\xc6\x9a", "image/wmf"),
    (b"%PDF-", "application/pdf"),
    (b"%!PS", "application/postscript"),
    (b"PK\x03\x04", "application/zip"),
    (b"PK\x05\x06", "application/zip"),
    (b"Rar!\x1a\x07", "application/vnd.rar"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ\x90\x00", "application/x-dosexec"),
)
_MARKUP = (b"<!doctype html", b"<html", b"<script", b"<?xml", b"<svg", b"<?php")


def sniff(head: bytes) -> str | None:
    """Media type of data that begins with ``head`` (64 bytes are enough), or None when unknown."""
    for magic, media_type in _SIGNATURES:
        if head.startswith(magic):
            return media_type
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:2] == b"BM" and head[6:10] == b"\x00\x00\x00\x00" and len(head) >= 14:
        return "image/bmp"
    if head[:4] == b"\x01\x00\x00\x00" and head[40:44] == b" EMF":
        return "image/emf"
    if head[:6] in (b"\x01\x00\x09\x00\x00\x03", b"\x01\x00\x09\x00\x00\x01"):
        return "image/wmf"
    start = head[:64].lstrip(b"\xef\xbb\xbf \t\r\n\x00").lower()
    if start.startswith(_MARKUP):
        return "image/svg+xml" if b"<svg" in start else "text/html"
    return None


def hides_a_file(tail: bytes) -> bool:
    """Whether bytes behind the end of a picture are a file of another type (a polyglot).

    Padding, thumbnails and secondary JPEG frames behind the end are common and harmless: no viewer
    reads them. An archive, a program or markup there makes one file into two.
    """
    kind = sniff(tail.lstrip(b"\x00\r\n\t ")[:64])
    return kind is not None and not kind.startswith("image/")
