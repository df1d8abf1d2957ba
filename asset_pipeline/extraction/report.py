"""The small synchronous path: one file in, pictures and ``report.json`` out. No database, no Dagster.

The same engines, gates and decoder processes as the pipeline, so that a notebook and a test see what
the archive would get. A document that cannot be read is a result: the outcome says why. Only a wrong
call raises. How the document is read: ``reading``.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from io import BufferedReader
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from asset_pipeline.errors import UsageError
from asset_pipeline.extraction.engine import ENGINES, Request, engine_for, load_engine, made_by, version_of
from asset_pipeline.extraction.reading import Reading
from asset_pipeline.extraction.sandbox.line import ZygoteLine, start_at_once
from asset_pipeline.extraction.sandbox.pool import DecoderPool
from asset_pipeline.model import Extraction, Source
from asset_pipeline.policy import Policy
from asset_pipeline.reasons import Reason
from asset_pipeline.validation.documents import declared_type, judge, recognise

REPORT_FILE = "report.json"

_SCRATCH = ".reading-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_PIECE = 1024 * 1024
_NOT_YET = "0" * 64
"""Stands for the document's digest in what decoders are asked and answer, as they need not wait for it."""


def extract(
    file: str | Path,
    out: str | Path,
    *,
    engine: str = "pdf",
    policy: Policy | None = None,
    password: str | None = None,
    figures: bool = True,
    workers: int | None = None,
    pixels: bool = False,
    pool: DecoderPool | None = None,
    started: ZygoteLine | None = None,
) -> Extraction:
    """Read ``file``, write its pictures and ``report.json`` into the folder ``out``, return the report.

    ``engine`` reads PDF; office files have an engine of their own.
    ``workers`` is the number of decoder processes (default: all cores); ``pixels`` asks for
    ``pixel_sha256`` of every picture; many documents share the start of one open ``pool``; ``started`` is a
    zygote that was started before this module was imported. Never raises for a bad document: see
    ``Extraction.outcome``.
    Raises UsageError for an unknown engine, a file that is not there or is changed meanwhile, a folder that cannot be
    written, and StorageError where there is no room.
    """
    policy = policy or Policy()
    if engine not in ENGINES:
        load_engine(engine)  # raises, and says which there are
    count = workers or len(os.sched_getaffinity(0))
    path = Path(file)
    with _opened(path) as stream:
        before = os.fstat(stream.fileno())
        source, refused = _admit(stream, path.name, policy)
        engine = engine_for(source.media_type, engine)
        with _scratch(Path(out)) as scratch, ThreadPoolExecutor(1, thread_name_prefix="hashing") as aside:
            hashing = aside.submit(_hash, stream)
            if refused is not None:
                version = made_by(version_of(load_engine(engine)), policy)
                report = Extraction(source=source, outcome=refused, extractor_version=version)
            else:
                request = Request(
                    document=path.absolute(),
                    out=scratch,
                    policy=policy,
                    source_sha256=source.sha256,
                    source_bytes=source.bytes,
                    media_type=source.media_type,
                    password=password,
                    figures=figures,
                    pixels=pixels,
                    withhold=False,
                )
                with nullcontext(pool) if pool else _open_pool(count, policy, engine, started) as opened:
                    report = Reading(opened, pool is None, engine, request, source).read(count)
            digest, hashed = hashing.result()
            _check_unchanged(path, stream, before)
            source = report.source.model_copy(update={"sha256": digest})
            timings = report.timings_ms.model_copy(update={"admit": hashed})
            report = report.model_copy(update={"source": source, "timings_ms": timings})
            return _publish(report, scratch)


def _open_pool(workers: int, policy: Policy, engine: str, started: ZygoteLine | None) -> DecoderPool:
    line = started or start_at_once((engine,), ENGINES)
    if line is not None:
        return DecoderPool(workers, policy, warm=(engine,), line=line)
    from asset_pipeline.settings import load_settings

    return DecoderPool(workers, policy, warm=(engine,), caged=load_settings().sandbox)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    """The file. Raises UsageError where there is none, or where its name is none to the libraries that open it."""
    try:
        str(path.absolute()).encode()
        if not path.is_file():
            raise UsageError(f"There is no file {str(path)!r}.", "Name a document to read.")
        stream = path.open("rb")
    except UnicodeEncodeError:
        raise UsageError("The file's name is no UTF-8.", "Rename it, or the folder that it is in.") from None
    except OSError as error:
        raise _unreadable(error) from None
    with stream:
        yield stream


