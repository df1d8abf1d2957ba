"""What came in: takes the month's new documents from the inbox and says what was not taken and why.

Whether a document may come in is decided in ``intake``. Data version: which reports there are, with the bytes of each.
"""

import dagster as dg
from pydantic import Field

from asset_pipeline.defs import figures, tables
from asset_pipeline.defs.assets.extraction_policy import current_extractor, observation_when_changed
from asset_pipeline.defs.assets.shared import GROUP, OWNERS, SOURCES
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.defs.run_tags import tag_run
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.intake.deferral import deferrals
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.uploads import UploadState

CODE_VERSION = "1"


class Intake(dg.Config):
    """What may be changed when the month is materialized by hand."""

    wait: bool = Field(
        default=True,
        description="Wait some seconds until new files have stopped changing. Off: take what has settled already.",
    )


def build_source_documents(months: dg.PartitionsDefinition[str]) -> dg.AssetsDefinition:
    """The asset, in ``months``."""

    @dg.asset(
        name=SOURCES,
        partitions_def=months,
        group_name=GROUP,
        owners=OWNERS,
        kinds={"pdf"},
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        description="The month's reports as they were dropped into the inbox (collection/YYYY-MM/name). Each is "
        "stored unchanged under the digest of its bytes; a changed file under the same name becomes a new revision. "
        "Files in a wrong place, and files that are still being written, are listed with what to do.",
    )
    def source_documents(
        context: dg.AssetExecutionContext, config: Intake, pipeline: dg.ResourceParam[Pipeline]
    ) -> dg.MaterializeResult:  # type: ignore[type-arg]  # Dagster wants it plain
        month = context.partition_key
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            if observation := observation_when_changed(inst, context.instance):
                context.log_event(observation)
            admission = admit_month(inst, month, pipeline.clock, wait=config.wait, progress=pipeline.progress)
            with inst.ledger.read() as conn:
                summary, documents = reading.month_summary(conn, month), reading.documents_of_month(conn, month)
                uploads, version = tables.open_uploads(conn, month), reading.input_digest(conn, month)
                held = deferrals(inst, conn, pipeline.clock())
            tag_run(context, inst, documents)
            rejected = sum(row.state is UploadState.REJECTED for row in uploads)
            return dg.MaterializeResult(
                data_version=dg.DataVersion(version),
                metadata={
                    **figures.incoming(summary, rejected),
                    "documents_new": len(admission.job_ids),
                    "uploads_deferred": sum(row.upload_id in held for row in uploads),
                    **({"not_taken": tables.uploads(inst, uploads, held)} if uploads else {}),
                    "document_table": tables.incoming(inst, documents),
                    **figures.deadlines(documents),
                    **figures.rules(inst, documents, current_extractor(inst)),
                },
            )

    return source_documents
