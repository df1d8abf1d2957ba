"""What extraction says: source, pages, placements, pictures. The shapes of ``report.json``.

These models cross a process border (a decoder process answers with them) and are therefore validated
field by field. Engines fill them; validation, the ledger and the manifest read them. No bytes in here:
a picture's bytes are files, named by their digest. Units: PDF points (1/72 inch) unless a name says
otherwise; boxes are (left, bottom, right, top) in user space, (left, top, right, bottom) as displayed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from asset_pipeline.reasons import Reason

SCHEMA: Literal["asset-pipeline/extract-report/1"] = "asset-pipeline/extract-report/1"

LARGEST_DEPTH = 2**31 - 1
"""Of the bits that a picture's dictionary states, what a placement tells; what is beyond is no statement."""

LARGEST_SIZE = 2**53 - 1
"""Of the width and height that a dictionary states, what a placement tells: the most that every reader of JSON keeps as
it is (RFC 8785). What is beyond either way is told as this."""

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Four = tuple[float, float, float, float]
Six = tuple[float, float, float, float, float, float]


class Kind(StrEnum):
    """How a picture comes onto the page. A picture inside a soft-mask group keeps its kind, with a flag."""

    RASTER = "raster"
    INLINE = "inline"
    STENCIL = "stencil"
    PATTERN = "pattern"
    COMPOSITE = "composite"
    VECTOR_FIGURE = "vector_figure"


DERIVED = frozenset({Kind.COMPOSITE, Kind.VECTOR_FIGURE})


class Status(StrEnum):
    """Where a placement ends up (REQUIREMENTS R3.3)."""

    ARCHIVED = "archived"
    COLLAPSED = "collapsed"
    DECORATIVE = "decorative"
    CONSUMED = "consumed"
    NOT_SHOWN = "not_shown"
    QUARANTINED = "quarantined"


class Flag(StrEnum):
    """Facts about a placement that are not a status."""

    REPEAT = "repeat"
    CLIPPED = "clipped"
    OCCLUDED = "occluded"
    NOT_VISIBLE = "not_visible"
    HIDDEN_LAYER = "hidden_layer"
    MIRRORED = "mirrored"
    SOFT_MASK = "soft_mask"
    CLIP_APPROXIMATE = "clip_approximate"
    COLOUR_FALLBACK = "colour_fallback"


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)


class Placement(_Row):
    """One picture on one page. ``picture`` and ``display`` are digests of files in the same answer."""

    name: str = Field(pattern=r"^page-\d{3,}-(image|composite|figure)-\d{3,}$")
    picture: Sha256 | None
    object_id: int | None
    kind: Kind
    width: int
    height: int
    filter: list[str]
    colour_space: str | None
    bits: int | None
    matrix: Six
    bbox: Four
    display_bbox: Four
    visible: float = Field(ge=0, le=1)
    ppi: tuple[float, float]
    print_mm: tuple[float, float]
    flags: list[Flag]
    parts: list[str] = []
    caption: str | None = None
    alt: str | None = None
    display: Sha256 | None
    status: Status
    reason: Reason | None = None


class Page(_Row):
    """One page's account and its placements in paint order. ``drawn`` is None when it was not counted."""

    page: int = Field(ge=1)
    unit: Literal["page", "slide", "sheet", "part"] = "page"
    label: str | None = None
    drawn: int | None = None
    archived: int = 0
    collapsed: int = 0
    decorative: int = 0
    consumed: int = 0
    not_shown: int = 0
    quarantined: int = 0
    derived_archived: int = 0
    derived_quarantined: int = 0
    reason: Reason | None = None
    placements: list[Placement] = []


class Picture(_Row):
    """One file of the answer: a rendition of a picture, or a thumbnail ``of`` one."""

    sha256: Sha256
    file: str = Field(pattern=r"^[0-9a-f]{64}\.(png|jpg|jp2|tif|webp)$")
    renditions: list[Literal["original", "display", "thumbnail"]]
    of: Sha256 | None = None
    media_type: str
    bytes: int = Field(gt=0)
    width: int = Field(gt=0)
    height: int = Field(gt=0)
    bits: int
    mode: str
    has_alpha: bool
    icc: str | None
    pixel_sha256: Sha256 | None
    phash: str | None


class Withheld(_Row):
    """The stored bytes of a quarantined picture: a file of the answer, in no report and no manifest."""

    page: int = Field(ge=1)
    name: str
    sha256: Sha256
    bytes: int = Field(gt=0)

    @staticmethod
    def file_of(sha256: str) -> str:
        """Name of the file in the answer's folder."""
        return f"{sha256}.withheld"


class Source(_Row):
    """The document as it was read."""

    sha256: Sha256
    bytes: int
    media_type: str | None
    pages: int | None
    encrypted: Literal["none", "owner_only", "user"] | None


class Timings(_Row):
    """Milliseconds of each stage."""

    admit: float = 0
    decode: float = 0
    publish: float = 0


class Extraction(_Row):
    """The answer for a document or a range of its pages: the body of ``report.json``."""

    schema_: Literal["asset-pipeline/extract-report/1"] = Field(SCHEMA, alias="schema")
    source: Source
    outcome: Literal["ok"] | Reason
    extractor_version: str
    pages: list[Page] = []
    pictures: list[Picture] = []
    withheld: list[Withheld] = Field([], exclude=True)
    timings_ms: Timings = Timings()
    peak_rss_bytes: int = 0

    model_config = ConfigDict(extra="forbid", populate_by_name=True, serialize_by_alias=True)
