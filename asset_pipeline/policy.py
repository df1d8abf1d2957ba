"""What is allowed: limits, what counts as decoration, how long things are kept.

A policy is one versioned YAML file; every part has defaults, so an absent file is the default policy.
Two digests: ``digest`` over all of it (recorded with every job) and ``extraction_digest`` over the
parts that can change a result (part of the extractor version, REQUIREMENTS R2.1), so that a change of
retention or names re-extracts nothing. Where things are belongs in ``settings``.
"""

from __future__ import annotations

import hashlib
import stat
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import rfc8785
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from asset_pipeline.errors import ConfigurationError

_EXACT = 2**53 - 1
"""The largest whole number that every reader of JSON keeps as it is (RFC 8785): a digest takes no larger one."""

_QPDF = 2**32 - 1
"""The largest limit that qpdf can be given."""

_DECODER = 256 * 1024 * 1024
"""Less address space than this holds no decoder."""

_DAY = 86_400.0
_CENTURY = 36_525

_Whole = Annotated[int, Field(le=_EXACT)]
_Days = Annotated[int, Field(gt=0, le=_CENTURY)]
_Points = Annotated[float, Field(ge=0, le=1_000_000)]
_MediaType = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*$")]


class _Part(BaseModel):
    # Strict: "yes" is no number of pages.
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Limits(_Part):
    """Bounds checked before any raster is allocated (REQUIREMENTS R1.3, R5.1)."""

    source_bytes: _Whole = Field(200 * 1024 * 1024, gt=0, description="bytes of one upload")
    pages: _Whole = Field(5_000, gt=0, description="pages of one document")
    pixels: _Whole = Field(40_000_000, gt=0, description="width x height of a picture or of its mask")
    frames: _Whole = Field(1, gt=0, description="frames of one picture")
    encoded_bytes: _Whole = Field(25 * 1024 * 1024, gt=0, description="bytes of one encoded picture")
    expanded_bytes: int = Field(512 * 1024 * 1024, gt=0, le=_QPDF, description="bytes of one decoded picture")
    filters: int = Field(8, gt=0, le=_QPDF, description="filters in one chain")
    metadata_bytes: _Whole = Field(1024 * 1024, gt=0, description="bytes of metadata inside one picture")
    jpeg_scans: int = Field(100, gt=0, le=_QPDF, description="scans of one progressive JPEG")
    form_depth: int = Field(24, gt=0, le=100, description="nesting of forms and patterns")
    placements: _Whole = Field(10_000, gt=0, description="pictures drawn by one page")
    operators: _Whole = Field(2_000_000, gt=0, description="content-stream operators of one page, forms included")
    content_bytes: _Whole = Field(64 * 1024 * 1024, gt=0, description="expanded content streams of one page")
    objects: int = Field(1_000_000, gt=0, le=_QPDF, description="objects of one document")
    package_parts: _Whole = Field(10_000, gt=0, description="files inside one office document")
    package_bytes: _Whole = Field(1024 * 1024 * 1024, gt=0, description="expanded bytes of one office document")
    package_ratio: _Whole = Field(250, gt=0, description="expanded to stored bytes of an office document beyond 64 MiB")
    document_seconds: float = Field(300.0, gt=0, le=_DAY, description="deadline of one unit of work")
    decoder_bytes: _Whole = Field(1024 * 1024 * 1024, ge=_DECODER, description="address space of one decoder process")


class Decorative(_Part):
    """What counts as decoration, by placed size after joining (REQUIREMENTS R6.4). Never deleted."""

    shortest_side_points: _Points = Field(6.0, description="a placement thinner than this is decorative")


