"""`evidence …`: verify the log or an export, export a month, hand out the trust file, replace the key, find a source.

`verify` ends with 0 when all holds, else with the number of the first fault (``evidence.findings``); with a bag it
needs nothing but the bag and the trust file.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet, number_of
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.evidence.trust import Trust
    from asset_pipeline.evidence.verify import Verdict

app = typer.Typer(no_args_is_help=True, help="Prove what was done: verify, export, keys.")

TrustFile = Annotated[
    Path | None, typer.Option("--trust", help="Trust file with the public keys; default those that come with the log.")
]
Answer = Annotated[Format, typer.Option("--format", help="How to answer.")]

COLUMNS = ("event", "fault", "exit_status", "what", "meaning")
SHOWN = 20
"""Faults that a table shows; JSON and CSV show all."""


@app.callback()
def _group() -> None:
    """Prove what was done: verify, export, keys."""


@app.command()
def verify(
    export: Annotated[Path | None, typer.Argument(help="An exported bag; default the installation's own log.")] = None,
    trust: TrustFile = None,
    format_: Answer = Format.TABLE,
) -> None:
    """Check signatures, numbers, links and checkpoints.

    Exit status: 10 bad signature, 11 gap, 12 cut tail, 13 rewritten, 14 unknown key, 15 not canonical, 16 bad
    checkpoint, 17 altered file.
    """
    trusted = read_trust(trust)
    since = None
    if export is not None:
        from asset_pipeline.archive.bag import verify_bag

        verdict, places = verify_bag(export, trusted), {"bag": 1}
    else:
        verdict, places, since = _verify_own(trusted)
    _show(verdict, places, trusted is not None, export is not None, since, format_)
    if verdict.findings:
        raise typer.Exit(int(verdict.findings[0].fault))


@app.command()
def export(
    month: Annotated[str, typer.Argument(help="Month, as YYYY-MM.", show_default=False)],
    target: Annotated[Path, typer.Argument(help="A folder that does not exist yet.", show_default=False)],
    pictures: Annotated[bool, typer.Option("--pictures", help="With the pictures.")] = False,
) -> None:
    """Write a month's evidence as a BagIt bag that verifies alone."""
    from asset_pipeline.archive.bag import write_bag
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    check_months(settings, [month])
    with open_installation(settings) as inst:
        bagged = write_bag(inst, month, target, pictures=pictures)
    console.say(
        f"Written: {number_of(bagged.events, 'event')}, {number_of(bagged.manifests, 'manifest')} and "
        f"{number_of(bagged.pictures, 'picture')}."
    )


@app.command("trust")
def trust_file() -> None:
    """Write the trust file to standard output: the public keys and which events each may sign."""
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        sys.stdout.write(inst.trust().dumps().decode())


@app.command("rotate-key")
def rotate_key(
    to: Annotated[
        str | None, typer.Option(help="The new key, as file:<path> or env:<VARIABLE>; default a new file.")
    ] = None,
) -> None:
    """Let a new key sign all later events. The event that says so is signed by the old and the new one."""
    from datetime import UTC, datetime

    from asset_pipeline.evidence.keys import make_key, open_key
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger.events import rotate_key as rotate
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    given = bool(settings.event_key.get_secret_value())
    if given and to is None:
        raise UsageError("The key comes from the environment.", "Name the new one with --to env:<VARIABLE>.")
    with open_installation(settings) as inst:
        new = make_key(settings.keys_folder) if to is None else open_key(to)
        if new.key_id == inst.signer().key_id:
            raise UsageError("That is the key in use.", "Name another one.")
        with inst.ledger.begin() as tx:
            seq = rotate(tx, new, datetime.now(UTC))
        inst.checkpoints.seal()
    console.say(f"Event {seq} was signed by the old and the new key; later events are signed by {new.key_id}.")
    if to is not None:
        console.say("Set ASSET_PIPELINE_EVENT_KEY to the new key now: nothing can be recorded before.")
    console.say("Hand out the trust file again (`asset-pipeline evidence trust`), and back up the keys folder.")


