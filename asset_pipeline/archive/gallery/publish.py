"""Writes the gallery of a month into the archive store, and only what is new of it.

Everything but three files is named for its content (data) or for what it shows (thumbnails, pages), so it is written
once; a rerun with nothing new lists the folder, reads the fixed files and makes nothing. The start page comes after
all that it names, and what it no longer names is deleted last, so a reader always finds a whole gallery. The folder
is complete in itself but for the full-size pictures, which stay in ``objects``.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from pydantic import TypeAdapter, ValidationError

from asset_pipeline.archive.gallery.content import KINDS, STATUSES, Block, GalleryDocument, GalleryMonth, read_month
from asset_pipeline.archive.made_from import Note, made_from, read_note, write_note
from asset_pipeline.archive.page_states import LATE, NO_PICTURE, WAITING, PageState
from asset_pipeline.installation import Installation
from asset_pipeline.storage.store import Store, holds_digest

PARALLEL_PUTS = 8
DOCUMENTS_AT_ONCE = 4
"""Whose pages are drawn: with one alone, decoders would be idle at the end of each, and most have few pages."""
STATIC = ("gallery.css", "shared.js", "page.js", "gallery.js")
WITHOUT = "without_preview.json"
NOTE = "made_from.json"
HEAD = "month.js"
TRIES = 3
"""How often a preview is tried: a decoder may be lost to a busy machine, or to the picture itself."""

WORDS = {"late": LATE, "waiting": WAITING, "no_picture": NO_PICTURE}
"""What is said of pages that have no entry of their own."""

_PAGE = re.compile(r"pages/(?P<source>[0-9a-f]{16})-(?P<page>\d+)-(?P<width>\d+)x(?P<height>\d+)-(?P<how>[db])\.webp")


@dataclass(frozen=True, slots=True)
class PageImage:
    """The preview of a page: its size in points and whether the page is drawn or just its sheet."""

    page: int
    width: float
    height: float
    drawn: bool
    file: Path
    sha256: str


class Previews(Protocol):
    """Makes the small images. What cannot be made is left out. ``keep`` is called before the file is gone."""

    def thumbnails(self, displays: dict[str, int], keep: Callable[[str, Path, str], None]) -> None:
        """Of display renditions (digest to bytes): ``keep(digest, file, sha256 of the file)``."""
        ...

    def pages(self, source_hash: str, wanted: Sequence[tuple[int, bool]], keep: Callable[[PageImage], None]) -> None:
        """Of pages of an admitted source: number, and whether the page may be drawn. Called by several threads."""
        ...


@dataclass(frozen=True, slots=True)
class PublishedGallery:
    """Where the gallery is and what this call did. ``key`` is that of its start page."""

    key: str
    digest: str
    pictures: int
    thumbnails: int
    files: int
    bytes: int
    written: int
    removed: int


def gallery_prefix(month: str) -> str:
    """Start of the keys of everything in the gallery of ``month``."""
    return f"galleries/{month}/"


def publish_gallery(
    inst: Installation,
    month: str,
    open_previews: Callable[[], AbstractContextManager[Previews]],
    *,
    anew: bool = False,
) -> PublishedGallery:
    """Bring the gallery of ``month`` up to date; with ``anew`` make every file of it again, whatever is there.

    Files that are named for what they show are not read on the way, so only ``anew`` mends one whose bytes changed.
    Raises StorageError when a store is away.
    """
    with inst.ledger.read() as conn:
        source = made_from(inst, conn, month)
    folder = _Folder(inst.archive, gallery_prefix(month))
    if anew:
        folder.remove_others()
        folder.sheets.clear()
    note = read_note(inst.archive, folder.prefix + NOTE)
    if note and note.made_from == source and note.listing == folder.listing() and folder.holds(note.sha256):
        return _published(folder, note.sha256, note.figures["pictures"])
    return _write(folder, read_month(inst, month), open_previews, source)


def write_gallery(
    store: Store, content: GalleryMonth, open_previews: Callable[[], AbstractContextManager[Previews]]
) -> PublishedGallery:
    """Write what ``content`` says into ``store``."""
    return _write(_Folder(store, gallery_prefix(content.month)), content, open_previews, None)


def _write(
    folder: _Folder,
    content: GalleryMonth,
    open_previews: Callable[[], AbstractContextManager[Previews]],
    source: str | None,
) -> PublishedGallery:
    static = files(__package__) / "static"
    for name in STATIC:
        folder.put_fixed(name, (static / name).read_bytes())
    complete = _make_previews(folder, content, open_previews)
    folder.put_fixed(HEAD, script("month", _write_data(folder, content)))
    folder.put_fixed("index.html", (static / "index.html").read_bytes())
    removed = folder.remove_others()
    pictures = sum(len(block.items) for document in content.documents for block in document.blocks)
    if source and complete:
        told = Note(made_from=source, sha256=folder.fixed, listing=folder.listing(), figures={"pictures": pictures})
        write_note(folder.store, folder.prefix + NOTE, told)
    return _published(folder, folder.fixed, pictures, removed)


def _published(folder: _Folder, fixed: dict[str, str], pictures: int, removed: int = 0) -> PublishedGallery:
    """What is told of a folder in which nothing is but what its gallery names."""
    return PublishedGallery(
        key=f"{folder.prefix}index.html",
        digest=fixed[HEAD],
        pictures=pictures,
        thumbnails=sum(name.startswith("thumbnails/") for name in folder.there),
        files=len(folder.there),
        bytes=sum(folder.there.values()),
        written=folder.written,
        removed=removed,
    )


def stored_thumbnails(store: Store, month: str, digests: Iterable[str]) -> dict[str, bytes]:
    """Those thumbnails of pictures that the gallery of ``month`` has, by the digest of the picture."""
    found: dict[str, bytes] = {}
    for digest in digests:
        try:
            with store.open(gallery_prefix(month) + _thumbnail(digest)) as stream:
                found[digest] = stream.read()
        except KeyError:
            continue
    return found


def script(name: str, value: Any) -> bytes:
    """A classic script that hands ``value`` over: pages opened from disk may load scripts but not fetch JSON."""
    body = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return f'galleryData("{name}",{body.replace("<", chr(92) + "u003c")});\n'.encode("ascii")


Sheets = dict[tuple[int, bool], tuple[str, float, float]]
"""File, width and height (points) of page previews, by page and whether the page is drawn or just its sheet."""


@dataclass(slots=True)
class _Folder:
    """The gallery's place in the store: what is there, what is wanted, what was written."""

    store: Store
    prefix: str
    there: dict[str, int] = field(default_factory=dict)
    wanted: set[str] = field(default_factory=set)
    fixed: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files that keep their names."""
    sheets: dict[str, Sheets] = field(default_factory=lambda: defaultdict(dict))
    written: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # A folder store that holds nothing yet is not there, and cannot be listed. The style is written first.
        if self.store.exists(f"{self.prefix}{STATIC[0]}"):
            for entry in self.store.list(self.prefix):
                if (name := entry.key.removeprefix(self.prefix)) != NOTE:
                    self._note(name, entry.bytes)

    def _note(self, name: str, size: int) -> None:
        self.there[name] = size
        if match := _PAGE.fullmatch(name):
            points = (int(match["width"]) / 10, int(match["height"]) / 10)
            self.sheets[match["source"]][int(match["page"]), match["how"] == "d"] = (name, *points)

    def put_new(self, name: str, source: Path, sha256: str) -> None:
        """Write a file whose name says what is in it. Threads may call it."""
        if name not in self.there:
            written = self.store.put_once(self.prefix + name, source, sha256)
            with self.lock:
                self.written += written
                self._note(name, source.stat().st_size)
        with self.lock:
            self.wanted.add(name)

    def sheets_of(self, source_hash: str) -> Sheets:
        """The page previews of a source that are there."""
        return self.sheets.get(source_hash[:16], {})

    def put_fixed(self, name: str, body: bytes) -> None:
        """Write a file that keeps its name, unless it says the same already."""
        self.wanted.add(name)
        self.fixed[name] = hashlib.sha256(body).hexdigest()
        if self.there.get(name) == len(body):
            with self.store.open(self.prefix + name) as stream:
                if stream.read() == body:
                    return
        self.store.put_current(self.prefix + name, body)
        self.there[name] = len(body)
        self.written += 1

    def listing(self) -> str:
        """Digest over names and sizes of all that is there."""
        lines = "".join(f"{name} {size}\n" for name, size in sorted(self.there.items()))
        return hashlib.sha256(lines.encode()).hexdigest()

    def holds(self, fixed: dict[str, str]) -> bool:
        """Whether each of these files is there with the digest that is named."""
        return all(holds_digest(self.store, self.prefix + name, sha256) for name, sha256 in fixed.items())

    def remove_others(self) -> int:
        """Delete what the gallery no longer names."""
        others = sorted(self.there.keys() - self.wanted)
        for name in others:
            self.store.delete(self.prefix + name)
            del self.there[name]
        return len(others)


def _make_previews(
    folder: _Folder, content: GalleryMonth, open_previews: Callable[[], AbstractContextManager[Previews]]
) -> bool:
    """Make the small images that are not there, but none that could not be made ``TRIES`` times.

    False when one of them is to be tried again.
    """
    tries = _tries(folder)
    given_up = {name for name, count in tries.items() if count >= TRIES}
    settled = folder.there.keys() | given_up
    displays = {digest: size for document in content.documents for digest, size in document.displays.items()}
    missing = {d: n for d, n in sorted(displays.items()) if _thumbnail(d) not in settled}
    pages = {document.source_hash: _missing_pages(folder, document, given_up) for document in content.documents}
    if missing or any(pages.values()):
        with open_previews() as previews:
            previews.thumbnails(missing, lambda digest, file, sha256: folder.put_new(_thumbnail(digest), file, sha256))

            def draw(source_hash: str) -> None:
                previews.pages(source_hash, pages[source_hash], partial(_keep_page, folder, source_hash))

            with ThreadPoolExecutor(DOCUMENTS_AT_ONCE, "pages") as threads:
                _finish(threads.map(draw, [source_hash for source_hash, numbers in pages.items() if numbers]))
    thumbnails = {_thumbnail(digest) for digest in displays}
    folder.wanted |= thumbnails & folder.there.keys()
    without = thumbnails - folder.there.keys()
    for document in content.documents:
        made = folder.sheets_of(document.source_hash)
        for number, drawn in document.pages_with_pictures():
            if (number, drawn) in made:
                folder.wanted.add(made[number, drawn][0])
            else:
                without.add(_page_mark(document.source_hash, number, drawn))
    counted = {name: min(tries.get(name, 0) + 1, TRIES) for name in sorted(without)}
    folder.put_fixed(WITHOUT, (json.dumps(counted, indent=0) + "\n").encode("ascii"))
    return all(count >= TRIES for count in counted.values())


def _tries(folder: _Folder) -> dict[str, int]:
    """How often each preview that is not there was tried. A file that says something else says nothing."""
    if WITHOUT not in folder.there:
        return {}
    with folder.store.open(folder.prefix + WITHOUT) as stream:
        try:
            return TypeAdapter(dict[str, int]).validate_json(stream.read())
        except ValidationError:
            return {}


def _thumbnail(digest: str) -> str:
    return f"thumbnails/{digest}.webp"


def _page_mark(source_hash: str, number: int, drawn: bool) -> str:
    return f"pages/{source_hash[:16]}-{number}-{'d' if drawn else 'b'}"


def _missing_pages(folder: _Folder, document: GalleryDocument, given_up: set[str]) -> list[tuple[int, bool]]:
    made = folder.sheets_of(document.source_hash)
    return [
        wanted
        for wanted in document.pages_with_pictures()
        if wanted not in made and _page_mark(document.source_hash, *wanted) not in given_up
    ]


def _keep_page(folder: _Folder, source_hash: str, image: PageImage) -> None:
    size = f"{round(image.width * 10)}x{round(image.height * 10)}"
    name = f"pages/{source_hash[:16]}-{image.page}-{size}-{'d' if image.drawn else 'b'}.webp"
    folder.put_new(name, image.file, image.sha256)


def _write_data(folder: _Folder, content: GalleryMonth) -> dict[str, Any]:
    """Write the blocks, pages and texts; the value of the month's own file, which names them."""
    bodies: dict[str, bytes] = {}

    def named(value: Any) -> str:
        body = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, allow_nan=False)
        name = hashlib.sha256(body.encode()).hexdigest()[:16]
        bodies[f"data/{name}.js"] = script(name, value)
        return name

    documents = []
    for document in content.documents:
        blocks = [
            [named(_block(folder, block)), block.codes, block.first_page, block.last_page] for block in document.blocks
        ]
        details = named(_page_details(folder, document)) if document.answers else None
        documents.append(document.head | {"blocks": blocks, "details": details})
    texts = named([[block.texts for block in document.blocks] for document in content.documents])
    _put_bodies(folder, bodies)
    return {
        "month": content.month,
        "totals": content.totals,
        "reasons": content.reasons,
        "words": {name: [answer.meaning, answer.remedy] for name, answer in WORDS.items()},
        "kinds": [kind.value for kind in KINDS],
        "statuses": [status.value for status in STATUSES],
        "documents": documents,
        "texts": texts,
    }


def _block(folder: _Folder, block: Block) -> list[list[Any]]:
    """The block's items, each with whether there is a thumbnail of it."""
    return [[*item, int(bool(item[7]) and _thumbnail(item[7]) in folder.there)] for item in block.items]


def _page_details(folder: _Folder, document: GalleryDocument) -> dict[str, Any]:
    """What each page has to say for itself, and its preview: file, width and height in points."""
    sheets = folder.sheets_of(document.source_hash) if document.drawable else {}
    return {
        str(number): {
            "meaning": answer.meaning,
            "remedy": answer.remedy,
            "sheet": sheets.get((number, answer.state is not PageState.QUARANTINED)),
        }
        for number, answer in document.answers.items()
    }


def _put_bodies(folder: _Folder, bodies: dict[str, bytes]) -> None:
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(PARALLEL_PUTS, "gallery") as threads:

        def put(name: str) -> None:
            path = Path(scratch, name.rpartition("/")[2])
            path.write_bytes(bodies[name])
            folder.put_new(name, path, hashlib.sha256(bodies[name]).hexdigest())
            path.unlink()

        _finish(threads.map(put, sorted(bodies)))


def _finish(calls: Iterable[None]) -> None:
    for _ in calls:
        pass
