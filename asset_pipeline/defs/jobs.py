"""The one job: a month from inbox to manifests, gallery and catalogue, and how a run of it is asked for.

Materializing from the web page uses Dagster's own asset job instead, so whatever must hold for both (pool, retry
policy, executor) is set on the assets and the definitions, never here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg

from asset_pipeline.defs.assets.shared import CATALOGUE, GALLERY, IMAGES, MANIFESTS, SOURCES

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

MONTHLY_ARCHIVE = "monthly_archive"
PARTITION_TAG = "dagster/partition"
"""Dagster sets it on every run of a month, from whichever side the run was asked for."""


def build_monthly_archive() -> AssetJob:
    """The job; its months are those of its assets."""
    return dg.define_asset_job(
        MONTHLY_ARCHIVE,
        selection=dg.AssetSelection.assets(SOURCES, IMAGES, MANIFESTS, GALLERY, CATALOGUE),
        tags={"asset_pipeline/job": MONTHLY_ARCHIVE},
        description="Takes in what is new in a month, archives its pictures, writes its manifests, and brings "
        "its gallery and its catalogue up to date. Running it again does only what is new.",
    )
