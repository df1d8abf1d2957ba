"""Writes the pages of docs/ that repeat what the code says: every setting, every line of the policy, every reason.

`python docs/make.py` writes them, `python docs/make.py --check` says which are behind. A test runs the check.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from asset_pipeline.policy import Policy
from asset_pipeline.reasons import EXPLANATIONS, Explanation, Reason, ReasonClass, explain
from asset_pipeline.settings import Settings

HERE = Path(__file__).parent
_MADE = "<!-- Made by docs/make.py from the code: change it there. -->"
_NEXT = {
    ReasonClass.PERMANENT: "never tried again",
    ReasonClass.TRANSIENT: "tried again by itself",
    ReasonClass.INTEGRITY: "stopped: an incident",
}


def configuration() -> str:
    """The page of all settings and the whole policy."""
    settings = [
        f"| `ASSET_PIPELINE_{name.upper()}` | {_default(field.default)} | {_shown(field.description)} |"
        for name, field in Settings.model_fields.items()
    ]
    policy = [f"| `{name}` | {default} | {meaning} |" for name, default, meaning in _policy(Policy)]
    return "\n".join(
        [
            "# Configuration",
            "",
            _MADE,
            "",
            "## Settings: where things are",
            "",
            "Environment variables; none is needed. `asset-pipeline doctor` says whether what they name is reached.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *settings,
            "",
            "## Policy: what is allowed",
            "",
            "One YAML file, `<home>/policy.yaml` unless `ASSET_PIPELINE_POLICY` names another. It may be absent, as",
            "may each line of it. `asset-pipeline policy show` prints the one in force, `policy check FILE` judges",
            "another. Limits, decoration, figures and media types are part of the extractor's version: new work uses",
            "the changed ones, and nothing is extracted again by itself.",
            "",
            "| line | default | meaning |",
            "|---|---|---|",
            *policy,
            "",
        ]
    )


def reasons() -> str:
    """The page of every reason code."""
    rows = [
        f"| `{reason.value}` | {told.meaning} | {_NEXT[told.reason_class]} | {_what_to_do(reason, told)} |"
        for reason, told in sorted(EXPLANATIONS.items())
    ]
    return "\n".join(
        [
            "# Reasons",
            "",
            _MADE,
            "",
            "Why an upload, a document, a page, a picture or a unit of work did not go through. A code keeps its",
            "meaning for ever; it stands in the ledger, in manifests, in reports and in signed events.",
            "",
            "| code | what happened | what happens next | what you can do |",
            "|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _what_to_do(reason: Reason, told: Explanation) -> str:
    of_picture = explain(reason, of_picture=True).remedy
    return told.remedy if of_picture == told.remedy else f"{told.remedy} For a picture in a document: {of_picture}"


def _policy(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _policy(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", _default(field.default), _shown(field.description)


def _shown(text: str | None) -> str:
    """Markdown takes <home> for a tag of HTML, unless it is code."""
    return re.sub(r"<[^ |]+", r"`\g<0>`", text or "")


def _default(value: object) -> str:
    if hasattr(value, "get_secret_value"):
        value = value.get_secret_value()
    if value is PydanticUndefined or value is None or str(value) in ("", "."):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{part}`" for part in value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:,}"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


PAGES = {"configuration.md": configuration, "reasons.md": reasons}


def main() -> int:
    """Write the pages, or with --check only name those that differ."""
    behind = []
    for name, page in PAGES.items():
        path = HERE / name
        text = page()
        if not path.exists() or path.read_text("utf-8") != text:
            behind.append(name)
            if "--check" not in sys.argv:
                path.write_text(text, "utf-8")
    if behind:
        sys.stdout.write(f"{'Behind' if '--check' in sys.argv else 'Written'}: {', '.join(behind)}\n")
    return int(bool(behind) and "--check" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