def _admit(stream: BufferedReader, name: str, policy: Policy) -> tuple[Source, Reason | None]:
    """What size and signature say, and why the document is refused, if it is; its digest is made while it is read."""
    declared = declared_type(name)
    try:
        size = os.fstat(stream.fileno()).st_size
        signature = recognise(stream, declared)
    except OSError as error:
        raise _unreadable(error) from None
    refused = judge(size, signature, declared, policy.media_types.documents)
    if size > policy.limits.source_bytes:
        refused = Reason.PAYLOAD_TOO_LARGE
    return Source(sha256=_NOT_YET, bytes=size, media_type=signature.media_type, pages=None, encrypted=None), refused


def _hash(stream: BufferedReader) -> tuple[str, float]:
    """Digest of the file, and the milliseconds that took. Raises UsageError where it cannot be read."""
    began = time.monotonic()
    digest, piece = hashlib.sha256(), bytearray(_PIECE)
    try:
        stream.seek(0)
        while count := stream.readinto(piece):
            digest.update(memoryview(piece)[:count])
    except OSError as error:
        raise _unreadable(error) from None
    return digest.hexdigest(), _milliseconds(began)


def _unreadable(error: OSError) -> UsageError:
    return UsageError(f"The file cannot be read ({error.strerror}).", "Check its permissions.")


def _check_unchanged(path: Path, stream: BufferedReader, before: os.stat_result) -> None:
    """Raise UsageError unless ``path`` still is the file that was opened, as it was: decoders open it by its name."""
    with suppress(OSError):
        seen = (before, path.stat(), os.fstat(stream.fileno()))
        if len({(at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for at in seen}) == 1:
            return
    raise UsageError("The file was changed while it was read.", "Try again when nobody writes to it.")


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder in ``out`` that goes with this reading; an earlier report goes at once, and what killed readings left.

    Locked as long as somebody reads: that is how the others know. Raises UsageError where ``out`` cannot be written.
    """
    with _writing():
        out.mkdir(parents=True, exist_ok=True)
        (out / REPORT_FILE).unlink(missing_ok=True)
        for left in out.glob(f"{_SCRATCH}*"):
            _remove_unless_locked(left)
        path, lock = _make_locked(out.absolute())
    try:
        yield path
    finally:
        rmtree(path, ignore_errors=True)
        os.close(lock)


def _make_locked(out: Path) -> tuple[Path, int]:
    while True:
        path = Path(mkdtemp(prefix=_SCRATCH, dir=out))
        with suppress(FileNotFoundError):
            lock = os.open(path, _FOLDER)
            with suppress(OSError):  # on a disk without locks nothing is ever taken for left behind
                flock(lock, LOCK_EX)
            if path.exists():  # else another took it for left behind before it was locked
                return path, lock
            os.close(lock)


def _remove_unless_locked(folder: Path) -> None:
    with suppress(OSError):
        lock = os.open(folder, _FOLDER)
        try:
            flock(lock, LOCK_EX | LOCK_NB)
            rmtree(folder)
        finally:
            os.close(lock)


@contextmanager
def _writing() -> Iterator[None]:
    """Raises UsageError for what the system says against writing."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"The folder for the pictures cannot be written ({error.strerror}).", "Name another."
        ) from None


def _publish(report: Extraction, scratch: Path) -> Extraction:
    """Move the pictures and the report out of ``scratch``, and return the report with how long that took."""
    began = time.monotonic()
    names, out = {picture.file for picture in report.pictures}, scratch.parent
    with _writing():
        unfinished = scratch / REPORT_FILE
        unfinished.touch()
        mode = unfinished.stat().st_mode  # as its owner likes files to be, unlike what decoders write
        for folder in filter(Path.is_dir, scratch.iterdir()):
            # Paths as text: a path object for each of many files takes longer than moving it.
            for made in os.scandir(folder):
                if made.name in names:
                    os.chmod(made.path, mode)  # noqa: PTH101
                    os.replace(made.path, os.path.join(out, made.name))  # noqa: PTH105, PTH118
        timings = report.timings_ms.model_copy(update={"publish": _milliseconds(began)})
        report = report.model_copy(update={"timings_ms": timings})
        unfinished.write_text(report.model_dump_json(indent=1) + "\n", "utf-8")
        unfinished.replace(out / REPORT_FILE)
    return report


def _milliseconds(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 3)
