"""The catalogue that people see, and the versions and files that Dagster is run with."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import dagster as dg
import pytest
import yaml

import asset_pipeline
from asset_pipeline.defs.assets.shared import CATALOGUE, GALLERY, IMAGES, MANIFESTS, SOURCES
from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import ConfigurationError
from asset_pipeline.settings import Settings
from asset_pipeline_tests.defs.catalogue import SNAPSHOT, catalogue

ROOT = Path(asset_pipeline.__file__).parents[1]

LATER = {"pandas", "pyarrow", "numpy", "duckdb", "PIL", "pikepdf", "pypdfium2", "boto3", "alembic"}
"""Libraries that only a step needs: every process of Dagster would pay for them."""


def _configuration(name: str) -> dict[str, object]:
    return yaml.safe_load((ROOT / name).read_text("utf-8"))


def test_the_catalogue_changes_only_on_purpose() -> None:
    # `.venv/bin/python -m asset_pipeline_tests.defs.catalogue` writes the snapshot anew.
    assert catalogue() == json.loads(SNAPSHOT.read_text("utf-8"))


def test_the_parts_of_dagster_are_of_one_family() -> None:
    core = version("dagster")
    assert {version(f"dagster-{part}") for part in ("graphql", "webserver", "shared", "pipes")} == {core}
    major, minor, patch = core.split(".")
    assert (major, version("dagster-postgres")) == ("1", f"0.{int(minor) + 16}.{patch}")


def test_the_definitions_are_sound_and_load_without_a_warning_or_a_file(tmp_path: Path) -> None:
    script = (
        "import sys; import asset_pipeline.definitions as door; "
        f"assert not {LATER} & set(sys.modules), {LATER} & set(sys.modules); door.defs.validate_loadable(door.defs)"
    )
    before = _seconds_of_children()
    ended = subprocess.run(
        [sys.executable, "-W", "error:::dagster", "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert _seconds_of_children() - before < 8, "processor time, which other work hardly moves; 2 on a quiet machine"
    assert list(tmp_path.iterdir()) == []


def _seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_time_zone_that_does_not_exist_is_told_as_a_setting() -> None:
    with pytest.raises(ConfigurationError, match="ASSET_PIPELINE_TIMEZONE"):
        build_defs(pipeline=Pipeline(Settings(timezone="Mars/Olympus")))


def test_the_first_month_is_the_first_partition_and_the_current_one_the_last() -> None:
    import datetime

    defs = build_defs(pipeline=Pipeline(Settings(first_month="2025-11", timezone="Pacific/Auckland")))
    months = defs.resolve_asset_graph().get(dg.AssetKey(SOURCES)).partitions_def
    # Already February in Auckland.
    moment = datetime.datetime(2026, 1, 31, 20, tzinfo=datetime.UTC)
    assert list(months.get_partition_keys(current_time=moment)) == ["2025-11", "2025-12", "2026-01", "2026-02"]


def test_resources_can_be_replaced() -> None:
    class Frames(dg.InMemoryIOManager):
        pass

    defs = build_defs(io_manager=Frames())
    assert isinstance(defs.resources["io_manager"], Frames)


def test_every_check_says_what_to_do_when_it_fails() -> None:
    for name, check in catalogue()["checks"].items():
        assert "When it fails: " in check["description"], name


def test_production_says_the_same_as_one_machine_but_for_where_records_are() -> None:
    one_machine, production = _configuration("dagster.yaml"), _configuration("deploy/postgres/dagster.yaml")
    places = {"storage", "local_artifact_storage", "compute_logs"}
    assert {name: value for name, value in one_machine.items() if name not in places} == {
        name: value for name, value in production.items() if name != "storage"
    }
    assert production["storage"] == {"postgres": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}


def test_one_run_a_month_at_a_time_and_no_second_life_for_a_failed_step() -> None:
    configuration = _configuration("dagster.yaml")
    assert configuration["concurrency"]["runs"]["tag_concurrency_limits"] == [
        {"key": "dagster/partition", "limit": 1, "value": {"applyLimitPerUniqueValue": True}}
    ]
    assert configuration["run_retries"] == {"enabled": True, "max_retries": 2, "retry_on_asset_or_op_failure": False}
    assert configuration["telemetry"] == {"enabled": False}


def test_the_workspace_names_the_door() -> None:
    assert _configuration("workspace.yaml") == {"load_from": [{"python_module": "asset_pipeline.definitions"}]}


def test_the_package_brings_the_configuration_along() -> None:
    packaged = Path(asset_pipeline.__file__).parent / "defs" / "dagster.yaml"
    assert packaged.read_text("utf-8") == (ROOT / "dagster.yaml").read_text("utf-8")


def test_a_frame_can_be_asked_of_every_asset() -> None:
    from asset_pipeline.defs.frames import FRAMES

    assert set(FRAMES) == {SOURCES, IMAGES, MANIFESTS, GALLERY, CATALOGUE}
