"""What was written down: one manifest a report, built from the ledger alone, and whether the archive agrees.

What is in a manifest belongs in ``archive``. Data version: a digest over the content of the newest manifests, without
ids and times, so a month that is run again without change leaves everything downstream as it is.
"""

import dagster as dg

from asset_pipeline.archive.audit import compare_month
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.defs import checks, figures, objective_checks, tables
from asset_pipeline.defs.assets.extraction_policy import current_extractor
from asset_pipeline.defs.assets.shared import GROUP, IMAGES, MANIFESTS, OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.ledger import reading

CODE_VERSION = "1"


def build_manifests(months: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset, in ``months``."""

    @dg.asset(
        name=MANIFESTS,
        partitions_def=months,
        deps=[IMAGES],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"json"},
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        check_specs=checks.check_specs(MANIFESTS, months),
        description="One manifest a report, refused ones too: what was found on which page, digests of every file, "
        "by which extractor and policy, and until when it is kept. Nothing changed means the same bytes; a change "
        "makes a new edition, and the old one is kept.",
    )
    def manifests(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it plain
        month = context.partition_key
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            published = publish_manifests(inst, month, pipeline.clock())
            mismatches = compare_month(inst, month, published)
            with inst.ledger.read() as conn:
                documents, version = reading.documents_of_month(conn, month), reading.content_digest(conn, month)
                kept = objective_checks.nothing_past_deadline(conn, month, inst.policy.objectives, pipeline.clock())
            return dg.MaterializeResult(
                data_version=dg.DataVersion(version),
                check_results=[checks.manifest_matches_archive(mismatches, len(published)), kept],
                metadata={
                    "dagster/partition_row_count": len(published),
                    "manifests": len(published),
                    "manifests_written": sum(row.written for row in published),
                    "manifests_content_sha256": version,
                    # In the archive, wherever that is: a path would tell of the machine.
                    "manifests_folder": dg.MetadataValue.path(f"manifests/{month}"),
                    "manifest_table": tables.published(inst, documents),
                    **figures.deadlines(documents),
                    **figures.rules(inst, documents, current_extractor(inst)),
                },
            )

    return manifests
