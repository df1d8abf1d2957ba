"""Every field of a decoder's answer, held against what it may say: numbers that exist, words that are known.

The shapes are ``model``'s and checked before. Here: what fits its shape and is still no honest answer makes
the decoder lost (sizes no file has, counts that are not its rows', names of other pages); what a document
wrote is made plain. Names of filters and colour spaces are PDF's own words or ``other``, because whatever
else stands there is text of the document, and these go where such text may not. Texts that are wanted as
they are (page labels, captions, alternative texts, descriptions of colour profiles) stay, short and printable.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from asset_pipeline import account
from asset_pipeline.extraction.rows import LABEL_CHARACTERS, TEXT_CHARACTERS, plain_text
from asset_pipeline.model import LARGEST_DEPTH, LARGEST_SIZE, Extraction, Page, Picture, Placement, Status
from asset_pipeline.validation.rasters import PICTURES

MEDIA_TYPES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jp2": "image/jp2",
    ".tif": "image/tiff",
    ".webp": "image/webp",
}

OTHER = "other"
_FILTERS = {
    *("ASCIIHexDecode", "ASCII85Decode", "LZWDecode", "FlateDecode", "RunLengthDecode", "CCITTFaxDecode"),
    *("JBIG2Decode", "DCTDecode", "JPXDecode", "Crypt", "AHx", "A85", "LZW", "Fl", "RL", "CCF", "DCT"),
    *PICTURES,  # office documents hold files
}
_BASE = (
    r"(DeviceGray|DeviceRGB|DeviceCMYK|CalGray|CalRGB|Lab|Separation|Pattern"
    r"|ICCBased(\(\d{1,2}\))?|DeviceN(\(\d{1,2}\))?|G|RGB|CMYK)"
)
_COLOUR_SPACE = re.compile(rf"{_BASE}|(Indexed|I)(\({_BASE}\))?|Pattern\({_BASE}\)")
_MODE = re.compile(r"1|L|LA|P|PA|RGB|RGBA|CMYK|LAB|YCbCr|I|F|I;16|(L|LA|RGB|RGBA|CMYK|LAB|inks);\d{1,2}B?")
_HASH = re.compile(r"[0-9a-f]{1,32}")
_VERSION = re.compile(r"[ -~]{1,384}")

# The columns of the ledger; a document may declare absurd sizes, but not ones that no database holds.
_SMALL, _LARGE = 2**31 - 1, 2**63 - 1
_MOST_FILTERS = 64


def why_unbelievable(extraction: Extraction) -> str | None:
    """What no honest decoder says, in a few words of ours; None where there is nothing."""
    faults = [
        fault
        for part in (
            _head_faults(extraction),
            *(_picture_faults(picture) for picture in extraction.pictures),
            *(_page_faults(page) for page in extraction.pages),
        )
        for holds, fault in part
        if not holds
    ]
    return faults[0] if faults else None


def make_plain(extraction: Extraction) -> None:
    """Make every text of the document in ``extraction`` short and printable, and unknown names ``other``."""
    for page in extraction.pages:
        page.label = plain_text(page.label)
        for row in page.placements:
            _make_plain(row)
    for picture in extraction.pictures:
        picture.icc = plain_text(picture.icc, LABEL_CHARACTERS)


def _make_plain(row: Placement) -> None:
    space = row.colour_space
    row.filter = [name if name in _FILTERS else OTHER for name in row.filter[:_MOST_FILTERS]]
    row.colour_space = space if space is None or _COLOUR_SPACE.fullmatch(space) else OTHER
    row.alt = plain_text(row.alt, TEXT_CHARACTERS)
    row.caption = plain_text(row.caption, TEXT_CHARACTERS)


_Faults = Iterable[tuple[bool, str]]


def _head_faults(extraction: Extraction) -> _Faults:
    yield bool(_VERSION.fullmatch(extraction.extractor_version)), "its version is no version"
    yield 0 <= (extraction.source.pages or 0) <= _SMALL, "a document has no such number of pages"
    yield extraction.outcome == "ok" or not (extraction.pages or extraction.pictures), "a refusal has pages"


def _picture_faults(picture: Picture) -> _Faults:
    name, _, suffix = picture.file.rpartition(".")
    yield name == picture.sha256 and MEDIA_TYPES.get(f".{suffix}") == picture.media_type, "a file is misnamed"
    yield max(picture.width, picture.height) <= _SMALL, "a picture has no such size"
    yield 0 < picture.bits <= 64, "a picture has no such depth"
    yield bool(_MODE.fullmatch(picture.mode)), "a picture has no such mode"
    yield picture.phash is None or bool(_HASH.fullmatch(picture.phash)), "a hash is no hash"


def _page_faults(page: Page) -> _Faults:
    yield account.is_counted(page), "a page's counts are not those of its rows"
    yield page.drawn is not None or page.reason is not None, "a page was not counted for no reason"
    names = {row.name for row in page.placements}
    yield len(names) == len(page.placements), "a name appears twice"
    for row in page.placements:
        yield int(row.name.split("-")[1]) == page.page, "a name is of another page"
        yield len(row.name) <= 64, "a name is too long"
        yield names.issuperset(row.parts), "a part is not on its page"
        yield (row.reason is not None) == (row.status is Status.QUARANTINED), "a reason is missing or one too many"
        yield (row.picture is None) == (row.status is Status.QUARANTINED), "a picture is missing or one too many"
        yield max(abs(row.width), abs(row.height)) <= LARGEST_SIZE, "no such size"
        yield row.object_id is None or 0 <= row.object_id <= _LARGE, "there is no such object"
        yield row.bits is None or abs(row.bits) <= LARGEST_DEPTH, "there is no such depth"
