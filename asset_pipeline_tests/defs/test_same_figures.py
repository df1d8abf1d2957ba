"""Whoever is asked about a month says the same: Dagster, command line, gallery, catalogue and manifests.

The sums of the month, and the account of each of its documents. What Dagster's own pages and the gallery show in a
browser is compared in ``ui.test_dagster_pages``.
"""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg

from asset_pipeline.archive.catalogue_query import ask
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import reading
from asset_pipeline.settings import Settings
from asset_pipeline_tests.commands import Command, WarmProcess

MONTH = "2026-10"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "inbox"
OF_A_PAGE = ("drawn", "archived", "collapsed", "decorative", "consumed", "not_shown")
NAMES = ("documents", "pages", *OF_A_PAGE, "quarantined", "derived")
OF_A_DOCUMENT = ("pages", *OF_A_PAGE, "quarantined")
Figures = dict[str, int]
Documents = dict[str, tuple[int, ...]]
"""``OF_A_DOCUMENT`` by collection/name, of those that were read."""


def told_by_dagster(instance: dg.DagsterInstance) -> tuple[Figures, Documents]:
    record = instance.fetch_materializations(dg.AssetRecordsFilter(dg.AssetKey("validated_images")), limit=1).records[0]
    found = {name: value.value for name, value in record.asset_materialization.metadata.items()}
    records = [row.data for row in record.asset_materialization.metadata["document_table"].records]
    documents = {row["document"]: _account(row) for row in records if row["state"] == "succeeded"}
    return {name: found.get(name, found.get(f"pictures_{name}")) for name in NAMES}, documents


def told_by_command_line(settings: Settings, command: Command) -> tuple[Figures, Documents]:
    ended = command("status", MONTH, "--format", "json", ASSET_PIPELINE_HOME=str(settings.home))
    assert ended.status == 0, ended.err
    told = json.loads(ended.out)
    (month,) = told["months"]
    rows = [row | {"archived": row["pictures"]} for row in told["rows"] if row["state"] == "succeeded"]
    documents = {f"{row['collection']}/{row['name']}": _account(row) for row in rows}
    return month | {"archived": month["pictures"], "derived": month["figures"]}, documents


def told_by_gallery(archive: Path) -> tuple[Figures, Documents]:
    text = (archive / "galleries" / MONTH / "month.js").read_text("ascii")
    month = json.loads(text[text.index(",") + 1 : text.rindex(")")])
    read = [row for row in month["documents"] if row["state"] == "read"]
    documents = {f"{row['collection']}/{row['title']}": _account(row) for row in read}
    return {name: month["totals"][name] for name in NAMES}, documents


def _account(row: dict[str, Any]) -> tuple[int, ...]:
    return tuple(row[name] for name in OF_A_DOCUMENT)


def told_by_manifests(archive: Path) -> Figures:
    bodies = [json.loads(path.read_bytes()) for path in (archive / "manifests" / MONTH).glob("*.json")]
    contents = [_content(body) for body in bodies]
    pages: list[dict[str, Any]] = [page for content in contents for page in content["pages"]]
    sums: Counter[str] = Counter()
    for page in pages:
        for name in OF_A_PAGE:
            sums[name] += page[name]
        sums["quarantined"] += page["quarantined"] + page["derived_quarantined"]
        sums["derived"] += page["derived_archived"]
    return {name: sums[name] for name in NAMES} | {"documents": len(contents), "pages": len(pages)}


def _content(body: dict[str, Any]) -> dict[str, Any]:
    """The content of a manifest, in its envelope or plain."""
    if "payload" in body:
        import base64

        body = json.loads(base64.b64decode(body["payload"]))
    return body["content"]


CATALOGUE_DOCUMENTS = """
SELECT collection || '/' || document, count(page), sum(drawn), sum(archived), sum(collapsed), sum(decorative),
  sum(consumed), sum(not_shown), sum(quarantined + derived_quarantined)
FROM pages WHERE drawn IS NOT NULL GROUP BY ALL
"""
CATALOGUE = """
SELECT
  (SELECT count(DISTINCT report_id) FROM pages),
  (SELECT count(page) FROM pages WHERE state <> 'late' AND drawn IS NOT NULL),
  count(*) FILTER (NOT derived),
  count(*) FILTER (NOT derived AND status = 'archived'),
  count(*) FILTER (status = 'collapsed'),
  count(*) FILTER (status = 'decorative'),
  count(*) FILTER (status = 'consumed'),
  count(*) FILTER (status = 'not_shown'),
  count(*) FILTER (status = 'quarantined'),
  count(*) FILTER (derived AND status = 'archived')
FROM (SELECT *, kind IN ('composite', 'vector_figure') AS derived FROM pictures)
"""


def test_all_who_tell_of_a_month_tell_the_same_figures(
    settings: Settings, instance: dg.DagsterInstance, warm_process: WarmProcess, tmp_path: Path
) -> None:
    for collection in FIXTURES.iterdir():
        target = Path(settings.store_address("inbox"), collection.name, MONTH)
        shutil.copytree(collection / MONTH, target)
    materialize_months(settings, [MONTH], instance=instance)
    archive = Path(settings.store_address("archive"))
    with open_installation(settings) as inst:
        with inst.ledger.read() as conn:
            summary = reading.month_summary(conn, MONTH)
        catalogue = dict(zip(NAMES, ask(inst, CATALOGUE).rows[0], strict=True))
        catalogue_documents = {name: tuple(account) for name, *account in ask(inst, CATALOGUE_DOCUMENTS).rows}
    ledger = {name: getattr(summary, name) for name in NAMES}
    assert min(ledger[name] for name in NAMES if name not in ("not_shown", "consumed")) > 0
    dagster, dagster_documents = told_by_dagster(instance)
    gallery, gallery_documents = told_by_gallery(archive)
    command_line, command_line_documents = told_by_command_line(settings, Command(tmp_path, warm_process))
    assert dagster == ledger
    assert gallery == ledger
    assert told_by_manifests(archive) == ledger
    assert catalogue == ledger
    assert {name: command_line[name] for name in NAMES} == ledger
    assert len(dagster_documents) == 8
    assert dagster_documents == gallery_documents == command_line_documents == catalogue_documents
