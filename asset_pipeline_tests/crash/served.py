"""Dagster as it is deployed, in processes of its own: code server, daemon and, on request, web server.

Runs are processes below the code server, as in one container. The configuration is the project's; only the seconds
between two looks of the daemon are fewer, so that a test need not wait minutes for what production waits minutes for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import yaml

from asset_pipeline.defs.abandoned import WORKER_TAG
from asset_pipeline.defs.jobs import PARTITION_TAG
from asset_pipeline_tests.servers import free_ports, port_is_free

ROOT = Path(__file__).parents[2]
LOCATION = "asset_pipeline.definitions"
PATIENCE = 120
"""Seconds for anything that starts processes; a busy machine takes long."""

EAGER = {"poll_interval_seconds": 2, "cancel_timeout_seconds": 5}


class Served:
    """Processes of Dagster over the installation ``home``. ``environment`` says more about the installation."""

    def __init__(self, home: Path, environment: dict[str, str], **monitoring: int) -> None:
        self.home = home
        self.records = home / "dagster"
        self.records.mkdir(parents=True)
        self._environment = environment
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        configuration = yaml.safe_load((ROOT / "dagster.yaml").read_text("utf-8"))
        for name in ("storage", "local_artifact_storage", "compute_logs"):
            del configuration[name]
        configuration["run_monitoring"] |= EAGER | monitoring
        configuration["run_coordinator"]["config"]["dequeue_interval_seconds"] = 1
        (self.records / "dagster.yaml").write_text(yaml.safe_dump(configuration), "utf-8")
        self._code_port, self._port = free_ports(2)
        server = {"host": "127.0.0.1", "port": self._code_port, "location_name": LOCATION}
        self._workspace = home / "workspace.yaml"
        self._workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": server}]}), "utf-8")
        # Makes the tables, before several processes would at once.
        self.instance = dg.DagsterInstance.from_config(str(self.records))

    def start_code(self) -> None:
        """The code server, below which runs are: one for all, as a container of its own would be."""
        port = str(self._code_port)
        self._start("code", "dagster", "api", "grpc", "--module-name", LOCATION, "--host", "127.0.0.1", "--port", port)
        wait_for(lambda: not port_is_free(self._code_port), "the code server answers")

    def start_daemon(self) -> None:
        """The daemon, unless it runs: queue, backfills, sensors, monitoring, retries."""
        if "daemon" not in self._processes:
            self._start("daemon", "dagster._daemon", "run", "--workspace", str(self._workspace))

    def start_web_server(self) -> None:
        """The web server, without waiting until it answers."""
        where = ("--workspace", str(self._workspace), "--host", "127.0.0.1", "--port", str(self._port))
        self._start("web", "dagster_webserver", *where)

    def kill(self, name: str) -> None:
        """Kill the process ``name`` and all below it, as when a container or a machine is gone."""
        process = self._processes.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def process(self, name: str) -> int:
        """Number of the process ``name``."""
        return self._processes[name].pid

    def _start(self, name: str, *command: str) -> None:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ASSET_PIPELINE", "DAGSTER"))}
        ours = {
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
            "DAGSTER_HOME": str(self.records),
            "DAGSTER_EVENT_LOG_CONSUMER_DAEMON_INTERVAL_SECONDS": "1",
            "ASSET_PIPELINE_HOME": str(self.home),
            "ASSET_PIPELINE_SETTLE_SECONDS": "0",
        }
        with (self.home / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=self.home,
                env=kept | ours | self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """What the GraphQL of the pages answers: of the web server where there is one, else in this process."""
        told = self._over_http(query, variables) if "web" in self._processes else self._here(query, variables)
        assert "errors" not in told, told
        return dict(told["data"])

    def _over_http(self, query: str, variables: dict[str, object]) -> dict[str, Any]:
        body = json.dumps({"query": query, "variables": variables}).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/graphql", body, {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return dict(json.load(answer))

    def _here(self, query: str, variables: dict[str, object]) -> dict[str, Any]:
        from dagster._core.workspace.context import WorkspaceProcessContext
        from dagster._core.workspace.load_target import WorkspaceFileTarget
        from dagster_graphql.cli import execute_query

        with WorkspaceProcessContext(self.instance, WorkspaceFileTarget([str(self._workspace)])) as context:
            return dict(execute_query(context, query, variables))

    def runs_of(self, month: str) -> list[dg.DagsterRun]:
        """The runs of ``month``, in the order in which they were asked for."""
        return list(reversed(self.instance.get_runs(dg.RunsFilter(tags={PARTITION_TAG: month}))))

    def close(self) -> None:
        """End everything, a run process that lost its code server included."""
        for name in list(self._processes):
            with suppress(ProcessLookupError):
                self.kill(name)
        for run in self.instance.get_runs():
            kill(worker_of(run))
        self.instance.dispose()


@contextmanager
def served(home: Path, environment: dict[str, str], *, web_server: bool = False, **monitoring: int) -> Iterator[Served]:
    """A ``Served`` without its daemon; what it said is on the standard output when the block fails."""
    made = Served(home, environment, **monitoring)
    try:
        made.start_code()
        if web_server:
            made.start_web_server()
        yield made
    except BaseException:
        for log in home.glob("*.log"):
            print(f"--- {log.name}\n{log.read_text(errors='replace')[-4000:]}")
        raise
    finally:
        made.close()


def worker_of(run: dg.DagsterRun) -> int:
    """Process of ``run``, as it told itself; 0 where it did not yet, or is gone."""
    _, _, told = run.tags.get(WORKER_TAG, "").partition(":")
    pid, _, rest = told.partition(":")
    began, _, run_id = rest.partition(":")
    if run_id != run.run_id:
        return 0
    with suppress(OSError):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19] == began:
            return int(pid)
    return 0


def kill(pid: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Send a signal to a process, unless there is none."""
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for(condition: Callable[[], Any], what: str, seconds: float = PATIENCE) -> Any:
    """Wait until ``condition`` holds; what it answered."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"it did not come to pass that {what}"
        time.sleep(0.3)
    return answer
