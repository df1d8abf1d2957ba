"""The answer of a decoder process: written in there, believed here only after every check.

The answer is one JSON file beside the picture files in the request's folder. It is read when the
decoder's whole process group is dead, from the folder's descriptor: a symbolic link to a key file
must not be published as a picture. Size, depth, keys, types, page numbers, digests: whatever does not
fit makes the decoder lost (``DecoderLost``), never the caller fail. What the fields may say: ``claims``.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from typing import Any

from pydantic import TypeAdapter, ValidationError

from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.sandbox import claims
from asset_pipeline.extraction.sandbox.lost import DecoderLost, EngineFailed
from asset_pipeline.extraction.withheld import most_bytes
from asset_pipeline.extraction.written import write_file
from asset_pipeline.model import Extraction, Source, Status, Withheld
from asset_pipeline.reasons import Reason

ANSWER_FILE = "answer.json"
# Bounds of this protocol, not of documents: an honest answer of 5,000 pages has about 5 MB and depth 6.
ANSWER_BYTES = 64 * 1024 * 1024
ANSWER_DEPTH = 16
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Most pictures fit in: each of them waits once for other threads to let go of the interpreter, not once a piece.
_BUFFER_BYTES = 1024 * 1024
_INSPECTION: TypeAdapter[Inspection] = TypeAdapter(Inspection)


def write_answer(
    out: Path,
    *,
    inspection: Inspection | None = None,
    extraction: Extraction | None = None,
    failure: str | None = None,
    file_too_large: bool = False,
) -> None:
    """Leave one answer in ``out``. An answer beyond the bound becomes a refusal of the document.

    ``failure`` is where an engine failed; ``file_too_large`` says that it was the limit of a file.
    """
    if extraction is not None:
        withheld = [row.model_dump(mode="json") for row in extraction.withheld]
        body: dict[str, Any] = {"extraction": extraction.model_dump(mode="json") | {"withheld": withheld}}
    elif inspection is not None:
        body = {"inspection": _INSPECTION.dump_python(inspection, mode="json")}
    else:
        body = {"file_too_large" if file_too_large else "failure": failure}
    encoded = json.dumps(body, separators=(",", ":"), allow_nan=False).encode()
    if len(encoded) > ANSWER_BYTES and extraction is not None:
        refused = {"outcome": Reason.PLACEMENT_BUDGET_EXCEEDED, "pages": [], "pictures": [], "withheld": []}
        return write_answer(out, extraction=extraction.model_copy(update=refused))
    write_file(out / ANSWER_FILE, encoded, anew=True)
    return None


def read_inspection(request: Request) -> Inspection:
    """The inspection in ``request.out``, checked. Leaves the folder empty."""
    with _folder(request.out) as folder:
        body = _read_body(folder)
        try:
            inspection = _INSPECTION.validate_python(body.get("inspection"))
        except ValidationError:
            raise _unbelievable("the inspection does not fit its shape") from None
        _check_source(inspection.source, request)
        _prune(folder, keep=set())
        return inspection


def read_extraction(request: Request) -> Extraction:
    """The extraction in ``request.out``, checked with all its files. Leaves only the files it names."""
    with _folder(request.out) as folder:
        body = _read_body(folder)
        try:
            extraction = Extraction.model_validate(body.get("extraction"))
        except ValidationError:
            raise _unbelievable("the extraction does not fit its shape") from None
        _check_rows(extraction, request)
        unbelievable = claims.why_unbelievable(extraction)
        if unbelievable:
            raise _unbelievable(unbelievable)
        named = {picture.file: (picture.sha256, picture.bytes) for picture in extraction.pictures}
        named |= {Withheld.file_of(row.sha256): (row.sha256, row.bytes) for row in extraction.withheld}
        buffer = bytearray(_BUFFER_BYTES)
        for file, (sha256, size) in named.items():
            _require(_digest(folder, file, size, buffer) == sha256, "a file differs from its digest")
        _prune(folder, keep=set(named))
        claims.make_plain(extraction)
        return extraction


def _check_rows(extraction: Extraction, request: Request) -> None:
    source = extraction.source
    _check_source(source, request)
    pages = [page.page for page in extraction.pages]
    last = request.last or source.pages or 0
    _require(pages == sorted(set(pages)), "a page appears twice or out of order")
    _require(all(request.first <= page <= last for page in pages), "a page was not asked for")
    known = Counter(picture.sha256 for picture in extraction.pictures)
    _require(not known or max(known.values()) == 1, "a picture appears twice")
    for page in extraction.pages:
        for row in page.placements:
            _require(all(digest in known for digest in (row.picture, row.display) if digest), "a picture has no file")
    _check_withheld(extraction, request)


def _check_source(source: Source, request: Request) -> None:
    told, asked = (source.sha256, source.bytes), (request.source_sha256, request.source_bytes)
    _require(told == asked, "it is about another document")
    # Its pages are counted up to, and an honest engine refuses a document that has more than it may.
    _require((source.pages or 0) <= request.policy.limits.pages, "a document of so many pages is not read")


def _check_withheld(extraction: Extraction, request: Request) -> None:
    rows = extraction.withheld
    _require(request.withhold or not rows, "bytes were not asked for")
    quarantined = {
        (page.page, row.name)
        for page in extraction.pages
        for row in page.placements
        if row.status is Status.QUARANTINED
    }
    named = [(row.page, row.name) for row in rows]
    _require(len(set(named)) == len(named) and quarantined.issuperset(named), "bytes are withheld of no such picture")
    sizes = {row.sha256: row.bytes for row in rows}
    _require(all(sizes[row.sha256] == row.bytes for row in rows), "a file has two sizes")
    _require(sum(sizes.values()) <= most_bytes(request), "too many bytes are withheld")


@contextmanager
def _folder(path: Path) -> Iterator[int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise _unbelievable("its folder is gone") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _plain_file(folder: int, name: str) -> Iterator[tuple[int, int]]:
    """Descriptor and size of a regular file with one link, opened without following anything."""
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except OSError:
        raise _unbelievable("a file is missing or a link") from None
    try:
        facts = os.fstat(descriptor)
        _require(stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1, "a file is not a plain file")
        yield descriptor, facts.st_size
    finally:
        os.close(descriptor)


def _read_body(folder: int) -> dict[str, Any]:
    with _plain_file(folder, ANSWER_FILE) as (descriptor, size):
        _require(size <= ANSWER_BYTES, "the answer is too long")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            encoded = file.read(ANSWER_BYTES + 1)
    try:
        body = json.loads(encoded, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise _unbelievable("the answer is not JSON") from None
    _require(
        isinstance(body, dict) and len(body) == 1 and _nests_within(body, ANSWER_DEPTH), "the answer is oddly shaped"
    )
    if isinstance(body.get("failure"), str):
        raise EngineFailed(_printable(body["failure"]))
    if isinstance(body.get("file_too_large"), str):
        raise EngineFailed(_printable(body["file_too_large"]), Reason.EXPANDED_SIZE_EXCEEDED)
    result: dict[str, Any] = body
    return result


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    body = dict(pairs)
    if len(body) != len(pairs):
        raise ValueError("duplicate key")
    return body


def _no_constant(_: str) -> Any:
    raise ValueError("not a number")


def _printable(text: str) -> str:
    """The word of a decoder that goes into a log: one line of ASCII."""
    return "".join(letter for letter in text[:200] if " " <= letter <= "~")


def _nests_within(body: Any, most: int) -> bool:
    """Whether no more than ``most`` lists and objects of ``body`` are one in the other."""
    level = [body]
    for _ in range(most):
        inside = (value.values() if isinstance(value, dict) else value for value in level)
        level = [item for items in inside for item in items if isinstance(item, (dict, list))]
        if not level:
            return True
    return False


def _digest(folder: int, name: str, size: int, buffer: bytearray) -> str:
    with _plain_file(folder, name) as (descriptor, actual):
        _require(actual == size, "a file has another size")
        digest, read = hashlib.sha256(), memoryview(buffer)
        while count := os.readv(descriptor, [buffer]):
            digest.update(read[:count])
        return digest.hexdigest()


def _prune(folder: int, keep: set[str]) -> None:
    """Remove whatever the answer does not name, the answer itself included; follows no link."""
    for name in os.listdir(folder):
        if name in keep:
            continue
        try:
            os.unlink(name, dir_fd=folder)
        except FileNotFoundError:
            continue
        except OSError:  # a folder, which each system tells in its own way
            rmtree(name, ignore_errors=True, dir_fd=folder)


def clear(out: Path) -> None:
    """Empty the folder of a decoder that was lost, so that it can be used again."""
    with suppress(OSError, DecoderLost), _folder(out) as folder:
        _prune(folder, keep=set())


def _require(condition: bool, what: str) -> None:
    if not condition:
        raise _unbelievable(what)


def _unbelievable(what: str) -> DecoderLost:
    return DecoderLost(Reason.DECODER_CRASHED, what)
