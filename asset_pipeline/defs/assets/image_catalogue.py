"""What analysts query: the month's pictures and pages as Parquet.

Columns and bytes belong in ``archive.catalogue``. Data version: digest of the two files.
"""

import dagster as dg

from asset_pipeline.archive.catalogue import publish_catalogue
from asset_pipeline.defs.assets.shared import CATALOGUE, GROUP, MANIFESTS, OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline

CODE_VERSION = "1"


def build_image_catalogue(months: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset, in ``months``."""

    @dg.asset(
        name=CATALOGUE,
        partitions_def=months,
        deps=[MANIFESTS],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"parquet"},
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        description="The month's pictures and pages as tables for analysts, one Parquet file each, in the archive. "
        "Ask all months at once with `asset-pipeline catalogue query`.",
    )
    def image_catalogue(
        context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]
    ) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it plain
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            made = publish_catalogue(inst, context.partition_key)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(made.digest),
                metadata={
                    "dagster/partition_row_count": made.pictures,
                    "keys": ", ".join(made.keys),
                    "placements": made.pictures,
                    "pages": made.pages,
                    "file_bytes": made.bytes,
                    "files_written": made.written,
                },
            )

    return image_catalogue
