"""Whoever is asked about a month says the same: Dagster, command line, gallery, catalogue and manifests."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import dagster as dg

from asset_pipeline.archive.catalogue_query import ask
from asset_pipeline.cli.status import month_row
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import reading
from asset_pipeline.settings import Settings

MONTH = "2026-10"
FIXTURES = Path(__file__).parents[2] / "fixtures" / "inbox"
NAMES = ("documents", "pages", "drawn", "archived", "collapsed", "decorative", "not_shown", "quarantined", "derived")
Figures = dict[str, int]


def told_by_dagster(instance: dg.DagsterInstance) -> Figures:
    record = instance.fetch_materializations(dg.AssetRecordsFilter(dg.AssetKey("validated_images")), limit=1).records[0]
    found = {name: value.value for name, value in record.asset_materialization.metadata.items()}
    return {name: found.get(name, found.get(f"pictures_{name}")) for name in NAMES}


def told_by_gallery(archive: Path) -> Figures:
    text = (archive / "galleries" / MONTH / "month.js").read_text("ascii")
    totals = json.loads(text[text.index(",") + 1 : text.rindex(")")])["totals"]
    return {name: totals[name] for name in NAMES}


def told_by_manifests(archive: Path) -> Figures:
    bodies = [json.loads(path.read_bytes()) for path in (archive / "manifests" / MONTH).glob("*.json")]
    contents = [_content(body) for body in bodies]
    pages: list[dict[str, Any]] = [page for content in contents for page in content["pages"]]
    sums: Counter[str] = Counter()
    for page in pages:
        for name in ("drawn", "archived", "collapsed", "decorative", "not_shown"):
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


CATALOGUE = """
SELECT
  (SELECT count(DISTINCT report_id) FROM pages),
  (SELECT count(page) FROM pages WHERE state <> 'late' AND drawn IS NOT NULL),
  count(*) FILTER (NOT derived),
  count(*) FILTER (NOT derived AND status = 'archived'),
  count(*) FILTER (status = 'collapsed'),
  count(*) FILTER (status = 'decorative'),
  count(*) FILTER (status = 'not_shown'),
  count(*) FILTER (status = 'quarantined'),
  count(*) FILTER (derived AND status = 'archived')
FROM (SELECT *, kind IN ('composite', 'vector_figure') AS derived FROM pictures)
"""


def test_all_who_tell_of_a_month_tell_the_same_figures(settings: Settings, instance: dg.DagsterInstance) -> None:
    for collection in FIXTURES.iterdir():
        target = Path(settings.store_address("inbox"), collection.name, MONTH)
        shutil.copytree(collection / MONTH, target)
    materialize_months(settings, [MONTH], instance=instance)
    archive = Path(settings.store_address("archive"))
    with open_installation(settings) as inst:
        with inst.ledger.read() as conn:
            summary = reading.month_summary(conn, MONTH)
        catalogue = dict(zip(NAMES, ask(inst, CATALOGUE).rows[0], strict=True))
    ledger = {name: getattr(summary, name) for name in NAMES}
    assert min(ledger[name] for name in NAMES if name != "not_shown") > 0
    assert told_by_dagster(instance) == ledger
    assert told_by_gallery(archive) == ledger
    assert told_by_manifests(archive) == ledger
    assert catalogue == ledger
    row = month_row(summary)
    assert (row["documents"], row["pages"], row["pictures"], row["figures"]) == (
        ledger["documents"],
        ledger["pages"],
        ledger["archived"],
        ledger["derived"],
    )
