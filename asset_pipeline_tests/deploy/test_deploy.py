"""What deploy/ says: valid by the schemas of Compose and Kubernetes, and of one mind with the settings and the code.

No container is started here, and no chart is rendered: deploy/README.md says what that leaves open.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from asset_pipeline.policy import Policy
from asset_pipeline.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = json.loads((SCHEMAS / "kubernetes.json").read_text("utf-8"))
KINDS = {
    "ConfigMap": "io.k8s.api.core.v1.ConfigMap",
    "Deployment": "io.k8s.api.apps.v1.Deployment",
    "NetworkPolicy": "io.k8s.api.networking.v1.NetworkPolicy",
    "Service": "io.k8s.api.core.v1.Service",
}
# Under these names the charts hand a piece of Kubernetes through as it is.
PASSED_THROUGH = {
    "envConfigMaps": "io.k8s.api.core.v1.ConfigMapEnvSource",
    "envSecrets": "io.k8s.api.core.v1.SecretEnvSource",
    "podSecurityContext": "io.k8s.api.core.v1.PodSecurityContext",
    "readinessProbe": "io.k8s.api.core.v1.Probe",
    "resources": "io.k8s.api.core.v1.ResourceRequirements",
    "volumes": "io.k8s.api.core.v1.Volume",
    "volumeMounts": "io.k8s.api.core.v1.VolumeMount",
}


def _documents(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text("utf-8")))


def _faults(schema: dict[str, Any], value: Any) -> list[str]:
    return [
        f"{error.json_path}: {error.message}" for error in jsonschema.Draft202012Validator(schema).iter_errors(value)
    ]


def _of_kubernetes(definition: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{definition}", **KUBERNETES}


COMPOSE = _documents(DEPLOY / "compose/compose.yaml")[0]
DAGSTER = _documents(DEPLOY / "helm/dagster.yaml")[0]
DASK = _documents(DEPLOY / "helm/dask.yaml")[0]
CONFIG = {found["metadata"]["name"]: found["data"] for found in _documents(DEPLOY / "helm/settings.yaml")}


def test_the_compose_file_is_what_the_compose_specification_allows() -> None:
    schema = json.loads((SCHEMAS / "compose-spec.json").read_text("utf-8"))
    assert _faults(schema, COMPOSE) == []
    assert _faults(schema, {**COMPOSE, "services": {"postgres": {"imagee": "postgres"}}})


def test_everything_that_a_service_names_is_there() -> None:
    services = COMPOSE["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        assert set(service.get("networks", [])) <= set(COMPOSE["networks"]), name
        assert set(service.get("secrets", [])) <= set(COMPOSE["secrets"]), name
        for volume in service.get("volumes", []):
            source, _, target = volume.partition(":")
            assert not target or source in COMPOSE["volumes"] or (DEPLOY / "compose" / source).is_file(), (
                f"{name}: {source}"
            )


def test_every_password_of_the_compose_file_is_listed_in_the_example() -> None:
    asked = set(re.findall(r"\$\{(\w+):\?", (DEPLOY / "compose/compose.yaml").read_text("utf-8")))
    listed = set(re.findall(r"^(\w+)=", (DEPLOY / "compose/example.env").read_text("utf-8"), re.MULTILINE))
    assert asked == listed


def test_nobody_reaches_a_web_server_but_through_the_login() -> None:
    open_to_the_host = {name for name, service in COMPOSE["services"].items() if "ports" in service}
    assert open_to_the_host == {"proxy", "s3"}  # S3 asks for keys: documents come in there
    for web_server, network in (("webserver", "editors"), ("webserver-read-only", "analysts")):
        beside = [name for name, service in COMPOSE["services"].items() if network in service.get("networks", [])]
        assert beside == [web_server, "proxy"]
    assert "--read-only" in COMPOSE["services"]["webserver-read-only"]["command"]


def test_nobody_reaches_the_scheduler_but_its_workers_and_the_runs() -> None:
    on_its_network = [name for name, service in COMPOSE["services"].items() if "dask" in service.get("networks", [])]
    assert on_its_network == ["code", "scheduler", "worker"]


def test_our_containers_need_no_privilege() -> None:
    for name, service in COMPOSE["services"].items():
        assert "privileged" not in service
        if service["image"] == COMPOSE["x-image"]["image"]:
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert service["read_only"], name
    for context in (DAGSTER["dagsterWebserver"]["podSecurityContext"], DASK["worker"]["securityContext"]):
        assert context["runAsNonRoot"]
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert re.search(r"^USER 10001", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("file", ["settings.yaml", "proxy.yaml"])
def test_our_own_kubernetes_objects_are_what_its_api_takes(file: str) -> None:
    for found in _documents(DEPLOY / "helm" / file):
        assert _faults(_of_kubernetes(KINDS[found["kind"]]), found) == [], found["metadata"]["name"]


def _pieces(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if name in PASSED_THROUGH:
        yield from ((name, part) for part in (value if isinstance(value, list) else [value]))
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _pieces(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _pieces(part)


@pytest.mark.parametrize("values", [DAGSTER, DASK], ids=["dagster", "dask"])
def test_what_the_charts_hand_through_is_what_the_kubernetes_api_takes(values: Any) -> None:
    pieces = list(_pieces(values))
    assert {"resources", "volumes", "volumeMounts"} <= {name for name, _ in pieces}
    for name, piece in pieces:
        assert _faults(_of_kubernetes(PASSED_THROUGH[name]), piece) == [], name
    for part in (DASK["scheduler"], DASK["worker"]):
        assert _faults(_of_kubernetes("io.k8s.api.core.v1.PodSecurityContext"), part["securityContext"]) == []
    for variable in DASK["worker"]["env"]:
        assert _faults(_of_kubernetes("io.k8s.api.core.v1.EnvVar"), variable) == []


def test_dagster_in_kubernetes_has_the_configuration_of_production() -> None:
    production = yaml.safe_load((DEPLOY / "postgres/dagster.yaml").read_text("utf-8"))
    chart = DAGSTER["additionalInstanceConfig"]
    coordinator = DAGSTER["dagsterDaemon"]["runCoordinator"]
    assert coordinator["type"] == "CustomRunCoordinator"
    said_by_the_chart = {
        "run_coordinator": coordinator["config"]["customRunCoordinator"],
        "telemetry": DAGSTER["telemetry"],
    }
    assert {**chart, **said_by_the_chart} == {key: value for key, value in production.items() if key != "storage"}
    # What the chart would write beside it, a second time.
    daemon = DAGSTER["dagsterDaemon"]
    assert not daemon["runMonitoring"]["enabled"]
    assert not daemon["runRetries"]["enabled"]
    assert not daemon["sensors"]["useThreads"]
    assert not daemon["schedules"]["useThreads"]
    assert not DAGSTER["retention"]["enabled"]


def test_every_setting_that_is_set_exists() -> None:
    known = {f"ASSET_PIPELINE_{name.upper()}" for name in Settings.model_fields}
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file():
            used = set(re.findall(r"ASSET_PIPELINE_[A-Z0-9_]+", path.read_text("utf-8")))
            assert used <= known, path.name


def test_workers_have_the_settings_of_the_runs() -> None:
    assert COMPOSE["services"]["worker"]["environment"] == COMPOSE["services"]["code"]["environment"]
    sources = {
        name: source for entry in DASK["worker"]["env"] for name, source in [(entry["name"], entry["valueFrom"])]
    }
    from_the_settings = {name for name, source in sources.items() if "configMapKeyRef" in source}
    assert from_the_settings == set(CONFIG["asset-pipeline-settings"])
    assert all(next(iter(source.values()))["key"] == name for name, source in sources.items())


def test_workers_share_no_disk() -> None:
    shared = set(COMPOSE["volumes"])
    assert not {volume.partition(":")[0] for volume in COMPOSE["services"]["worker"]["volumes"]} & shared
    kinds = {next(kind for kind in volume if kind != "name") for volume in DASK["worker"]["mounts"]["volumes"]}
    assert kinds == {"configMap", "emptyDir", "ephemeral"}


def test_the_policies_are_sound() -> None:
    for text in (
        (DEPLOY / "compose/policy.yaml").read_text("utf-8"),
        CONFIG["asset-pipeline-policy"]["policy.yaml"],
    ):
        Policy.model_validate(yaml.safe_load(text))


def test_every_part_runs_the_same_image() -> None:
    images = {
        f"{image['repository']}:{image['tag']}"
        for image in (
            DAGSTER["dagsterWebserver"]["image"],
            DAGSTER["dagsterDaemon"]["image"],
            DAGSTER["dagster-user-deployments"]["deployments"][0]["image"],
            DASK["scheduler"]["image"],
            DASK["worker"]["image"],
        )
    }
    assert len(images) == 1
    assert images.pop().rpartition("/")[2] == COMPOSE["x-image"]["image"]


# What the charts take, by name: read from their values and schemas (dagster-io/dagster helm/dagster, dask/helm-chart).
# `helm lint` and `helm template` hold the values against the whole schema; deploy/README.md has the commands.
CHART_KEYS = {
    "dagster": {
        "": "global generatePostgresqlPasswordSecret postgresql dagsterWebserver dagsterDaemon runLauncher "
        "dagster-user-deployments "
        "computeLogManager rabbitmq redis flower ingress retention telemetry additionalInstanceConfig",
        "global": "postgresqlSecretName dagsterHome",
        "postgresql": "enabled postgresqlHost postgresqlUsername postgresqlDatabase postgresqlParams service",
        "dagsterWebserver": "nameOverride image service readinessProbe enableReadOnly env envConfigMaps envSecrets "
        "podSecurityContext securityContext resources",
        "dagsterDaemon": "enabled image envConfigMaps envSecrets podSecurityContext securityContext resources "
        "runCoordinator runMonitoring runRetries sensors schedules",
        "dagsterDaemon.runCoordinator": "enabled type config",
        "dagster-user-deployments": "enabled enableSubchart deployments",
        "dagster-user-deployments.deployments": "name image dagsterApiGrpcArgs port includeConfigInLaunchedRuns "
        "envConfigMaps envSecrets podSecurityContext securityContext resources volumes volumeMounts",
        "runLauncher": "type config",
        "runLauncher.config.k8sRunLauncher": "imagePullPolicy loadInclusterConfig failPodOnRunFailure",
    },
    "dask": {
        "": "fullnameOverride scheduler webUI worker jupyter",
        "scheduler": "image serviceType extraArgs resources securityContext",
        "worker": "image replicas threads_per_worker extraArgs resources securityContext env mounts",
        "worker.image": "repository tag pullPolicy dask_worker",
        "worker.mounts": "volumes volumeMounts",
    },
}


@pytest.mark.parametrize("chart", CHART_KEYS)
def test_every_value_has_a_name_that_the_chart_knows(chart: str) -> None:
    for place, known in CHART_KEYS[chart].items():
        values = {"dagster": DAGSTER, "dask": DASK}[chart]
        for step in place.split(".") if place else []:
            values = values[step]
        for part in values if isinstance(values, list) else [values]:
            assert set(part) <= set(known.split()), place
