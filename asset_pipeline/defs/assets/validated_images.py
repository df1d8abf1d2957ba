"""What was found: every picture of the month's documents, validated and in the archive, or named with a reason.

The work is done in ``work``, in decoder processes; this waits for it and tells the result. A page that does
not add up ends the step before the month counts as materialized. Data version: all outcomes and placements.
"""

from collections.abc import Iterator

import dagster as dg
from pydantic import Field

from asset_pipeline.defs import checks, figures, objective_checks, tables
from asset_pipeline.defs.assets.extraction_policy import current_extractor
from asset_pipeline.defs.assets.shared import GROUP, IMAGES, OWNERS, RULES, SOURCES
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.contact_sheet import contact_sheet
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import IntegrityError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger import measures, reading
from asset_pipeline.work.month import work_month

CODE_VERSION = "1"

POOL = "decoders"
"""Months that are decoded at once, over all runs: each uses every core that it may."""


class Decoding(dg.Config):
    """What may be changed when the month is materialized by hand."""

    workers: int = Field(
        default=0, ge=0, le=256, description="Decoder processes to use. 0: as many as the installation says."
    )


def build_validated_images(months: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset, in ``months``."""

    @dg.asset(
        name=IMAGES,
        partitions_def=months,
        deps=[SOURCES, RULES],
        group_name=GROUP,
        owners=OWNERS,
        kinds={"image"},
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        pool=POOL,
        check_specs=checks.check_specs(IMAGES, months),
        description="Every picture that the month's pages draw, with its true bytes and as the page shows it. A "
        "repeat is archived once; a picture that cannot be trusted is quarantined with a reason and takes no other "
        "with it. A month may be materialized again at any time: only what is new is worked.",
    )
    def validated_images(
        context: dg.AssetExecutionContext, config: Decoding, pipeline: dg.ResourceParam[Pipeline]
    ) -> Iterator[dg.AssetCheckResult | dg.MaterializeResult[None]]:
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            workers = config.workers or pipeline.workers
            work_month(inst, context.partition_key, workers=workers, progress=pipeline.progress)
            result, broken = _result(inst, context.partition_key, workers)
        if broken is not None:
            yield broken
            with told_to_dagster(pipeline):
                what = f"Pages of the month do not add up: {broken.description}"
                raise IntegrityError(what, "Tell the developers, and keep the ledger as it is.")
        yield result

    return validated_images


def _result(
    inst: Installation, month: str, workers: int | None
) -> tuple[dg.MaterializeResult[None], dg.AssetCheckResult | None]:
    """What to tell of the month, and the check that must not fail when it does."""
    with inst.ledger.read() as conn:
        summary, documents = reading.month_summary(conn, month), reading.documents_of_month(conn, month)
        unread = reading.unread_pages(conn, month)
        accounted = checks.every_page_accounted(summary)
        results = [
            accounted,
            checks.every_document_read(inst, documents),
            checks.every_page_read(inst, summary, documents, unread),
            checks.nothing_quarantined(inst, conn, summary, documents),
            *objective_checks.of_images(conn, month, inst.policy.objectives),
        ]
        held = {"quarantined_pictures": tables.quarantined(inst, conn, documents)} if summary.quarantined else {}
        stages, version = measures.stage_times(conn, month), measures.results_digest(conn, month)
    sheet = contact_sheet(inst, month, documents, workers)
    result = dg.MaterializeResult[None](
        data_version=dg.DataVersion(version),
        check_results=results,
        metadata={
            **figures.accounts(summary),
            **({"contact_sheet": sheet} if sheet else {}),
            **held,
            "document_table": tables.accounts(inst, documents, unread),
            **figures.times(stages),
            **figures.deadlines(documents),
            **figures.rules(inst, documents, current_extractor(inst)),
        },
    )
    return result, None if accounted.passed else accounted
