"""`policy …`: the rules in force, whether a file is sound, what it would change, and the schema it is written to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet

if TYPE_CHECKING:
    from asset_pipeline.policy import Policy

app = typer.Typer(no_args_is_help=True, help="The rules: limits, decoration, figures, media types, retention.")
File = Annotated[Path | None, typer.Argument(help="A policy file; default the one in force.")]
Answer = Annotated[Format, typer.Option("--format", help="How to answer.")]

COLUMNS = ("field", "before", "after", "changes_extraction")
_EXTRACTION = ("limits", "decorative", "figures", "media_types")


@app.callback()
def _group() -> None:
    """The rules: limits, decoration, figures, media types, retention."""


@app.command()
def show(file: File = None, format_: Answer = Format.TABLE) -> None:
    """Show every rule with its value, defaults included."""
    policy = _load(file)
    body = policy.model_dump(mode="json")
    rows = [{"field": name, "value": _plain(value)} for name, value in _flat(body).items()]
    sheet = Sheet("Policy", ("field", "value"), _exact(rows, "value"))
    console.show(format_, [sheet], {**_digests(policy), "policy": body})
    if format_ is Format.TABLE:
        console.say(f"Digest {policy.digest}; of the rules that change what is extracted {policy.extraction_digest}.")


@app.command()
def check(file: File = None, format_: Answer = Format.TABLE) -> None:
    """Exit status 0 when the policy is sound; else one line that names the field."""
    told = {"sound": True, **_digests(_load(file))}
    console.show(format_, [Sheet("Policy", tuple(told), [told])], told)


@app.command()
def diff(file: File = None, format_: Answer = Format.TABLE) -> None:
    """What a file would change; without one, what the policy in force changes against the last one that was used."""
    before, after = (_last_used(), _load(None)) if file is None else (_load(None), _load(file))
    if before is None:
        console.say("No policy has been used yet.")
        before = after.model_dump(mode="json")
    old = _flat(before if isinstance(before, dict) else before.model_dump(mode="json"))
    new = _flat(after.model_dump(mode="json"))
    rows = [
        {
            "field": name,
            "before": _plain(old.get(name)),
            "after": _plain(new.get(name)),
            "changes_extraction": name.split(".")[0] in _EXTRACTION,
        }
        for name in sorted(old.keys() | new.keys())
        if old.get(name) != new.get(name)
    ]
    console.show(format_, [Sheet("Changes", COLUMNS, _exact(rows, "before", "after"))], {"changes": rows})
    if format_ is Format.TABLE:
        differ = console.number_of(len(rows), "rule differs", "rules differ")
        console.say(f"{differ}." if rows else "Nothing differs.")


@app.command()
def schema() -> None:
    """Write the JSON Schema of policy files."""
    from asset_pipeline.policy import Policy

    console.show_json({"$schema": "https://json-schema.org/draft/2020-12/schema", **Policy.model_json_schema()})


def _load(file: Path | None) -> Policy:
    from asset_pipeline.installation import installed_policy
    from asset_pipeline.policy import load_policy
    from asset_pipeline.settings import load_settings

    return installed_policy(load_settings()) if file is None else load_policy(file, required=True)


def _last_used() -> dict[str, Any] | None:
    """The policy that was recorded last; as it was written down, since it may be of another version."""
    from sqlalchemy import select

    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger.schema import policies
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst, inst.ledger.read() as conn:
        newest = select(policies.c.body).order_by(policies.c.first_used_at.desc(), policies.c.digest).limit(1)
        body: dict[str, Any] | None = conn.execute(newest).scalar()
        return body


def _digests(policy: Policy) -> dict[str, Any]:
    return {
        "version": policy.version,
        "digest": policy.digest,
        "extraction_digest": policy.extraction_digest,
    }


def _flat(body: dict[str, Any], above: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{above}{name}.")
        else:
            flat[f"{above}{name}"] = value
    return flat


def _exact(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """``rows`` with the fractions of ``names`` as they are written: a rule is never rounded."""
    return [row | {name: str(row[name]) for name in names if isinstance(row[name], float)} for row in rows]


def _plain(value: Any) -> Any:
    return ", ".join(map(str, value)) if isinstance(value, list) else value
