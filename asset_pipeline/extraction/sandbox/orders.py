"""A request as plain JSON and back, for the order of one decoder process.

The parent writes it and the zygote reads it before it forks, so both may be believed. The policy, which is most of it
and the same in each order, is read once: reading it anew took a tenth of a small document's time.
"""

from __future__ import annotations

from dataclasses import fields
from functools import lru_cache
from pathlib import Path
from typing import Any

from asset_pipeline.extraction.engine import Request
from asset_pipeline.policy import Policy

_PATHS = ("document", "out")
_POLICIES = 4
"""How many are remembered: a pool has one, a comparison of policies two."""


def request_to_json(request: Request) -> dict[str, Any]:
    """``request`` as plain JSON values, its policy as a text of its own. Turns travel beside it, as a descriptor."""
    body = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "turns"}
    return body | {name: str(body[name]) for name in _PATHS} | {"policy": request.policy.model_dump_json()}


def request_from_json(body: dict[str, Any]) -> Request:
    """The request that ``request_to_json`` wrote."""
    paths = {name: Path(body[name]) for name in _PATHS}
    return Request(**body | paths | {"policy": _policy(body["policy"])})


@lru_cache(_POLICIES)
def _policy(text: str) -> Policy:
    policy = Policy.model_validate_json(text)
    _ = policy.extraction_digest  # remembered, for all who are forked from this process: it is part of their answers
    return policy
