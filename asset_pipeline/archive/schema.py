"""The published JSON Schema of manifests, and the check that every manifest passes before it is stored.

The schema is the file ``manifest.schema.json`` beside this module (draft 2020-12), for readers in any
language. Compiled once; a manifest that does not satisfy it is a defect of this program.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from jsonschema import Draft202012Validator

from asset_pipeline.errors import IntegrityError
from asset_pipeline.reasons import Reason


@cache
def manifest_schema() -> dict[str, Any]:
    """The schema as JSON values."""
    body: dict[str, Any] = json.loads(files(__package__).joinpath("manifest.schema.json").read_text("utf-8"))
    return body


def check_manifest(manifest: dict[str, Any]) -> None:
    """Raise IntegrityError, naming the place, when ``manifest`` does not satisfy the schema."""
    error = next(_validator().iter_errors(manifest), None)
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path)
        raise IntegrityError(
            f"A manifest would not satisfy its schema at {place or 'its root'}.",
            "Tell the developers.",
            Reason.INTERNAL_ERROR,
        )


@cache
def _validator() -> Draft202012Validator:
    return Draft202012Validator(manifest_schema())
