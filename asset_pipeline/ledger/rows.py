"""Pages and placements as rows, and back: one translation, so that what was read is what is said later.

What comes from a document may hold what a database or canonical JSON refuses: NUL characters, halves
of surrogate pairs, declared sizes beyond any integer. ``storable`` replaces these, on every database
alike, or the same document would be told differently by different storages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from sqlalchemy import RowMapping

from asset_pipeline.model import Page, Picture, Placement

LARGEST_INTEGER = 2**53 - 1
"""Canonical JSON (RFC 8785) holds no larger one."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_COLUMNS = frozenset({"name", "kind", "status", "reason", "picture", "display", "width", "height"})
_DETAIL = frozenset(Placement.model_fields) - _COLUMNS
COUNTS = (
    "drawn",
    "archived",
    "collapsed",
    "decorative",
    "consumed",
    "not_shown",
    "quarantined",
    "derived_archived",
    "derived_quarantined",
)


def storable(value: Any) -> Any:
    """``value`` with the characters and integers replaced that a database or canonical JSON cannot hold."""
    match value:
        case str():
            return _UNSTORABLE.sub("\ufffd", value)
        case bool():
            return value
        case int():
            return max(-LARGEST_INTEGER, min(value, LARGEST_INTEGER))
        case list():
            return [storable(part) for part in value]
        case _:
            return value


def page_row(job_id: str, unit_id: str, page: Page) -> dict[str, Any]:
    """The row of ``pages``."""
    return {
        "job_id": job_id,
        "unit_id": unit_id,
        "page": page.page,
        "unit_kind": page.unit,
        "label": storable(page.label),
        "reason": page.reason.value if page.reason else None,
    } | counts_of(page)


def counts_of(page: Page) -> dict[str, int | None]:
    """The account of a page, by column."""
    return {name: getattr(page, name) for name in COUNTS}


def placement_row(job_id: str, page: int, ordinal: int, placement: Placement) -> dict[str, Any]:
    """The row of ``placements`` for the placement at ``ordinal`` (from 0) of ``page``."""
    body = placement.model_dump(mode="json")
    row = {name: storable(body[name]) for name in _COLUMNS}
    detail = {name: storable(body[name]) for name in _DETAIL}
    return row | {"job_id": job_id, "page": page, "ordinal": ordinal, "detail": detail}


def object_row(picture: Picture) -> dict[str, Any]:
    """The row of ``objects``, without its state."""
    body = picture.model_dump(mode="json", exclude={"file", "renditions", "of"})
    return {name: storable(value) for name, value in body.items()} | {"has_alpha": int(picture.has_alpha)}


def placement_of(row: RowMapping) -> Placement:
    """The placement that ``placement_row`` made a row of."""
    return Placement.model_validate({name: row[name] for name in _COLUMNS} | row["detail"])


def page_of(row: RowMapping, placements: Iterable[Placement]) -> Page:
    """The page that ``page_row`` made a row of, with its placements in order."""
    account = {name: row[name] for name in ("page", "label", "reason", *COUNTS)}
    return Page.model_validate(account | {"unit": row["unit_kind"], "placements": list(placements)})
