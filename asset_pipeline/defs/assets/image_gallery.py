"""What people look at: the month's pictures as a folder of plain files that a browser opens.

What is in it and how it is written belongs in ``archive.gallery``, its small images in ``work.previews``. Data version:
digest of what the gallery says.
"""

import dagster as dg

from asset_pipeline.archive.gallery.publish import publish_gallery
from asset_pipeline.defs.assets.shared import GALLERY, GROUP, MANIFESTS, OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.work.previews import open_previews

CODE_VERSION = "1"


def build_image_gallery(months: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset, in ``months``."""

    @dg.asset(
        name=GALLERY,
        partitions_def=months,
        deps=[MANIFESTS],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"html"},
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        description="The month's pictures to look at: open index.html in a browser, from the folder or the bucket; "
        "`asset-pipeline gallery MONTH` says where it lies. "
        "Filter by document, kind, status and text; see each page with its pictures, and why a page has none. "
        "Nothing is loaded from elsewhere.",
    )
    def image_gallery(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it plain
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            made = publish_gallery(inst, context.partition_key, lambda: open_previews(inst, pipeline.workers))
            return dg.MaterializeResult(
                data_version=dg.DataVersion(made.digest),
                metadata={
                    "dagster/partition_row_count": made.pictures,
                    "open_in_a_browser": f"{made.key} in the archive; where that is, "
                    f"`asset-pipeline gallery {context.partition_key}` says",
                    "placements": made.pictures,
                    "thumbnails": made.thumbnails,
                    "files": made.files,
                    "file_bytes": made.bytes,
                    "files_written": made.written,
                    "files_removed": made.removed,
                },
            )

    return image_gallery