class Figures(_Part):
    """How vector figures are found and rendered (REQUIREMENTS R6.4)."""

    enabled: bool = True
    dpi: int = Field(200, gt=0, le=600)
    margin_points: _Points = Field(4.0)
    shortest_side_points: _Points = Field(
        40.0, description="a drawing with a shorter side is decoration (a row of boxes or bars: 0.6 of it)"
    )
    gap_points: _Points = Field(10.0, description="marks closer than this belong together")
    label_points: _Points = Field(20.0, description="short texts closer than this are labels of the figure")
    picture_share: float = Field(0.5, ge=0, le=1, description="a drawing covered more than this by pictures is theirs")
    fewest_paths: _Whole = Field(6, gt=0, description="a page with fewer has no figure; a long one is several")
    marks: _Whole = Field(50_000, gt=0, description="marks of one page that are looked at")
    seconds: float = Field(20.0, gt=0, le=_DAY, description="deadline for rendering one figure")


class MediaTypes(_Part):
    """Accepted uploads (REQUIREMENTS R1.1)."""

    # Not strict in themselves, or a list as YAML and JSON write it would be no tuple; what is in them has one form.
    documents: tuple[_MediaType, ...] = Field(
        (
            "application/pdf",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        min_length=1,
        strict=False,
    )


class Retention(_Part):
    """The two clocks, in days from admission (REQUIREMENTS R7.2)."""

    working_days: _Days = Field(7, description="for working material: quarantined bytes, working copies")
    archive_days: _Days = Field(3650, description="for the archived report: its source, its pictures")


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
    usual_pixels: _Whole = Field(
        400_000_000, gt=0, description="more pixels than this explain a slow unit by its shape, not by capacity"
    )
    overdue_bytes: _Whole = Field(0, ge=0, description="most bytes kept past their deadline")
    temporary_bytes: _Whole = Field(20 * 1024**3, gt=0, description="most bytes in the working folder")


class Policy(_Part):
    """All that is allowed, with defaults."""

    version: int = Field(1, ge=1, le=1)
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
        return _extraction_digest(self)


def load_policy(path: Path | None, *, required: bool = False) -> Policy:
    """Read ``path`` (None, or absent and not ``required``: the defaults).

    Raises ConfigurationError when a required file is not there, or naming the unsound field.
    """
    if path is None or not _is_there(path, required):
        return Policy()
    body = _read(path)
    try:
        return Policy.model_validate({} if body is None else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = _plain(".".join(str(part) for part in first["loc"])) or "policy"
        raise _unsound(field, first["msg"]) from error


def _is_there(path: Path, required: bool) -> bool:
    """Whether a policy file is there to be read. Never opens anything: a pipe would keep us waiting."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        if required:
            raise ConfigurationError(
                "There is no policy file where one is named.", "Put it there or name another."
            ) from None
        return False
    except (OSError, ValueError) as error:
        raise ConfigurationError("The policy file cannot be reached.", "Correct its path or its rights.") from error
    if not stat.S_ISREG(mode):
        raise ConfigurationError("What is named as the policy is not a file.", "Name a YAML file.")
    return True


def _read(path: Path) -> Any:
    import yaml  # only where there is a file: a decoder process that starts has none

    from asset_pipeline.policy_yaml import DoubledKey, read_yaml

    try:
        return read_yaml(path.read_text("utf-8"))
    except DoubledKey as doubled:
        raise _unsound(_plain(doubled.key), f"it stands there twice, again in line {doubled.line}") from None
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigurationError(
            f"The policy file cannot be read as YAML{line}.", "Correct it or remove it."
        ) from error
    except RecursionError:
        raise _unsound("policy", "it is nested too deeply") from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigurationError("The policy file cannot be read as YAML.", "Correct it or remove it.") from error


def _unsound(field: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"The policy is unsound at {field}: {why}.", "Correct that line.")


def _plain(text: str) -> str:
    """A name from the file, fit for one line of a terminal."""
    return "".join(mark if mark.isprintable() else "\N{REPLACEMENT CHARACTER}" for mark in text)[:100]


@lru_cache(maxsize=4)
def _extraction_digest(policy: Policy) -> str:
    return _digest(policy.model_dump(mode="json", include={"limits", "decorative", "figures", "media_types"}))


def _digest(value: Any) -> str:
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
