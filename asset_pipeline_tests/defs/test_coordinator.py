"""Who asked for a run: told by the proxy's header, never by what a request says of itself."""

from __future__ import annotations

import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
import uvicorn
from dagster._core.test_utils import create_test_daemon_workspace_context
from dagster._core.workspace.load_target import ModuleTarget
from dagster_webserver.webserver import DagsterWebserver

from asset_pipeline.defs.coordinator import ACTOR, ACTOR_SOURCE, actor_of_run
from asset_pipeline.evidence.actor import Actor

LAUNCH = """
mutation($tags: [ExecutionTag!]) {
  launchPipelineExecution(executionParams: {
    selector: {repositoryLocationName: "pipeline", repositoryName: "__repository__", jobName: "monthly_archive"},
    mode: "default", runConfigData: {}, executionMetadata: {tags: $tags}}) {
    __typename ... on LaunchRunSuccess { run { runId } } ... on PythonError { message }
  }
}
"""


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, dg.DagsterInstance]]:
    """Dagster's pages on an empty installation behind a proxy that tells who is there as X-Forwarded-User."""
    monkeypatch.setenv("ASSET_PIPELINE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ASSET_PIPELINE_ACTOR_HEADER", "X-Forwarded-User")
    overrides = {
        "run_coordinator": {"module": "asset_pipeline.defs.coordinator", "class": "PeopleRunCoordinator"},
    }
    target = ModuleTarget("asset_pipeline.definitions", None, None, "pipeline")
    with (
        dg.instance_for_test(temp_dir=str(tmp_path), overrides=overrides) as instance,
        create_test_daemon_workspace_context(target, instance) as workspace,
    ):
        served = uvicorn.Server(
            uvicorn.Config(DagsterWebserver(workspace).create_asgi_app(), port=0, log_level="error", lifespan="off")
        )
        thread = threading.Thread(target=served.run)
        thread.start()
        try:
            while not served.started:
                assert thread.is_alive()
                time.sleep(0.05)
            yield f"http://127.0.0.1:{served.servers[0].sockets[0].getsockname()[1]}/graphql", instance
        finally:
            served.should_exit = True
            thread.join()


def _launched(pages: tuple[str, dg.DagsterInstance], headers: dict[str, str], tags: dict[str, str]) -> dg.DagsterRun:
    address, instance = pages
    sent = [{"key": key, "value": value} for key, value in ({"dagster/partition": "2026-01"} | tags).items()]
    body = json.dumps({"query": LAUNCH, "variables": {"tags": sent}}).encode()
    request = urllib.request.Request(address, body, headers | {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        launched = json.load(answer)["data"]["launchPipelineExecution"]
    assert launched["__typename"] == "LaunchRunSuccess", launched
    run = instance.get_run_by_id(launched["run"]["runId"])
    assert run is not None
    return run


def test_a_run_names_whom_the_proxy_logged_in_and_not_whom_the_request_names(
    pages: tuple[str, dg.DagsterInstance],
) -> None:
    forged = {ACTOR: "eve", ACTOR_SOURCE: "authenticated"}
    plain = _launched(pages, {"X-Forwarded-User": "ada@example.org"}, {})
    assert actor_of_run(plain.tags) == Actor("ada@example.org", "authenticated")
    assert actor_of_run(_launched(pages, {"X-Forwarded-User": "ada"}, forged).tags) == Actor("ada", "authenticated")
    assert actor_of_run(_launched(pages, {}, forged).tags) == Actor("eve", "claimed"), "nobody was logged in"
    assert actor_of_run(_launched(pages, {}, {}).tags) is None
    # In the queue, what somebody asks for and waits for goes before the months of a backfill.
    backfill = _launched(pages, {}, {"dagster/backfill": "all-months"})
    assert (plain.tags["dagster/priority"], backfill.tags["dagster/priority"]) == ("10", "-10")
