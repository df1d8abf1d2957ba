"""The rules that decide what is extracted, as an asset that is watched, never made.

Its data version is the digest of the extractor versions: each engine, every library that can change a byte, and the
extraction policy. So months that were read by other rules are shown as out of date; nothing reads them again by
itself (REQUIREMENTS R2.1). Limits themselves belong in the policy file.
"""

import hashlib

import dagster as dg

from asset_pipeline.defs.assets.shared import GROUP, RULES, without_warning
from asset_pipeline.defs.border import told_to_dagster
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.extraction.engine import engine_for, extractor_version, load_engine
from asset_pipeline.installation import Installation

DATA_VERSION_TAG = "dagster/data_version"


def current_extractor(inst: Installation) -> str:
    """The extractor version of today, of PDF documents."""
    return extractor_version(load_engine(inst.settings.engine), inst.policy)


def observation_when_changed(inst: Installation, instance: dg.DagsterInstance) -> dg.AssetObservation | None:
    """An observation of the rules, unless the last one says the same: each costs an event for ever."""
    version = _digest(inst)
    last = instance.fetch_observations(dg.AssetKey(RULES), limit=1).records
    if last and last[0].asset_observation and last[0].asset_observation.tags.get(DATA_VERSION_TAG) == version:
        return None
    return dg.AssetObservation(RULES, metadata=_metadata(inst), tags={DATA_VERSION_TAG: version})


def build_extraction_policy() -> dg.SourceAsset:
    """The observable asset."""

    with without_warning(dg.BetaWarning):

        @dg.observable_source_asset(
            name=RULES,
            group_name=GROUP,
            tags={"dagster/kind/yaml": ""},
            description="Engine, libraries and policy that decide which pictures are found and how. The sensor looks "
            "at them with every tick. When they change, months that were read before are shown as out of date; they "
            "stay as they are.",
        )
        def extraction_policy(pipeline: dg.ResourceParam[Pipeline]) -> dg.ObserveResult:
            with told_to_dagster(pipeline), pipeline.open() as inst:
                version = dg.DataVersion(_digest(inst))
                return dg.ObserveResult(data_version=version, metadata=_metadata(inst))

    return extraction_policy


def _digest(inst: Installation) -> str:
    """Over the version of each engine that reads one of the accepted media types."""
    engines = {engine_for(media_type, inst.settings.engine) for media_type in inst.policy.media_types.documents}
    versions = sorted(extractor_version(load_engine(name), inst.policy) for name in engines)
    return hashlib.sha256("\n".join(versions).encode()).hexdigest()


def _metadata(inst: Installation) -> dict[str, str]:
    return {
        "policy_sha256": inst.policy.digest,
        "extraction_policy_sha256": inst.policy.extraction_digest,
        "extractor_version": current_extractor(inst),
    }
