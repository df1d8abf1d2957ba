"""Engines that do what a broken or hostile decoder does. Run only inside real decoder processes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from asset_pipeline import account
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.model import Extraction, Page, Picture, Placement, Source, Withheld


def source_of(request: Request) -> Source:
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type="application/pdf",
        pages=3,
        encrypted="none",
    )


def answer(request: Request, pictures: list[Picture] | None = None, rows: Sequence[Placement] = ()) -> Extraction:
    pages = [Page(page=number, drawn=0) for number in range(request.first, (request.last or 3) + 1)]
    pages[0] = account.count(pages[0].model_copy(update={"placements": list(rows)}))
    return Extraction(
        source=source_of(request), outcome="ok", extractor_version="test/1", pages=pages, pictures=pictures or []
    )


def a_row() -> Placement:
    return Placement.model_validate(
        {
            "name": "page-001-image-001", "picture": None, "object_id": None, "kind": "raster", "width": 1,
            "height": 1, "filter": [], "colour_space": None, "bits": 8, "matrix": [1, 0, 0, 1, 0, 0],
            "bbox": [0, 0, 1, 1], "display_bbox": [0, 0, 1, 1], "visible": 1.0, "ppi": [72, 72],
            "print_mm": [1, 1], "flags": [], "display": None, "status": "quarantined",
            "reason": "malformed_stream",
        }
    )  # fmt: skip


def a_picture(content: bytes, **changes: object) -> Picture:
    digest = hashlib.sha256(content).hexdigest()
    row = {
        "sha256": digest, "file": f"{digest}.png", "renditions": ["original"], "media_type": "image/png",
        "bytes": len(content), "width": 1, "height": 1, "bits": 8, "mode": "L", "has_alpha": False, "icc": None,
        "pixel_sha256": None, "phash": None,
    }  # fmt: skip
    return Picture.model_validate(row | changes)


def a_withheld(content: bytes, name: str = "page-001-image-001") -> Withheld:
    return Withheld(page=1, name=name, sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))


def with_facts(request: Request, facts: object) -> Extraction:
    """An answer whose one file holds ``facts`` as JSON."""
    content = json.dumps(facts).encode()
    picture = a_picture(content)
    (request.out / picture.file).write_bytes(content)
    return answer(request, [picture])


class Honest:
    name = "honest"

    def version(self) -> str:
        return "test/1"

    def inspect(self, request: Request) -> Inspection:
        return Inspection(source=source_of(request), outcome=None)

    def extract(self, request: Request) -> Extraction:
        content = b"some picture"
        picture = a_picture(content)
        (request.out / picture.file).write_bytes(content)
        (request.out / "left-over").mkdir()
        (request.out / "left-over" / "file").write_bytes(b"x")
        return answer(request, [picture])


class Sleeps(Honest):
    def extract(self, request: Request) -> Extraction:
        time.sleep(60)
        return answer(request)


class LeavesChild(Honest):
    """Starts a process that outlives it, then answers. ``session`` takes it out of the decoder's group first."""

    session = False

    def extract(self, request: Request) -> Extraction:
        if os.fork() == 0:
            if self.session:
                os.setsid()
            request.document.with_suffix(".pid").write_text(str(os.getpid()))
            time.sleep(60)
            os._exit(0)
        while not request.document.with_suffix(".pid").exists():
            time.sleep(0.01)
        return answer(request)


class LeavesSession(LeavesChild):
    session = True


class Allocates(Honest):
    def extract(self, request: Request) -> Extraction:
        hoard = []
        while True:
            hoard.append(bytearray(16 * 1024 * 1024))


class DiesOfHunger(Honest):
    """Native code that cannot allocate: uses nearly all address space, then ends by a signal."""

    def extract(self, request: Request) -> Extraction:
        hoard = []
        try:
            while True:
                hoard.append(bytearray(16 * 1024 * 1024))
        except MemoryError:
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGSEGV)
        return answer(request)


