"""Dagster's home, runs in processes of ours, and what happens when those are interrupted, killed or two at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from asset_pipeline.defs.abandoned import PROCESS_TAG, WORKER_TAG, fail_abandoned_runs, this_process
from asset_pipeline.defs.instance import materialize_months, open_instance, prepare_home
from asset_pipeline.defs.jobs import MONTHLY_ARCHIVE
from asset_pipeline.installation import open_installation
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import MONTH, drop_document

ROOT = Path(__file__).parents[2]
STARTED = dg.DagsterRunStatus.STARTED

SCRIPT = """
import os, sys
from pathlib import Path
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.settings import load_settings

def end(stage, done, total):
    {at_progress}

settings = load_settings(home=Path(sys.argv[1]), settle_seconds=0, workers=1)
print(materialize_months(settings, sys.argv[2:], progress=end)[-1].run_id)
"""


def _start(settings: Settings, *months: str, at_progress: str = "pass") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT.format(at_progress=at_progress), str(settings.home), *months],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _events(instance: dg.DagsterInstance, run_id: str) -> list[str]:
    return [log.dagster_event_type.value for log in instance.all_logs(run_id) if log.dagster_event_type]


def test_home_is_below_the_installation_and_is_written_once(settings: Settings) -> None:
    home = prepare_home(settings)
    assert home == settings.home.absolute() / "dagster"
    written = (home / "dagster.yaml").stat().st_mtime_ns
    prepare_home(settings)
    assert (home / "dagster.yaml").stat().st_mtime_ns == written


def test_a_home_that_was_chosen_is_left_as_it_is(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    before = sorted(tmp_path.iterdir())
    assert prepare_home(settings) == tmp_path
    assert sorted(tmp_path.iterdir()) == before


def test_the_records_use_the_configuration_of_the_project(settings: Settings) -> None:
    with open_instance(settings) as instance:
        assert instance.get_settings("run_retries")["max_retries"] == 2
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled
        assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == 4


def test_dagster_started_in_the_checkout_uses_the_same_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dagster._core.instance import InstanceRef

    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text("utf-8"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".asset_pipeline" / "inbox").mkdir(parents=True)
    settings = Settings(settle_seconds=0)
    (result,) = materialize_months(settings, ["2026-04"])
    with dg.DagsterInstance.from_ref(InstanceRef.from_dir(str(tmp_path / "temporary"), config_dir=".")) as by_hand:
        assert by_hand.get_run_by_id(result.run_id)


def test_a_quiet_run_says_nothing(settings: Settings) -> None:
    drop_document(settings, "a.pdf", [1])
    with open_installation(settings):
        pass  # its first start makes a key, and says so
    process = _start(settings, MONTH)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert (len(out.split()), err) == (1, "")


def test_two_processes_at_once_both_succeed_on_a_fresh_installation(settings: Settings) -> None:
    for month in ("2026-04", "2026-05", "2026-06"):
        drop_document(settings, "a.pdf", [1, 2], month=month)
    processes = [_start(settings, "2026-04", "2026-05"), _start(settings, "2026-05", "2026-06")]
    for process in processes:
        _, err = process.communicate(timeout=240)
        assert process.returncode == 0
        assert err.count("\n") <= 1 and err.startswith(("", "A key that signs")), "the key is told by who made it"
    with open_instance(settings) as instance:
        assert [run.status for run in instance.get_runs()] == [dg.DagsterRunStatus.SUCCESS] * 4
        assert instance.get_materialized_partitions(dg.AssetKey("manifests")) == {"2026-04", "2026-05", "2026-06"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_at_once_and_can_be_run_again(settings: Settings, number: signal.Signals) -> None:
    drop_document(settings, "a.pdf", [1])
    process = _start(settings, MONTH, at_progress=f"os.kill(os.getpid(), {number.value})")
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    with open_instance(settings) as instance:
        (run,) = instance.get_runs()
        assert run.status is dg.DagsterRunStatus.FAILURE
        assert "STEP_UP_FOR_RETRY" not in _events(instance, run.run_id)
        assert materialize_months(settings, [MONTH], instance=instance)[0].success


def test_a_run_that_is_cancelled_in_the_web_page_is_cancelled_and_not_tried_again(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    drop_document(settings, "a.pdf", [1])

    def cancel(*_: object) -> None:
        instance.report_run_canceling(instance.get_runs(limit=1)[0])
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        materialize_months(settings, [MONTH], instance=instance, progress=cancel)
    (run,) = instance.get_runs()
    assert run.status is dg.DagsterRunStatus.CANCELED
    assert "STEP_UP_FOR_RETRY" not in _events(instance, run.run_id)


def test_a_run_whose_process_was_killed_is_told_as_failed_by_the_next_one(settings: Settings) -> None:
    drop_document(settings, "a.pdf", [1])
    killed = _start(settings, MONTH, at_progress="os.kill(os.getpid(), 9)")
    killed.communicate(timeout=60)
    assert killed.returncode == -signal.SIGKILL
    with open_instance(settings) as instance:
        (abandoned,) = instance.get_runs()
        assert abandoned.status is dg.DagsterRunStatus.STARTED
        assert materialize_months(settings, [MONTH], instance=instance)[0].success
        assert instance.get_run_by_id(abandoned.run_id).status is dg.DagsterRunStatus.FAILURE


def test_a_run_that_ended_with_its_machine_is_told_as_failed_and_one_that_tries_again_is_not(
    instance: dg.DagsterInstance,
) -> None:
    gone = f"{this_process()}0"  # the same number, begun at another time

    def started(process: str, tag: str, parent: str | None = None) -> str:
        run = dg.DagsterRun(MONTHLY_ARCHIVE, status=STARTED, parent_run_id=parent, root_run_id=parent)
        name = f"{process}:{parent or run.run_id}" if tag == WORKER_TAG else process
        return instance.add_run(run.with_tags({tag: name})).run_id

    by_dagster, by_command = started(gone, WORKER_TAG), started(gone, PROCESS_TAG)
    again = [started(gone, tag, first) for tag, first in ((WORKER_TAG, by_dagster), (PROCESS_TAG, by_command))]
    alive = started(this_process(), WORKER_TAG)
    assert fail_abandoned_runs(instance) == 2
    found = {run.run_id: run.status for run in instance.get_runs()}
    assert {found[run] for run in (by_dagster, by_command)} == {dg.DagsterRunStatus.FAILURE}
    assert {found[run] for run in (*again, alive)} == {STARTED}
