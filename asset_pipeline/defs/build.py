"""Puts the definitions together: a fresh graph for whoever asks (the web page, the command line, a test).

Nothing is contacted; of the settings only the first month and the time zone are looked at here.
"""

from __future__ import annotations

import gc

import dagster as dg

from asset_pipeline.defs.alerts import build_alerts
from asset_pipeline.defs.assets.extraction_policy import build_extraction_policy
from asset_pipeline.defs.assets.image_catalogue import build_image_catalogue
from asset_pipeline.defs.assets.image_gallery import build_image_gallery
from asset_pipeline.defs.assets.manifests import build_manifests
from asset_pipeline.defs.assets.source_documents import build_source_documents
from asset_pipeline.defs.assets.validated_images import build_validated_images
from asset_pipeline.defs.evidence import build_every_day_at_four, build_evidence, build_evidence_log
from asset_pipeline.defs.janitor import build_every_quarter_of_an_hour, build_janitor, build_leftovers
from asset_pipeline.defs.jobs import build_monthly_archive
from asset_pipeline.defs.partitions import monthly_partitions
from asset_pipeline.defs.resources import LedgerFrames, Pipeline
from asset_pipeline.defs.retention import build_deletions, build_every_day_at_one, build_retention
from asset_pipeline.defs.schedules import build_close_of_month, build_nightly_catch_up
from asset_pipeline.defs.sensors import build_new_uploads
from asset_pipeline.settings import load_settings


def build_defs(*, pipeline: Pipeline | None = None, **resource_overrides: object) -> dg.Definitions:
    """All definitions, working in ``pipeline`` (default: what the environment says)."""
    pipeline = pipeline or Pipeline()
    months = monthly_partitions(pipeline.settings or load_settings())
    job, janitor, evidence = build_monthly_archive(), build_janitor(), build_evidence()
    retention = build_retention()
    return dg.Definitions(
        assets=[
            build_extraction_policy(),
            build_source_documents(months),
            build_validated_images(months),
            build_manifests(months),
            build_image_gallery(months),
            build_image_catalogue(months),
            build_leftovers(),
            build_evidence_log(),
            build_deletions(),
        ],
        jobs=[job, janitor, evidence, retention],
        sensors=[build_new_uploads(months, job), build_alerts()],
        schedules=[
            build_close_of_month(months, job),
            build_nightly_catch_up(months, job),
            build_every_quarter_of_an_hour(janitor),
            build_every_day_at_four(evidence),
            build_every_day_at_one(retention),
        ],
        resources={"pipeline": pipeline, "io_manager": LedgerFrames(pipeline), **resource_overrides},
        # The heavy work has processes of its own; a process for each step would cost seconds a month.
        executor=dg.in_process_executor,
    )


# All modules are loaded now, and none is ever garbage: a run that reads much would look through them several times, for
# a fifth of a second each.
gc.freeze()
