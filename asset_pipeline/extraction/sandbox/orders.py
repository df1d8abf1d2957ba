"""A request as plain JSON and back, for the order of one decoder process.

The parent writes it and the decoder reads it before it opens the document, so both may be believed.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from asset_pipeline.extraction.engine import Request
from asset_pipeline.policy import Policy

_PATHS = ("document", "out")


def request_to_json(request: Request) -> dict[str, Any]:
    """``request`` as plain JSON values."""
    body = {field.name: getattr(request, field.name) for field in fields(request)}
    return body | {name: str(body[name]) for name in _PATHS} | {"policy": request.policy.model_dump(mode="json")}


def request_from_json(body: dict[str, Any]) -> Request:
    """The request that ``request_to_json`` wrote."""
    paths = {name: Path(body[name]) for name in _PATHS}
    return Request(**body | paths | {"policy": Policy.model_validate(body["policy"])})
