"""`quarantine list|show|release|reject`: what was held back, why, and what a person decides about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from asset_pipeline.installation import Installation
    from asset_pipeline.ledger.quarantine import HeldPicture

app = typer.Typer(help="Look at what was held back, and decide about it.", no_args_is_help=True)

COLUMNS = (
    "what",
    "job_id",
    "picture",
    "page",
    "month",
    "collection",
    "document",
    "reason",
    "meaning",
    "what_to_do",
    "state",
    "since",
    "decided_by",
    "decided_at",
)
NARROW = ("what", "job_id", "picture", "month", "document", "reason", "state", "decided_by")
QUIET = ("picture", "decided_by")

STILL_HELD = 3
"""Exit status when a picture was read again and still fails."""

Job = Annotated[str, typer.Argument(help="Job, by id.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="PICTURE", help="Picture, as page-042-image-003.", show_default=False)]
Answer = Annotated[Format, typer.Option("--format", help="How to answer.")]


@app.command("list")
def list_held(
    month: Annotated[str | None, typer.Argument(help="One month, as YYYY-MM; default all.")] = None,
    decided: Annotated[bool, typer.Option("--decided", help="Also what was released or rejected.")] = False,
    format_: Answer = Format.TABLE,
) -> None:
    """Show pictures that were held back, and documents and uploads that were refused."""
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.ledger.quarantine import held_pictures

    with _installation() as inst:
        if month is not None:
            check_months(inst.settings, [month])
        states = ("held", "released", "rejected") if decided else ("held",)
        with inst.ledger.read() as conn:
            pictures = held_pictures(conn, month, states)
        rows = [_picture_row(inst, picture) for picture in pictures] + _refused(inst, month)
    columns = NARROW if format_ is Format.TABLE else COLUMNS
    console.show(format_, [Sheet("Held back", columns, rows, QUIET)], {"held": rows})
    if format_ is Format.TABLE and not rows:
        console.say("Nothing is held back.")


@app.command()
def show(job: Job, picture: Name, format_: Answer = Format.TABLE) -> None:
    """Show all that is known about one picture that was held back."""
    with _installation() as inst:
        found = _find(inst, job, picture)
        facts = _picture_row(inst, found) | {
            "kind": found.kind,
            "declared_width": found.width,
            "declared_height": found.height,
            "stored_sha256": found.sha256,
            "stored_bytes": found.bytes,
            "source_sha256": found.source_hash,
            "report_id": found.report_id,
        }
    rows = [{"fact": name.replace("_", " "), "value": console.plain(value)} for name, value in facts.items()]
    console.show(format_, [Sheet("Held picture", ("fact", "value"), rows)], facts)


@app.command()
def release(job: Job, picture: Name) -> None:
    """Read a picture again under the policy of today, and archive it when it passes. Exit status 3 when it does not."""
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.work.release import review_picture

    act_as_claimed()
    with _installation() as inst:
        found = _find(inst, job, picture)
        review = review_picture(inst, found)
    if review.reason is not None:
        words = _in_words(review.reason.value, of_picture=True)
        console.say(f"Still held: {review.reason.value}. {words['meaning']} {words['what_to_do']}")
        raise typer.Exit(STILL_HELD)
    console.say(f"Released. Run `asset-pipeline run {found.month}` for the new edition of its manifest.")


@app.command()
def reject(job: Job, picture: Name) -> None:
    """Record that a picture stays out of the archive."""
    from asset_pipeline.cli.people import act_as_claimed
    from asset_pipeline.ledger.quarantine import reject_picture
    from asset_pipeline.work.clock import utc_now

    act_as_claimed()
    with _installation() as inst:
        found = _find(inst, job, picture)
        with inst.ledger.begin() as tx:
            rejected = reject_picture(tx, found, utc_now())
    if not rejected:
        raise UsageError(f"The picture is {found.state} already.", "`asset-pipeline quarantine list` names the rest.")
    console.say("Rejected.")


@contextmanager
def _installation() -> Iterator[Installation]:
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        yield inst


def _find(inst: Installation, job: str, name: str) -> HeldPicture:
    from asset_pipeline.ledger.quarantine import find_picture

    with inst.ledger.read() as conn:
        found = find_picture(conn, job, name)
    if found is None:
        raise UsageError("There is no such picture in quarantine.", "`asset-pipeline quarantine list` names them.")
    return found


def _picture_row(inst: Installation, picture: HeldPicture) -> dict[str, Any]:
    return {
        "what": "picture",
        "job_id": picture.job_id,
        "picture": picture.name,
        "page": picture.page,
        "month": picture.month,
        "collection": picture.collection,
        "document": picture.upload if inst.policy.show_names else picture.report_id,
        "reason": picture.reason.value,
        **_in_words(picture.reason.value, of_picture=True),
        "state": picture.state,
        "since": picture.recorded_at,
        "decided_by": picture.decided_by,
        "decided_at": picture.decided_at,
    }


def _refused(inst: Installation, month: str | None) -> list[dict[str, Any]]:
    """Documents without a result and uploads in a wrong place, in the same columns."""
    from asset_pipeline.ledger import reading
    from asset_pipeline.ledger.requeue import WITHOUT_RESULT
    from asset_pipeline.ledger.uploads import UploadState, list_uploads

    names = inst.policy.show_names
    with inst.ledger.read() as conn:
        wanted = reading.months(conn) if month is None else [month]
        documents = [row for known in wanted for row in reading.documents_of_month(conn, known)]
        uploads = list_uploads(conn, month=month, states=(UploadState.REJECTED,))
    empty = dict.fromkeys(COLUMNS)
    rows: list[dict[str, Any]] = [
        empty
        | {"what": "document", "job_id": row.job_id, "month": row.month, "collection": row.collection}
        | {"document": row.name if names else row.report_id, "reason": row.reason, **_in_words(row.reason)}
        | {"state": row.state, "since": row.finished_at}
        for row in documents
        if row.state in WITHOUT_RESULT
    ]
    return rows + [
        empty
        | {"what": "upload", "month": row.month, "collection": row.collection}
        | {"document": (row.name or row.key) if names else row.upload_id}
        | {"reason": row.reason.value if row.reason else None, **_in_words(row.reason and row.reason.value)}
        | {"state": row.state.value, "since": row.first_seen_at}
        for row in uploads
    ]


def _in_words(reason: str | None, *, of_picture: bool = False) -> dict[str, str | None]:
    from asset_pipeline.reasons import Reason, explain

    if reason is None:
        return {"meaning": None, "what_to_do": None}
    explanation = explain(Reason(reason), of_picture=of_picture)
    return {"meaning": explanation.meaning, "what_to_do": explanation.remedy}
