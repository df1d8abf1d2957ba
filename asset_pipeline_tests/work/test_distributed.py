"""A month on several machines: worker processes that share a database and a bucket with the run, and nothing else."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import select

from asset_pipeline.archive.fsck import prove
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.errors import ConfigurationError, StorageError
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.ledger import reading
from asset_pipeline.ledger.schema import attempts, receipts, units
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.distributed import DistributedExecutor
from asset_pipeline.work.month import MonthLoop, work_month
from asset_pipeline_tests.conftest import Bucket
from asset_pipeline_tests.small_documents import MONTH, fresh_settings, noisy_pdf
from asset_pipeline_tests.work.certificates import Issued, issue
from asset_pipeline_tests.work.clusters import Cluster, cluster

LONG = bool(os.environ.get("ASSET_PIPELINE_TESTS_LONG"))
DOCUMENTS = 24 if LONG else 6
PAGES = 6
KEY = secrets.token_hex(32)


@pytest.fixture
def shared(postgres_url: str, s3_settings: Bucket, tmp_path: Path) -> dict[str, object]:
    """Settings that all machines have in common."""
    return {
        "ledger": postgres_url,
        "event_key": KEY,
        "install_key": "ab" * 32,
        "lease_seconds": 3.0,
        "pages_per_unit": 2,
        "settle_seconds": 0,
        "inbox": str(tmp_path / "inbox"),
    } | {name: value for name, value in s3_settings.settings().items() if name != "inbox"}


@pytest.fixture
def workers(shared: dict[str, object], s3_settings: Bucket, tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path / "cluster", _environment(shared, s3_settings)) as started:
        yield started


@pytest.fixture
def secure(shared: dict[str, object], s3_settings: Bucket, tmp_path: Path) -> Iterator[tuple[Cluster, Issued]]:
    """A cluster whose parts and runs show each other certificates of one authority."""
    issued = issue(tmp_path / "certificates")
    with cluster(tmp_path / "cluster", _environment(shared, s3_settings), *issued.options()) as started:
        yield started, issued


def _environment(shared: dict[str, object], bucket: Bucket) -> dict[str, str]:
    """What a worker is told; the inbox is not among it, because a worker has no use for it."""
    told = {f"ASSET_PIPELINE_{name.upper()}": str(value) for name, value in shared.items() if name != "inbox"}
    return told | {"AWS_ACCESS_KEY_ID": bucket.access_key, "AWS_SECRET_ACCESS_KEY": bucket.secret_key}


@contextmanager
def opened(shared: dict[str, object], home: Path, **more: object) -> Iterator[Installation]:
    with open_installation(load_settings(home=home, **shared | more)) as inst:
        yield inst


def drop(settings: Settings, documents: int, pages: int = PAGES, side: int = 100) -> None:
    folder = Path(settings.store_address("inbox"), "city", MONTH)
    folder.mkdir(parents=True)
    for number in range(documents):
        noisy_pdf(folder / f"{number}.pdf", pages, side=side + number)


def admit(inst: Installation) -> None:
    admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)


def states(inst: Installation) -> Counter[str]:
    with inst.ledger.read() as conn:
        return Counter(row.state for row in reading.documents_of_month(conn, MONTH))


def contents(inst: Installation) -> dict[str, str]:
    """Digest of each manifest's content by report."""
    return {row.report_id: row.content_digest for row in publish_manifests(inst, MONTH, datetime.now(UTC))}


