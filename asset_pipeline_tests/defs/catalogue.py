"""What Dagster is told about the pipeline, as plain values: for the snapshot beside this file.

After a change that is meant: `.venv/bin/python -m asset_pipeline_tests.defs.catalogue` and read the difference.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dagster as dg

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.settings import Settings

SNAPSHOT = Path(__file__).with_name("asset_catalogue.json")


def catalogue() -> dict[str, Any]:
    """Assets, checks, jobs, sensors and schedules, by name."""
    defs = build_defs(pipeline=Pipeline(Settings(first_month="2024-01", timezone="UTC")))
    repository = defs.get_repository_def()
    graph = defs.resolve_asset_graph()
    return {
        "assets": {key.to_user_string(): _asset(graph, repository, key) for key in sorted(graph.get_all_asset_keys())},
        "checks": {
            key.name: {
                "asset": key.asset_key.to_user_string(),
                "description": graph.get_check_spec(key).description,
                "by_month": graph.get_check_spec(key).partitions_def is not None,
                "blocking": graph.get_check_spec(key).blocking,
            }
            for key in sorted(graph.asset_check_keys)
        },
        "jobs": {
            job.name: {"assets": sorted(key.to_user_string() for key in job.asset_layer.executable_asset_keys)}
            | {"executor": job.executor_def.name, "tags": dict(job.tags)}
            for job in repository.get_all_jobs()
            if not job.name.startswith("__")
        },
        "sensors": {
            sensor.name: {"seconds": sensor.minimum_interval_seconds, "status": sensor.default_status.value}
            | {"job": sensor.job_name if sensor.has_jobs else None}
            for sensor in repository.sensor_defs
        },
        "schedules": {
            schedule.name: {"cron": schedule.cron_schedule, "timezone": schedule.execution_timezone}
            | {"job": schedule.job_name, "status": schedule.default_status.value}
            for schedule in repository.schedule_defs
        },
        "executor": repository.get_implicit_global_asset_job_def().executor_def.name,
    }


def _asset(graph: Any, repository: dg.RepositoryDefinition, key: dg.AssetKey) -> dict[str, Any]:
    node = graph.get(key)
    op = repository.assets_defs_by_key[key].op if node.is_materializable else None
    months = node.partitions_def
    tags = {name: value for name, value in node.tags.items() if not name.startswith("dagster/kind/")}
    return {
        "deps": sorted(parent.to_user_string() for parent in node.parent_keys),
        "group": node.group_name,
        "kinds": sorted(node.kinds),
        "owners": list(node.owners),
        "tags": tags,
        "description": node.description,
        "code_version": node.code_version,
        "observable": node.is_observable,
        "months": months and [months.start.strftime(months.fmt), months.fmt, str(months.timezone), months.end_offset],
        "pool": op and op.pool,
        "config": op and _config(op),
        "retry_policy": op and _retries(op.retry_policy),
    }


def _config(op: Any) -> dict[str, Any]:
    fields = getattr(op.config_schema.config_type, "fields", None) or {}
    return {name: {"default": field.default_value, "description": field.description} for name, field in fields.items()}


def _retries(policy: dg.RetryPolicy | None) -> dict[str, Any] | None:
    if policy is None:
        return None
    return {
        "max_retries": policy.max_retries,
        "delay": policy.delay,
        "backoff": policy.backoff and policy.backoff.value,
        "jitter": policy.jitter and policy.jitter.value,
    }


if __name__ == "__main__":
    SNAPSHOT.write_text(json.dumps(catalogue(), indent=2) + "\n", "utf-8")