class Aborts(Honest):
    def extract(self, request: Request) -> Extraction:
        os.abort()


class Spins(Honest):
    def extract(self, request: Request) -> Extraction:
        while True:
            pass


class Raises(Honest):
    def inspect(self, request: Request) -> Inspection:
        raise ValueError("secret words of the document")

    def extract(self, request: Request) -> Extraction:
        raise ValueError("secret words of the document")


class Surroundings(Honest):
    """Tells what the process can see, in the file of its answer."""

    def extract(self, request: Request) -> Extraction:
        print("secret words of the document", flush=True)
        facts = {
            "environment": dict(os.environ),
            "group": os.getpgid(0) == os.getpid(),
            "folder": Path.cwd() == request.out,
            "descriptors": [number for number in range(64) if _is_open(number)],
            "writable": [number for number in range(3, 64) if _takes_a_byte(number)],
            "password": request.password,
        }
        return with_facts(request, facts)


def _is_open(number: int) -> bool:
    with suppress(OSError):
        os.fstat(number)
        return True
    return False


def _takes_a_byte(number: int) -> bool:
    """As it is, or opened anew for writing."""
    with suppress(OSError):
        return os.write(number, b"x") > 0
    with suppress(OSError), open(f"/proc/self/fd/{number}", "wb", buffering=0) as anew:  # noqa: PTH123 - no path
        return anew.write(b"x") > 0
    return False


class LinksToKey(Honest):
    """Names a symbolic link to a file of the parent as its picture."""

    def extract(self, request: Request) -> Extraction:
        picture = a_picture(request.document.read_bytes())
        (request.out / picture.file).symlink_to(request.document)
        return answer(request, [picture])


class HardLink(Honest):
    def extract(self, request: Request) -> Extraction:
        picture = a_picture(request.document.read_bytes())
        os.link(request.document, request.out / picture.file)
        return answer(request, [picture])


class NamedPipe(Honest):
    def extract(self, request: Request) -> Extraction:
        picture = a_picture(b"content")
        os.mkfifo(request.out / picture.file)
        return answer(request, [picture])


class OtherBytes(Honest):
    def extract(self, request: Request) -> Extraction:
        picture = a_picture(b"promised")
        (request.out / picture.file).write_bytes(b"delivery")
        return answer(request, [picture])


class WithholdsLink(Honest):
    """Gives a link to the document for the bytes of a quarantined picture."""

    def extract(self, request: Request) -> Extraction:
        held = a_withheld(request.document.read_bytes())
        (request.out / Withheld.file_of(held.sha256)).symlink_to(request.document)
        return answer(request, rows=[a_row()]).model_copy(update={"withheld": [held]})


class WithholdsOfNothing(Honest):
    """Gives bytes for a picture that is not quarantined, as there is none."""

    name_of_it = "page-001-image-002"
    content = b"bytes"

    def extract(self, request: Request) -> Extraction:
        held = a_withheld(self.content, self.name_of_it)
        (request.out / Withheld.file_of(held.sha256)).write_bytes(self.content)
        return answer(request, rows=[a_row()]).model_copy(update={"withheld": [held]})


class Withholds(WithholdsOfNothing):
    name_of_it = "page-001-image-001"


class WithholdsMuch(Withholds):
    content = bytes(26 * 1024 * 1024)


class OtherDocument(Honest):
    def extract(self, request: Request) -> Extraction:
        reply = answer(request)
        return reply.model_copy(update={"source": reply.source.model_copy(update={"sha256": "0" * 64})})


class OtherPage(Honest):
    def extract(self, request: Request) -> Extraction:
        return answer(request).model_copy(update={"pages": [Page(page=99, drawn=0)]})


class _RawAnswer(Honest):
    text = ""

    def extract(self, request: Request) -> Extraction:
        (request.out / "answer.json").write_text(self.text)
        os._exit(0)


class DeepAnswer(_RawAnswer):
    text = "[" * 100_000 + "]" * 100_000