def wait_for(condition, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_month_over_two_machines_of_which_one_is_lost_and_one_is_new_ends_with_the_right_archive(
    shared: dict[str, object], secure: tuple[Cluster, Issued], tmp_path: Path
) -> None:
    workers, issued = secure
    assert workers.address.startswith("tls://")
    first, _ = workers.add_worker(), workers.add_worker()
    local = fresh_settings(tmp_path / "local", install_key="ab" * 32)
    with opened(shared, tmp_path / "home", scheduler=workers.address, **issued.settings()) as inst:
        drop(inst.settings, DOCUMENTS)
        drop(local, DOCUMENTS)
        admit(inst)
        lost: list[int] = []

        def lose_one(stage: str, done: int, _total: int) -> None:
            if stage == "extract" and done >= 3 and not lost and first_is_at_work(inst, first.pid):
                first.kill()
                first.wait()
                lost.append(done)
                workers.add_worker()

        work = work_month(inst, MONTH, progress=lose_one)
        assert lost, "a worker was killed while it had a unit"
        assert states(inst) == {"succeeded": DOCUMENTS}
        assert work.documents <= DOCUMENTS
        here = contents(inst)
        proof = prove(inst)
        assert proof.sound and proof.manifests == DOCUMENTS
        with inst.ledger.read() as conn:
            assert len(conn.execute(select(receipts)).all()) == DOCUMENTS * PAGES
            rows = conn.execute(select(attempts.c.worker, attempts.c.outcome)).all()
        assert {worker.split(":")[1] for worker, _ in rows}.isdisjoint({str(os.getpid())}), "nothing was read here"
        assert Counter(outcome for _, outcome in rows)["published"] == DOCUMENTS * PAGES // 2
    with open_installation(local) as inst:
        admit(inst)
        work_month(inst, MONTH)
        assert contents(inst) == here


def first_is_at_work(inst: Installation, pid: int) -> bool:
    running = select(units.c.worker).where(units.c.state == "running")
    with inst.ledger.read() as conn:
        return any(f":{pid}:" in worker for worker in conn.execute(running).scalars())


def test_a_cancelled_run_gives_its_units_back_at_once_and_costs_them_nothing(
    shared: dict[str, object], workers: Cluster, tmp_path: Path
) -> None:
    workers.add_worker()
    with opened(shared | {"lease_seconds": 90.0}, tmp_path / "home", scheduler=workers.address) as inst:
        drop(inst.settings, 1, pages=16, side=600)
        admit(inst)
        stopping = threading.Event()
        with DistributedExecutor(inst) as executor:
            loop = MonthLoop(inst, MONTH, executor, stopping=stopping)
            run = threading.Thread(target=loop.settle)
            run.start()
            wait_for(lambda: unit_states(inst)["running"])
            stopping.set()
            run.join(20)
            assert not run.is_alive()
            wait_for(lambda: not unit_states(inst)["running"], 15)
        with inst.ledger.read() as conn:
            spent = conn.execute(select(units.c.tries, units.c.lost_workers, units.c.lost_decoders)).tuples().all()
        assert set(spent) == {(0, 0, 0)}
        assert unit_states(inst)["queued"] > 0
        work_month(inst, MONTH)  # on the same worker, whose decoders were ended
        assert states(inst) == {"succeeded": 1}
        with inst.ledger.read() as conn:
            assert set(conn.execute(select(units.c.lost_decoders)).scalars()) == {0}


def unit_states(inst: Installation) -> Counter[str]:
    with inst.ledger.read() as conn:
        return Counter(conn.execute(select(units.c.state)).scalars())


def test_a_worker_with_another_ledger_does_no_work(shared: dict[str, object], workers: Cluster, tmp_path: Path) -> None:
    workers.add_worker(ledger=f"sqlite:///{tmp_path}/elsewhere.db", event_key=secrets.token_hex(32))
    with opened(shared, tmp_path / "home", scheduler=workers.address) as inst:
        drop(inst.settings, 1, pages=1)
        admit(inst)
        with pytest.raises(ConfigurationError, match="another ledger"):
            work_month(inst, MONTH)
        assert states(inst) == {"queued": 1}


def test_a_run_without_a_certificate_of_the_scheduler_s_authority_gets_no_work_done(
    shared: dict[str, object], secure: tuple[Cluster, Issued], tmp_path: Path
) -> None:
    workers, issued = secure
    other = issue(tmp_path / "others")
    secret = other.settings() | {"scheduler_tls_ca": issued.authority}
    for settings, refusal in (
        (other.settings(), StorageError),
        (secret, StorageError),
        (issued.settings() | {"scheduler_tls_key": tmp_path / "nowhere.pem"}, ConfigurationError),
    ):
        with opened(shared, tmp_path / "home", scheduler=workers.address, **settings) as inst:
            executor = DistributedExecutor(inst)
            with pytest.raises(refusal), executor:
                pass


def test_a_scheduler_that_is_away_or_goes_away_is_told_in_a_line(
    shared: dict[str, object], workers: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("asset_pipeline.work.distributed.CONNECT_SECONDS", 2)
    with opened(shared, tmp_path / "home", scheduler="tcp://127.0.0.1:9") as inst:
        drop(inst.settings, 2)
        admit(inst)
        with pytest.raises(StorageError, match="The Dask scheduler cannot be reached"):
            work_month(inst, MONTH)
    workers.add_worker()
    with opened(shared, tmp_path / "home", scheduler=workers.address) as inst:

        def end_scheduler(_stage: str, _done: int, _total: int) -> None:
            workers.end_scheduler()

        with pytest.raises(StorageError, match="The Dask scheduler cannot be reached"):
            work_month(inst, MONTH, progress=end_scheduler)
    with opened(shared, tmp_path / "home") as inst:
        work_month(inst, MONTH)
        assert states(inst) == {"succeeded": 2}


if LONG:  # half a minute of restarting workers

    def test_a_document_that_takes_every_worker_along_is_a_dead_letter_and_takes_no_other_along(
        shared: dict[str, object], workers: Cluster, tmp_path: Path
    ) -> None:
        for _ in range(2):
            workers.add_worker("--nanny", "--preload", "asset_pipeline_tests.work.lethal", sandbox="false")
        with opened(shared, tmp_path / "home", scheduler=workers.address) as inst:
            drop(inst.settings, 6)
            noisy_pdf(Path(inst.settings.store_address("inbox"), "city", MONTH, "lethal.pdf"), 1, side=90)
            admit(inst)
            work_month(inst, MONTH)
            with inst.ledger.read() as conn:
                ended = {row.name: (row.state, row.reason) for row in reading.documents_of_month(conn, MONTH)}
        assert ended.pop("lethal.pdf") == ("dead_lettered", "worker_lost")
        assert set(ended.values()) == {("succeeded", None)}
