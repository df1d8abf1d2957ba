"""The ZIP package of an office document: its parts, their types, their relationships.

Opened without trust: counts and sizes come from the end record before the directory is read, no name may
leave the package or appear twice, no two parts may share bytes, nothing is written to disk. A part is
read whole, at most as long as it says it is. External targets are told as such and never fetched;
packages inside packages are never opened.
"""

from __future__ import annotations

import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from asset_pipeline.errors import Refusal
from asset_pipeline.extraction.ooxml.markup import read_markup
from asset_pipeline.policy import Limits
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.packages import CONTENT_TYPES, read_end_record

_ENCRYPTED = 0x1
_HEADER = 30
_SMALL = 64 * 1024 * 1024
_LONGEST_ENTRY = 400
"""Bytes that one part may take in the directory, its name included, on the average."""

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, NotImplementedError, OSError)


@dataclass(frozen=True, slots=True)
class Relation:
    """One relationship. ``kind`` is the last word of its type; ``target`` is a part, or None where it is outside."""

    kind: str
    target: str | None

    @property
    def external(self) -> bool:
        """Whether what it names lies outside the package."""
        return self.target is None


@dataclass(slots=True)
class Package:
    """An open package. Part names are absolute, without the leading slash, as written in the package."""

    limits: Limits
    _file: zipfile.ZipFile
    _parts: dict[str, zipfile.ZipInfo]
    _defaults: dict[str, str] = field(default_factory=dict)
    _overrides: dict[str, str] = field(default_factory=dict)
    _relations: dict[str, dict[str, Relation]] = field(default_factory=dict)

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._parts

    def read(self, name: str, most: int, reason: Reason) -> bytes:
        """All bytes of a part. Raises Refusal: ``reason`` where they are more than ``most``, or why they do not come.

        ``truncated_stream`` where the part is missing or short, ``malformed_stream`` where it does not expand.
        """
        info = self._parts.get(name.lower())
        if info is None:
            raise Refusal(Reason.TRUNCATED_STREAM, "no such part")
        if info.file_size > most:
            raise Refusal(reason)
        try:
            with self._file.open(info) as stream:
                data = stream.read()  # never more than the directory says; the checksum is compared at the end
        except EOFError:
            raise Refusal(Reason.TRUNCATED_STREAM) from None
        except _BROKEN:
            raise Refusal(Reason.MALFORMED_STREAM) from None
        if len(data) != info.file_size:
            raise Refusal(Reason.TRUNCATED_STREAM)
        return data

    def markup(self, name: str, *, skip: frozenset[str] = frozenset(), unless: str | None = None) -> Element:
        """The root element of an XML part (see ``read_markup``). Raises Refusal: ``malformed_document`` without one."""
        try:
            data = self.read(name, self.limits.content_bytes, Reason.CONTENT_BUDGET_EXCEEDED)
        except Refusal as refusal:
            unsound = refusal.reason is not Reason.CONTENT_BUDGET_EXCEEDED
            raise Refusal(Reason.MALFORMED_DOCUMENT if unsound else refusal.reason) from None
        return read_markup(data, self.limits, skip=skip, unless=unless)

    def content_type(self, name: str) -> str | None:
        """The type that the package gives a part, None where it gives none."""
        extension = name.rpartition(".")[2].lower() if "." in name else ""
        return self._overrides.get(name.lower()) or self._defaults.get(extension)

    def relations(self, name: str) -> dict[str, Relation]:
        """Relationships of a part by id; of the package itself for the empty name."""
        if name not in self._relations:
            self._relations[name] = self._read_relations(name)
        return self._relations[name]

    def part_of(self, name: str, id_: str | None) -> str | None:
        """The part that relationship ``id_`` of part ``name`` names; None where there is none in the package."""
        relation = self.relations(name).get(id_ or "")
        return relation.target if relation else None

    def parts_of(self, name: str, kind: str) -> list[str]:
        """The parts that part ``name`` relates to as ``kind``, in the order of their ids in the file."""
        return [row.target for row in self.relations(name).values() if row.kind == kind and row.target]

    def _read_relations(self, name: str) -> dict[str, Relation]:
        folder, _, file = name.rpartition("/")
        source = f"{folder}/_rels/{file}.rels" if folder else f"_rels/{file}.rels"
        if source not in self:
            return {}
        found: dict[str, Relation] = {}
        for row in self.markup(source):
            outside = row.get("TargetMode", "").lower() == "external"
            target = None if outside else _resolve(folder, row.get("Target", ""))
            found.setdefault(row.get("Id", ""), Relation(row.get("Type", "").rpartition("/")[2], target))
        return found

    def _read_types(self) -> None:
        for row in self.markup(CONTENT_TYPES.decode()):
            if row.tag == "Default":
                self._defaults.setdefault(row.get("Extension", "").lower(), row.get("ContentType", ""))
            elif row.tag == "Override":
                self._overrides.setdefault(row.get("PartName", "").lstrip("/").lower(), row.get("ContentType", ""))


