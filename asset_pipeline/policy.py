"""What is allowed: limits, what counts as decoration, how long things are kept.

A policy is one versioned YAML file; every part has defaults, so an absent file is the default policy.
Two digests: ``digest`` over all of it (recorded with every job) and ``extraction_digest`` over the
parts that can change a result (part of the extractor version, REQUIREMENTS R2.1), so that a change of
retention or names re-extracts nothing. Where things are belongs in ``settings``.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import rfc8785
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asset_pipeline.errors import ConfigurationError


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Limits(_Part):
    """Bounds checked before any raster is allocated (REQUIREMENTS R1.3, R5.1)."""

    source_bytes: int = Field(200 * 1024 * 1024, gt=0, description="bytes of one upload")
    pages: int = Field(5_000, gt=0, description="pages of one document")
    pixels: int = Field(40_000_000, gt=0, description="width x height of a picture or of its mask")
    frames: int = Field(1, gt=0, description="frames of one picture")
    encoded_bytes: int = Field(25 * 1024 * 1024, gt=0, description="bytes of one encoded picture")
    expanded_bytes: int = Field(512 * 1024 * 1024, gt=0, description="bytes of one decoded picture")
    filters: int = Field(8, gt=0, description="filters in one chain")
    metadata_bytes: int = Field(1024 * 1024, gt=0, description="bytes of metadata inside one picture")
    jpeg_scans: int = Field(100, gt=0, description="scans of one progressive JPEG")
    form_depth: int = Field(24, gt=0, description="nesting of forms and patterns")
    placements: int = Field(10_000, gt=0, description="pictures drawn by one page")
    operators: int = Field(2_000_000, gt=0, description="content-stream operators of one page, forms included")
    content_bytes: int = Field(64 * 1024 * 1024, gt=0, description="expanded content streams of one page")
    objects: int = Field(1_000_000, gt=0, description="objects of one document")
    package_parts: int = Field(10_000, gt=0, description="files inside one office document")
    package_bytes: int = Field(1024 * 1024 * 1024, gt=0, description="expanded bytes of one office document")
    package_ratio: int = Field(250, gt=0, description="expanded to stored bytes of an office document beyond 64 MiB")
    document_seconds: float = Field(300.0, gt=0, description="deadline of one unit of work")
    decoder_bytes: int = Field(1024 * 1024 * 1024, gt=0, description="address space of one decoder process")


class Decorative(_Part):
    """What counts as decoration, by placed size after joining (REQUIREMENTS R6.4). Never deleted."""

    shortest_side_points: float = Field(6.0, ge=0, description="a placement thinner than this is decorative")


class Figures(_Part):
    """How vector figures are found and rendered (REQUIREMENTS R6.4)."""

    enabled: bool = True
    dpi: int = Field(200, gt=0, le=600)
    margin_points: float = Field(4.0, ge=0)
    shortest_side_points: float = Field(
        40.0, ge=0, description="a drawing with a shorter side is decoration (a row of boxes or bars: 0.6 of it)"
    )
    gap_points: float = Field(10.0, ge=0, description="marks closer than this belong together")
    label_points: float = Field(20.0, ge=0, description="short texts closer than this are labels of the figure")
    picture_share: float = Field(0.5, ge=0, le=1, description="a drawing covered more than this by pictures is theirs")
    fewest_paths: int = Field(6, gt=0, description="a page with fewer paths has no figure")
    marks: int = Field(50_000, gt=0, description="marks of one page that are looked at")
    seconds: float = Field(20.0, gt=0, description="deadline for rendering one figure")


class MediaTypes(_Part):
    """Accepted uploads and releasable pictures (REQUIREMENTS R1.1, R5.5)."""

    documents: tuple[str, ...] = (
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    )
    released: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp")


class Retention(_Part):
    """The two clocks, in days from admission (REQUIREMENTS R7.2)."""

    working_days: int = Field(7, gt=0, description="for working material: quarantined bytes, working copies")
    archive_days: int = Field(3650, gt=0, description="for the archived report: its source, its pictures")


class Objectives(_Part):
    """What the work is held to (REQUIREMENTS R10). Past one of these a check fails, never a run."""

    first_attempt_share: float = Field(0.95, ge=0, le=1, description="least share of units validated at first attempt")
    kept_share: float = Field(0.95, ge=0, le=1, description="least share admitted, and completed, in their time")
    admission_seconds: float = Field(900.0, gt=0, description="from the first sight of an upload to its job")
    completion_seconds: float = Field(14_400.0, gt=0, description="from a queued job to its end")
    queue_seconds: float = Field(3_600.0, gt=0, description="95th percentile of how long queued work waits")
    fetch_seconds: float = Field(30.0, gt=0, description="budget for copying the source of one unit")
    decode_seconds: float = Field(60.0, gt=0, description="budget for decoding one unit")
    publish_seconds: float = Field(30.0, gt=0, description="budget for storing the pictures of one unit")
    usual_pixels: int = Field(
        400_000_000, gt=0, description="more pixels than this explain a slow unit by its shape, not by capacity"
    )
    overdue_bytes: int = Field(0, ge=0, description="most bytes kept past their deadline")
    temporary_bytes: int = Field(20 * 1024**3, gt=0, description="most bytes in the working folder")


class Policy(_Part):
    """All that is allowed, with defaults."""

    version: int = 1
    limits: Limits = Limits()
    decorative: Decorative = Decorative()
    figures: Figures = Figures()
    media_types: MediaTypes = MediaTypes()
    retention: Retention = Retention()
    objectives: Objectives = Objectives()
    show_names: bool = Field(True, description="show upload names in tables and galleries")

    @property
    def digest(self) -> str:
        """SHA-256 (hex) of the whole policy in canonical JSON."""
        return _digest(self.model_dump(mode="json"))

    @property
    def extraction_digest(self) -> str:
        """SHA-256 (hex) of the parts that can change what is extracted."""
        return _digest(self.model_dump(mode="json", include={"limits", "decorative", "figures", "media_types"}))


def load_policy(path: Path | None, *, required: bool = False) -> Policy:
    """Read ``path`` (None, or absent and not ``required``: the defaults).

    Raises ConfigurationError when a required file is not there, or naming the unsound field.
    """
    if path is None or not (required or path.exists()):
        return Policy()
    if not path.is_file():
        raise ConfigurationError("There is no policy file where one is named.", "Put it there or name another.")
    import yaml  # only where there is a file: a decoder process that starts has none

    try:
        body: Any = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigurationError("The policy file cannot be read as YAML.", "Correct it or remove it.") from error
    try:
        return Policy.model_validate({} if body is None else body)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "policy"
        raise ConfigurationError(f"The policy is unsound at {field}: {first['msg']}.", "Correct that line.") from error


def _digest(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