@app.command()
def source(
    name: Annotated[str, typer.Argument(help="Name of a picture (page-042-image-003), or SHA-256 of its file.")],
    report: Annotated[str | None, typer.Option(help="Id of the report, where the name fits several.")] = None,
    format_: Answer = Format.TABLE,
) -> None:
    """Which source produced this picture?"""
    from asset_pipeline.archive.provenance import Origin, origins
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst, inst.ledger.read() as conn:
        found = [asdict(row) for row in origins(conn, name, report, show_names=inst.policy.show_names)]
    if not found:
        raise UsageError("No picture of that name or digest was archived.", "See the names in gallery or manifest.")
    if format_ is Format.TABLE:
        for row in found:
            rows = [{"what": key, "value": value} for key, value in row.items() if value is not None]
            console.show_tables([Sheet(f"Source of {console.plain(row['name'])}", ("what", "value"), rows)])
        return
    console.show(format_, [Sheet("Sources", tuple(Origin.__dataclass_fields__), found)], {"sources": found})


def read_trust(path: Path | None) -> Trust | None:
    """The trust file at ``path``. Raises UsageError."""
    from asset_pipeline.evidence.trust import loads

    if path is None:
        return None
    try:
        return loads(path.read_bytes())
    except OSError:
        raise UsageError("The trust file cannot be read.", "Correct its path.") from None


def _verify_own(trusted: Trust | None) -> tuple[Verdict, dict[str, int], str | None]:
    """The verdict, how many checkpoints lay where, and when the first event that none covers was recorded."""
    from asset_pipeline.archive.proof import prove_ledger
    from asset_pipeline.evidence.chain import moment
    from asset_pipeline.installation import open_installation
    from asset_pipeline.ledger.chain import Log
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        own = inst.trust()
        proof = prove_ledger(inst, trusted or own)
        after = proof.verdict.anchored + 1
        with inst.ledger.read() as conn:
            uncovered = next(Log(conn, after, after).rows(), None)
    if own.is_uncertified:
        console.say("The key service has not certified the key in use. Run `asset-pipeline evidence rotate-key` once.")
    for name in proof.away:
        console.say(f"The checkpoints in the {name} could not be read; the others were compared.")
    return proof.verdict, proof.notes, moment(uncovered["at"]) if uncovered else None


def _show(
    verdict: Verdict, places: dict[str, int], by_file: bool, is_bag: bool, since: str | None, format_: Format
) -> None:
    from asset_pipeline.evidence.findings import MEANINGS, PROVES, UNANCHORED

    rows: list[dict[str, Any]] = [
        {
            "event": found.seq,
            "fault": found.fault.name.lower(),
            "exit_status": int(found.fault),
            "what": found.what,
            "meaning": MEANINGS[found.fault],
        }
        for found in verdict.findings
    ]
    words = [*PROVES, *([UNANCHORED] if verdict.unanchored else [])]
    if not by_file:
        words.append(
            "The keys were taken from what was verified: whoever made all of it could have made them too. Use --trust "
            "with a trust file that reached you another way."
        )
    sums = {
        "sound": not rows,
        "events": verdict.events,
        "first": verdict.first,
        "last": verdict.last,
        "covered_to": verdict.anchored,
        "not_covered": verdict.unanchored,
        "not_covered_since": since,
        "checkpoints": verdict.checkpoints,
        "checkpoints_read": places,
    }
    if format_ is not Format.TABLE:
        console.show(format_, [Sheet("Faults", COLUMNS, rows)], {**sums, "findings": rows, "proves": words})
        return
    told = [{key: value for key, value in sums.items() if key != "checkpoints_read"}]
    console.show_tables(
        [Sheet("Bag" if is_bag else "Log", tuple(told[0]), told), Sheet("Faults", COLUMNS, rows[:SHOWN])]
    )
    if len(rows) > SHOWN:
        console.say(f"{len(rows) - SHOWN} more: see --format json.")
    for word in words:
        console.say(word)
