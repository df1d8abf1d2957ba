"""`gallery`, `page` and `export`: what people look at, why a page shows what it shows, and pictures to take along."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet, number_of
from asset_pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection

    from asset_pipeline.intake.deferral import Deferral
    from asset_pipeline.ledger.reading import DocumentRow
    from asset_pipeline.settings import Settings

Month = Annotated[str, typer.Argument(help="Month, as YYYY-MM.", show_default=False)]
PAGE_COLUMNS = ("month", "document", "report_id", "page", "label", "state", "meaning", "remedy")


def gallery(
    month: Month,
    anew: Annotated[
        bool, typer.Option("--anew", help="Make every file of it again: one of them is damaged, or was changed.")
    ] = False,
) -> None:
    """Print where the gallery of a month is, after bringing it up to date."""
    from asset_pipeline.archive.gallery.publish import publish_gallery
    from asset_pipeline.cli.inbox import look_into_inbox
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings
    from asset_pipeline.work.previews import open_previews

    settings = load_settings()
    check_months(settings, [month])
    with open_installation(settings) as inst:
        look_into_inbox(inst, month)
        publish_gallery(inst, month, lambda: open_previews(inst), anew=anew)
    typer.echo(gallery_address(settings, month))


def gallery_address(settings: Settings, month: str) -> str:
    """The start page of the gallery of ``month``: a path from the root, or an address in a bucket."""
    from asset_pipeline.archive.gallery.publish import gallery_prefix

    archive = settings.store_address("archive")
    return f"{archive if '://' in archive else Path(archive).absolute()}/{gallery_prefix(month)}index.html"


def export(
    month: Month,
    target: Annotated[Path, typer.Argument(help="ZIP file to write.", show_default=False)],
    document: Annotated[
        str | None, typer.Option(help="Only this document: name, collection/name or report id.")
    ] = None,
) -> None:
    """Write a month's pictures (or one document's) into a ZIP, with readable names and a table."""
    from asset_pipeline.archive.export import export_month
    from asset_pipeline.cli.months import check_months
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    settings = load_settings()
    check_months(settings, [month])
    with open_installation(settings) as inst:
        made = export_month(inst, month, target, document)
    console.say(
        f"{number_of(made.pictures, 'picture')} of {number_of(made.documents, 'document')}, "
        f"{number_of(made.rows, 'row')} in pictures.csv."
    )


def page(
    document: Annotated[str, typer.Argument(help="Name, collection/name or report id.", show_default=False)],
    number: Annotated[str, typer.Argument(metavar="PAGE", help="Page, from 1, or as printed.", show_default=False)],
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Say what a page has to show, and why it has nothing: no picture, late, quarantined or decoration."""
    from asset_pipeline.cli.inbox import look_into_inbox
    from asset_pipeline.installation import open_installation
    from asset_pipeline.settings import load_settings

    with open_installation(load_settings()) as inst:
        deferred = look_into_inbox(inst)
        with inst.ledger.read() as conn:
            rows = _answers(conn, document, number, inst.policy.show_names, deferred)
    console.show(format_, [Sheet("Page", PAGE_COLUMNS, rows, ("label",))], rows)


def _answers(
    conn: Connection, wanted: str, number: str, show_names: bool, deferred: Mapping[str, Deferral]
) -> list[dict[str, Any]]:
    from asset_pipeline.archive.export import is_called
    from asset_pipeline.archive.page_states import answer_for_upload, name_of_upload
    from asset_pipeline.ledger import reading
    from asset_pipeline.ledger.uploads import OPEN, list_uploads

    rows = []
    for month in reading.months(conn):
        for row in reading.documents_of_month(conn, month):
            if is_called(row, wanted, show_names):
                rows.append(_answer(conn, row, number, show_names))
    for upload in list_uploads(conn, states=OPEN) if show_names else ():
        if wanted in (name_of_upload(upload), f"{upload.collection}/{upload.name}", upload.key):
            told = answer_for_upload(upload, deferred.get(upload.upload_id))
            head = {"month": upload.month, "document": wanted, "report_id": None, "page": number, "label": None}
            rows.append(head | {"state": told.state.value, "meaning": told.meaning, "remedy": told.remedy})
    if not rows:
        raise UsageError("There is no document of that name.", "`asset-pipeline status --format csv` lists them all.")
    return rows


def _answer(conn: Connection, row: DocumentRow, number: str, show_names: bool) -> dict[str, Any]:
    from asset_pipeline.archive.page_states import answer_for_page
    from asset_pipeline.ledger import reading

    pages = {page.page: page for page in reading.pages_of(conn, row.job_id)} if row.state == "succeeded" else {}
    wanted = int(number) if number.isascii() and number.isdigit() else 0
    if not wanted:
        wanted = next((page.page for page in pages.values() if page.label == number), 0)
    if not wanted or (row.pages is not None and wanted > row.pages):
        raise UsageError(
            f"The document has no page {console.plain(number)}.",
            f"It has {number_of(row.pages or 0, 'page')}, counted from 1.",
        )
    found = answer_for_page(row, pages.get(wanted))
    return {
        "month": row.month,
        "document": f"{row.collection}/{row.name}" if show_names and row.name else row.report_id,
        "report_id": row.report_id,
        "page": wanted,
        "label": pages[wanted].label if wanted in pages else None,
        "state": found.state.value,
        "meaning": found.meaning,
        "remedy": found.remedy,
    }