@contextmanager
def open_package(path: Path, limits: Limits) -> Iterator[Package]:
    """The package at ``path``. Raises Refusal with the reason of the document."""
    with path.open("rb") as file:
        _check_end(file, limits)
        try:
            archive = zipfile.ZipFile(file)
        except _BROKEN:
            raise Refusal(Reason.MALFORMED_DOCUMENT, "directory") from None
        with archive:
            size = file.seek(0, 2)
            package = Package(limits, archive, _check_entries(archive, size, limits))
            package._read_types()
            yield package


def _check_end(file: BinaryIO, limits: Limits) -> None:
    """The directory is there and not larger than it may be, before anything of it is read."""
    end = read_end_record(file)
    if end is None:
        raise Refusal(Reason.TRUNCATED_DOCUMENT)
    if end.entries > limits.package_parts or end.bytes > limits.package_parts * _LONGEST_ENTRY:
        raise Refusal(Reason.OBJECT_BUDGET_EXCEEDED)


def _check_entries(archive: zipfile.ZipFile, size: int, limits: Limits) -> dict[str, zipfile.ZipInfo]:
    """Parts by name in small letters, folders left out. Raises Refusal for a directory that lies."""
    infos = archive.infolist()
    if len(infos) > limits.package_parts:
        raise Refusal(Reason.OBJECT_BUDGET_EXCEEDED)
    expanded = sum(info.file_size for info in infos)
    if expanded > limits.package_bytes or expanded > max(_SMALL, limits.package_ratio * size):
        raise Refusal(Reason.EXPANDED_SIZE_EXCEEDED)
    if any(info.flag_bits & _ENCRYPTED for info in infos):
        raise Refusal(Reason.ENCRYPTED)
    parts: dict[str, zipfile.ZipInfo] = {}
    end = 0
    for info in sorted(infos, key=lambda row: row.header_offset):
        name = info.orig_filename
        if info.header_offset < end or info.compress_type not in _METHODS or not _stays_inside(name):
            raise Refusal(Reason.MALFORMED_DOCUMENT, "entry")
        end = info.header_offset + _HEADER + len(name) + info.compress_size
        if name.endswith("/"):
            continue
        if name.lower() in parts:
            raise Refusal(Reason.MALFORMED_DOCUMENT, "a name twice")
        parts[name.lower()] = info
    if end > archive.start_dir:
        raise Refusal(Reason.MALFORMED_DOCUMENT, "entries overlap")
    return parts


def _stays_inside(name: str) -> bool:
    """Whether a name is one of a part: relative, without steps up, drives or control characters."""
    steps = name.rstrip("/").split("/")
    return name.isprintable() and "\\" not in name and ":" not in name and not {"", ".", ".."} & set(steps)


def _resolve(folder: str, target: str) -> str | None:
    """Part that ``target`` names, seen from ``folder``; None for what leaves the package."""
    path = unquote(target.partition("#")[0])
    joined = path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path)
    plain = posixpath.normpath(joined) if joined else ""
    return None if not plain or plain.startswith("../") or plain in (".", "..") else plain
