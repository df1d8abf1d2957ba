"""The log of events as Dagster sees it: once a day it is covered by a checkpoint and verified as a whole.

Every run covers its own events when it ends; this makes sure that it succeeded, and that nothing was touched since.
What is verified, and what that proves, is in ``evidence``.
"""

from typing import TYPE_CHECKING

import dagster as dg

from asset_pipeline.archive.proof import Proof, prove_ledger
from asset_pipeline.defs.assets.shared import OWNERS
from asset_pipeline.defs.border import RETRIES, told_to_dagster
from asset_pipeline.defs.resources import Pipeline

if TYPE_CHECKING:
    from dagster._core.definitions.unresolved_asset_job_definition import UnresolvedAssetJobDefinition as AssetJob

LOG = "evidence_log"
VERIFIES = "log_verifies"
EVIDENCE = "evidence"
CODE_VERSION = "1"


def build_evidence_log() -> dg.AssetsDefinition:
    """The asset, with its check."""

    @dg.asset(
        name=LOG,
        group_name="operations",
        owners=OWNERS,
        code_version=CODE_VERSION,
        retry_policy=RETRIES,
        check_specs=[
            dg.AssetCheckSpec(
                VERIFIES,
                asset=LOG,
                description="Every event is signed, in its place and covered by a checkpoint. When it fails: change "
                "nothing, keep ledger and stores as they are, and run `asset-pipeline evidence verify`, which says "
                "which event and what that means.",
            )
        ],
        description="The signed log of everything that was admitted, archived, decided and deleted. Covered by a "
        "checkpoint in the archive, and in the second store where there is one, and verified as a whole.",
    )
    def evidence_log(context: dg.AssetExecutionContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.MaterializeResult:  # type: ignore[type-arg]
        with told_to_dagster(pipeline, context), pipeline.open() as inst:
            inst.checkpoints.seal()
            proof = prove_ledger(inst, inst.trust(), processes=1)
        return dg.MaterializeResult(check_results=[_judged(proof)], metadata=_sums(proof))

    return evidence_log


def build_evidence() -> "AssetJob":
    """The job."""
    return dg.define_asset_job(
        EVIDENCE,
        selection=dg.AssetSelection.assets(LOG),
        description="Covers the log of events with a checkpoint and verifies it. Safe at any time.",
    )


def build_every_day_at_four(job: "AssetJob") -> dg.ScheduleDefinition:
    """The schedule of ``job``."""
    return dg.ScheduleDefinition(
        name="every_day_at_four",
        job=job,
        cron_schedule="0 4 * * *",
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description="Every day at 04:00: covers the log of events with a checkpoint and verifies it.",
    )


def _judged(proof: Proof) -> dg.AssetCheckResult:
    found = proof.verdict.findings
    first = f"{found[0].fault.name.lower()} at event {found[0].seq}: {found[0].what}." if found else "All of it holds."
    return dg.AssetCheckResult(
        check_name=VERIFIES, passed=not found, severity=dg.AssetCheckSeverity.ERROR, description=first
    )


def _sums(proof: Proof) -> dict[str, int]:
    verdict = proof.verdict
    return {
        "events": verdict.events,
        "events_not_covered": verdict.unanchored,
        "checkpoints": verdict.checkpoints,
        "faults": len(verdict.findings),
    }
