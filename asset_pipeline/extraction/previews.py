"""Small images for people to look at: thumbnails of archived pictures, and pages with pictures.

Shaped as engines, so that they run in decoder processes like everything else that decodes what strangers wrote; they
are given to a pool by name and are in no registry, because they read no document for the archive. An
answer's rows are numbered as they were asked for. Which previews are wanted and where they are kept belongs in
``work.previews`` and ``archive.gallery``. PDFium invents pixels for data that does not decode, so a page with a
quarantined picture is never drawn: ``BlankPages`` gives its sheet alone.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pypdfium2
from PIL import Image, UnidentifiedImageError

from asset_pipeline.account import count
from asset_pipeline.extraction.engine import Inspection, Request
from asset_pipeline.extraction.written import write_file
from asset_pipeline.model import Extraction, Kind, Page, Picture, Placement, Source, Status

THUMBNAIL_PIXELS = 320
PAGE_PIXELS = 560
_FORMATS = ("PNG", "JPEG", "WEBP")
_QUALITY = 78


class Thumbnails:
    """Thumbnails of the pictures in a tar archive; row n of page 1 is that of member n, if it could be made."""

    name = "thumbnails"

    def version(self) -> str:
        """Loads the libraries; no result of extraction depends on them."""
        Image.init()
        return self.name

    def inspect(self, request: Request) -> Inspection:
        """There is nothing to plan."""
        return Inspection(_source(request, None), None)

    def extract(self, request: Request) -> Extraction:
        """One thumbnail of at most 320 pixels a side for each member."""
        pictures: dict[str, Picture] = {}
        rows = []
        with tarfile.open(request.document, "r:") as bundle:
            for number, member in enumerate(bundle, start=1):
                stream = bundle.extractfile(member)
                small = _thumbnail(stream.read(), request.policy.limits.pixels) if stream else None
                if small is not None:
                    picture = _save(request.out, small)
                    pictures[picture.sha256] = picture
                    rows.append(_row(1, number, picture, (0.0, 0.0, float(picture.width), float(picture.height))))
        return _answer(request, self.name, [count(Page(page=1, drawn=0, placements=rows))], pictures, None)


class DrawnPages:
    """Pages of a PDF as PDFium draws them, at most 560 pixels a side; the row's box is the page in points."""

    name = "drawn_pages"
    drawn = True

    def version(self) -> str:
        """Loads the libraries; no result of extraction depends on them."""
        return self.name

    def inspect(self, request: Request) -> Inspection:
        """There is nothing to plan."""
        return Inspection(_source(request, None), None)

    def extract(self, request: Request) -> Extraction:
        """The pages that were asked for and can be drawn."""
        pictures: dict[str, Picture] = {}
        pages = []
        document = pypdfium2.PdfDocument(request.document)
        last = min(request.last or len(document), len(document))
        for number in range(request.first, last + 1):
            image, size = self._draw(document, number)
            if image is None:
                continue
            picture = _save(request.out, image)
            pictures[picture.sha256] = picture
            row = _row(number, 1, picture, (0.0, 0.0, *size))
            pages.append(count(Page(page=number, drawn=0, placements=[row])))
        return _answer(request, self.name, pages, pictures, len(document))

    def _draw(self, document: pypdfium2.PdfDocument, number: int) -> tuple[Image.Image | None, tuple[float, float]]:
        try:
            page = document[number - 1]
            size = (float(page.get_width()), float(page.get_height()))
            if min(size) <= 0:
                return None, size
            scale = PAGE_PIXELS / max(size)
            pixels = (max(1, round(size[0] * scale)), max(1, round(size[1] * scale)))
            if not self.drawn:
                return Image.new("RGB", pixels, "white"), size
            return page.render(scale=scale).to_pil().convert("RGB"), size
        except pypdfium2.PdfiumError:
            return None, (0.0, 0.0)


class BlankPages(DrawnPages):
    """The empty sheets of pages that hold something which must not be drawn."""

    name = "blank_pages"
    drawn = False


def _thumbnail(body: bytes, most_pixels: int) -> Image.Image | None:
    try:
        image = Image.open(io.BytesIO(body), formats=_FORMATS)
        if image.width * image.height > most_pixels:
            return None
        image.draft("RGB", (THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
        alpha = image.has_transparency_data
        small = image.convert("RGBA" if alpha else "RGB")
        small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS), Image.Resampling.BOX, reducing_gap=2.0)
        return small
    except (OSError, ValueError, SyntaxError, UnidentifiedImageError, Image.DecompressionBombError):
        return None


def _save(out: Path, image: Image.Image) -> Picture:
    body = io.BytesIO()
    image.save(body, "WEBP", quality=_QUALITY, method=2)
    content = body.getvalue()
    digest = hashlib.sha256(content).hexdigest()
    write_file(out / f"{digest}.webp", content)
    return Picture(
        sha256=digest,
        file=f"{digest}.webp",
        renditions=["thumbnail"],
        media_type="image/webp",
        bytes=len(content),
        width=image.width,
        height=image.height,
        bits=8,
        mode=image.mode,
        has_alpha=image.mode == "RGBA",
        icc=None,
        pixel_sha256=None,
        phash=None,
    )


def _row(page: int, number: int, picture: Picture, box: tuple[float, float, float, float]) -> Placement:
    return Placement(
        name=f"page-{page:03d}-image-{number:03d}",
        picture=picture.sha256,
        object_id=None,
        kind=Kind.RASTER,
        width=picture.width,
        height=picture.height,
        filter=[],
        colour_space=None,
        bits=8,
        matrix=(1.0, 0.0, 0.0, 1.0, 0.0, 0.0),
        bbox=box,
        display_bbox=box,
        visible=1.0,
        ppi=(0.0, 0.0),
        print_mm=(0.0, 0.0),
        flags=[],
        display=None,
        status=Status.ARCHIVED,
    )


def _answer(
    request: Request, name: str, pages: list[Page], pictures: dict[str, Picture], count: int | None
) -> Extraction:
    return Extraction(
        source=_source(request, count),
        outcome="ok",
        extractor_version=name,
        pages=pages,
        pictures=list(pictures.values()),
    )


def _source(request: Request, count: int | None) -> Source:
    return Source(
        sha256=request.source_sha256,
        bytes=request.source_bytes,
        media_type=request.media_type,
        pages=count,
        encrypted=None,
    )
