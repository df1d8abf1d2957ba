"""`manifest …`: check the signed manifest of a report, and read it: inside its envelope it is encoded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.cli.evidence import Answer, TrustFile, read_trust
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.archive.envelope import SignedManifest

app = typer.Typer(no_args_is_help=True, help="Check and read signed manifests.")
File = Annotated[Path, typer.Argument(help="A manifest, as it lies in the archive.", show_default=False)]


@app.callback()
def _group() -> None:
    """Check and read signed manifests."""


@app.command()
def verify(file: File, trust: TrustFile = None, format_: Answer = Format.TABLE) -> None:
    """Check form, schema and signature; with --trust offline, else also that the ledger has it.

    Exit status: 10 bad signature, 14 unknown key, 15 not a manifest in canonical form, 17 not the one recorded.
    """
    from asset_pipeline.errors import IntegrityError
    from asset_pipeline.evidence.findings import MEANINGS, Fault

    stored = _read(file)
    try:
        manifest = _open(stored)
    except IntegrityError as error:
        console.say(f"{error.what} {MEANINGS[Fault.NOT_CANONICAL]}")
        raise typer.Exit(int(Fault.NOT_CANONICAL)) from None
    trusted = read_trust(trust)
    fault, facts = _judge_own(manifest, stored) if trusted is None else (_judge(manifest, trusted), {})
    record = manifest.body["record"]
    told: dict[str, Any] = {
        "sound": fault is None,
        **{name: record[name] for name in ("month", "report_id", "revision", "edition", "state")},
        "source_sha256": manifest.body["content"]["source"]["sha256"],
        "key_id": manifest.key_id,
        **facts,
    }
    console.show(format_, [Sheet("Manifest", tuple(told), [told])], told)
    if fault is not None:
        console.say(MEANINGS[fault])
        raise typer.Exit(int(fault))


@app.command()
def show(file: File) -> None:
    """Write what a manifest says, as JSON. Nothing is checked but its form."""
    console.show_json(_open(_read(file)).body)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        raise UsageError("The manifest cannot be read.", "Correct its path.") from None


def _open(stored: bytes) -> SignedManifest:
    from asset_pipeline.archive.envelope import open_manifest

    return open_manifest(stored)


def _judge(manifest: SignedManifest, trusted: Any) -> Any:
    from asset_pipeline.evidence.findings import Fault

    if manifest.key_id not in trusted.accepted():
        return Fault.UNKNOWN_KEY
    return None if manifest.is_signed_under(trusted) else Fault.BAD_SIGNATURE


def _judge_own(manifest: SignedManifest, stored: bytes) -> tuple[Any, dict[str, Any]]:
    """By the keys of the ledger, and whether it is the edition that the ledger recorded."""
    from sqlalchemy import select

    from asset_pipeline.archive.content import sha256_hex
    from asset_pipeline.evidence.findings import Fault
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger.schema import manifests
    from asset_pipeline.settings import load_settings

    record = manifest.body["record"]
    with open_installation(load_settings()) as inst:
        fault = _judge(manifest, inst.trust())
        query = select(manifests.c.edition, manifests.c.digest).where(manifests.c.report_id == record["report_id"])
        with inst.ledger.read() as conn:
            editions = dict(conn.execute(query).tuples().all())
    is_recorded = editions.get(record["edition"]) == sha256_hex(stored)
    facts = {"recorded": is_recorded, "newest_edition": max(editions, default=None)}
    return fault or (None if is_recorded else Fault.ALTERED_FILE), facts
