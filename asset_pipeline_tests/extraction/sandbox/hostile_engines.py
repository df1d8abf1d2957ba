"""Engines that do what a broken or hostile decoder does. Run only inside real decoder processes."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.model import Extraction, Page, Picture, Source


def source_of(request: Request) -> Source:
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type="application/pdf",
        pages=3,
        encrypted="none",
    )


def answer(request: Request, pictures: list[Picture] | None = None) -> Extraction:
    pages = [Page(page=number, drawn=0) for number in range(request.first, (request.last or 3) + 1)]
    return Extraction(
        source=source_of(request), outcome="ok", extractor_version="test/1", pages=pages, pictures=pictures or []
    )


def a_picture(content: bytes, **changes: object) -> Picture:
    digest = hashlib.sha256(content).hexdigest()
    row = {
        "sha256": digest, "file": f"{digest}.png", "renditions": ["original"], "media_type": "image/png",
        "bytes": len(content), "width": 1, "height": 1, "bits": 8, "mode": "L", "has_alpha": False, "icc": None,
        "pixel_sha256": None, "phash": None,
    }  # fmt: skip
    return Picture.model_validate(row | changes)


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
    """Starts a process that outlives it, then answers."""

    def extract(self, request: Request) -> Extraction:
        left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        request.document.with_suffix(".pid").write_text(str(left.pid))
        return answer(request)


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
    """Tells what the process can see, in the printed label of its page."""

    def extract(self, request: Request) -> Extraction:
        print("secret words of the document", flush=True)
        facts = {
            "environment": dict(os.environ),
            "group": os.getpgid(0) == os.getpid(),
            "folder": Path.cwd() == request.out,
            "descriptors": sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())[:-1],
            "arguments": Path("/proc/self/cmdline").read_bytes().decode(),
            "password": request.password,
        }
        reply = answer(request)
        return reply.model_copy(update={"pages": [reply.pages[0].model_copy(update={"label": json.dumps(facts)})]})


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