class TwiceTheKey(_RawAnswer):
    text = '{"extraction": {}, "extraction": {}}'


class NoAnswer(_RawAnswer):
    def extract(self, request: Request) -> Extraction:
        os._exit(0)


class HugeAnswer(_RawAnswer):
    def extract(self, request: Request) -> Extraction:
        with (request.out / "answer.json").open("wb") as file:
            file.truncate(64 * 1024 * 1024 + 1)
        os._exit(0)


class AnswerIsLink(_RawAnswer):
    def extract(self, request: Request) -> Extraction:
        (request.out / "answer.json").symlink_to(request.document)
        os._exit(0)


class AllocatesAtOnce(Honest):
    def extract(self, request: Request) -> Extraction:
        bytearray(3 * 1024 * 1024 * 1024)
        return answer(request)


class WritesTooMuch(Honest):
    def extract(self, request: Request) -> Extraction:
        with (request.out / "large").open("wb") as file:
            for _ in range(100):
                file.write(bytes(16 * 1024 * 1024))
        return answer(request)


class IgnoresSignals(Honest):
    def extract(self, request: Request) -> Extraction:
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        while True:
            pass


class ClosesEverything(Honest):
    """Hangs up on whoever may listen, and talks into every descriptor there may be."""

    def extract(self, request: Request) -> Extraction:
        for number in range(64):
            with suppress(OSError):
                os.write(number, b'{"number": 1, "status": 0, "late": false}\n')
        os.closerange(0, 64)
        os._exit(0)


class RemovesFolder(Honest):
    def extract(self, request: Request) -> Extraction:
        request.out.rmdir()
        os._exit(0)


class FolderIsLink(Honest):
    """Puts a link to a folder of others where its own was."""

    def extract(self, request: Request) -> Extraction:
        request.out.rmdir()
        request.out.symlink_to(request.document.parent)
        os._exit(0)


class _Edited(Honest):
    """An honest answer with one thing changed in its JSON."""

    old, new = "", ""

    def extract(self, request: Request) -> Extraction:
        text = json.dumps({"extraction": answer(request, rows=[a_row()]).model_dump(mode="json")})
        assert text.count(self.old) >= 1
        (request.out / "answer.json").write_text(text.replace(self.old, self.new, 1))
        os._exit(0)


class EndlessNumber(_Edited):
    old, new = '"visible": 1.0', '"visible": 1e999'


class NumberBeyondDatabases(_Edited):
    old, new = '"object_id": null', f'"object_id": {10**30}'


class OtherCounts(_Edited):
    old, new = '"quarantined": 1', '"quarantined": 7'


class NameOfAnotherPage(_Edited):
    old, new = '"page-001-image-001"', '"page-009-image-001"'


class PictureWithoutFile(_Edited):
    old, new = '"picture": null', f'"picture": "{"0" * 64}"'


class UnknownField(_Edited):
    old, new = '"visible": 1.0', '"visible": 1.0, "more": 1'


class PagesWithoutEnd(_Edited):
    """Claims a document of which counting the pages would take the memory of its reader."""

    old, new = '"pages": 3', f'"pages": {2**31 - 1}'

    def inspect(self, request: Request) -> Inspection:
        source = source_of(request).model_copy(update={"pages": 2**31 - 1})
        return Inspection(source=source, outcome=None)


class TextOfTheDocument(_Edited):
    """Puts text of the document where the names of PDF's own things are expected, and marks in its label."""

    old, new = '"label": null', '"label": "i\\u0000\\n\\ud800<b>"'

    def extract(self, request: Request) -> Extraction:
        row = a_row().model_copy(update={"filter": ["FlateDecode", "words"], "colour_space": "more words"})
        text = json.dumps({"extraction": answer(request, rows=[row]).model_dump(mode="json")})
        (request.out / "answer.json").write_text(text.replace(self.old, self.new, 1))
        os._exit(0)
