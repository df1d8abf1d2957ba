"""Where work runs when it is many machines: tasks of a Dask scheduler, done by workers with their own surroundings.

What travels is the name of the task, an id and two digests; never a document, a setting or a credential. A worker
opens the installation that its own environment names, once a process, and shares a database and buckets with the
others, no disk. The ledger decides who works what: a task that Dask runs again because a worker was lost finds the
unit leased, and the loop over the month takes it up when the lease has run out. So every way in which Dask can lose
an answer (worker killed, task cancelled) is no answer, and nothing else.
"""

# mypy: disable-error-code="no-untyped-call"
# The library says that it is typed, and most of what it exports is not.

from __future__ import annotations

import atexit
import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from sqlalchemy import select

from asset_pipeline.errors import ConfigurationError, PipelineError, StorageError
from asset_pipeline.extraction.engine import ENGINES, load_engine, version_of
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.extraction.sandbox.child import describe
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.schema import signing_keys
from asset_pipeline.settings import Settings, load_settings
from asset_pipeline.work.executor import TURN_SECONDS, Answer, Call, NextCalls, Task

try:
    from distributed import Client, Future, KilledWorker, Security, Status, Worker, get_worker
except ImportError:
    raise ConfigurationError(
        "Working on the machines of a Dask scheduler needs the library distributed.",
        "Install asset-pipeline[distributed], or unset ASSET_PIPELINE_SCHEDULER.",
    ) from None

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 20
WARN_SECONDS = 60.0
"""How often a run says that it waits for a first worker."""

COUNT_SECONDS = 5.0
"""How often a run counts the threads of the workers, which come and go."""

LEAST_ROOM = 4


class DistributedExecutor:
    """Tasks of the scheduler that the settings name. Leaving it cancels what is not done."""

    def __init__(self, inst: Installation) -> None:
        self._settings = inst.settings
        self._same = same_as(inst)
        self._client: Client | None = None
        self._warned = time.monotonic() - WARN_SECONDS
        self._counted = time.monotonic() - COUNT_SECONDS
        self._threads = 0

    def run(self, next_calls: NextCalls[Answer], stopping: threading.Event) -> Iterator[Answer]:
        """See ``UnitExecutor``. Raises StorageError when the scheduler is lost, ConfigurationError for a worker of
        another version or ledger.
        """
        ended: SimpleQueue[Future[Any]] = SimpleQueue()
        under_way: set[Future[Any]] = set()
        try:
            while not stopping.is_set():
                room = self._room() - len(under_way)
                for future in self._submit(next_calls(room)) if room > 0 else ():
                    under_way.add(future)
                    future.add_done_callback(ended.put)
                if not under_way:
                    return
                try:
                    future = ended.get(timeout=TURN_SECONDS)
                except Empty:
                    self._look_around()
                    continue
                under_way.discard(future)
                yield from self._answers(future)
        finally:
            self._cancel([future for future in under_way if not future.done()])

    def _submit(self, calls: Sequence[Call[Answer]]) -> list[Future[Any]]:
        if not calls:
            return []
        tasks, ids = zip(*calls, strict=True)
        # Each call is one of its own, and none is repeated by Dask because it failed.
        futures: list[Future[Any]] = self._opened.map(
            at_bench, tasks, ids, [self._same] * len(ids), pure=False, retries=0
        )
        return futures

    def _room(self) -> int:
        """How many calls may be under way: enough for every thread that there is now to find its next one waiting."""
        now = time.monotonic()
        if now - self._counted >= COUNT_SECONDS:
            self._counted = now
            with suppress(OSError, TimeoutError):  # a scheduler that is gone is noticed elsewhere
                self._threads = sum(self._opened.nthreads().values())
        return max(self._threads + (self._threads + 1) // 2, LEAST_ROOM)

    def _answers(self, future: Future[Any]) -> Iterator[Any]:
        """The answer, if there is one: a lost worker is told from the ledger, when the lease has run out."""
        try:
            yield future.result(timeout=CONNECT_SECONDS)
        except (KilledWorker, CancelledError, TimeoutError) as lost:
            self._look_around()
            logger.warning("a call was lost with its worker (%s)", type(lost).__name__)

    def _look_around(self) -> None:
        """Raise StorageError when the scheduler is gone; say now and then that nobody works."""
        client = self._opened
        if client.status != "running":
            raise _unreachable()
        now = time.monotonic()
        if now - self._warned >= WARN_SECONDS and not client.scheduler_info(n_workers=-1)["workers"]:
            self._warned = now
            logger.warning("no worker has joined the scheduler; the work waits for one")

    def _cancel(self, futures: list[Future[Any]]) -> None:
        if futures and self._client is not None and self._client.status == "running":
            # Also what others would want: each key is ours alone. Workers notice and give their units back.
            self._client.cancel(futures, force=True)

    @property
    def _opened(self) -> Client:
        if self._client is None:
            raise AssertionError("the executor is not open")
        return self._client

    def __enter__(self) -> Self:
        try:
            self._client = Client(
                self._settings.scheduler,
                security=_security(self._settings),
                timeout=CONNECT_SECONDS,
                set_as_default=False,
                name="asset-pipeline",
            )
        except (OSError, TimeoutError):
            raise _unreachable() from None
        except ValueError:
            raise ConfigurationError(
                "The address of the scheduler cannot be used.", "Write tcp://host:8786 or tls://host:8786."
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def at_bench(task: Task[Answer], ident: str, same: str) -> Answer:
    """Do ``task`` for ``ident`` in this worker process, stopped when Dask has no more use for the answer."""
    worker = get_worker()
    key = worker.get_current_task()
    stopping = threading.Event()
    try:
        opened = bench()
        if opened.same != same:
            raise ConfigurationError(
                "A Dask worker has another ledger, program or library version than the run.",
                "Give all workers the same settings and the same installed versions.",
            )
        with opened.seat(stopping) as pool, _watched(lambda: _is_unwanted(worker, key), stopping, pool):
            return task(opened.inst, pool, ident, stopping=stopping)
    except PipelineError:
        raise
    except Exception as error:  # noqa: BLE001 - the border of the process: words of a defect may quote a document
        raise PipelineError(f"A Dask worker failed: {describe(error)}.", "Tell the developers.") from None


class Bench:
    """What a worker process keeps between calls: its own installation, and decoders that are free."""

    def __init__(self, settings: Settings) -> None:
        self._held = ExitStack()
        self.inst = self._held.enter_context(open_installation(settings))
        self.same = same_as(self.inst)
        self._free: list[DecoderPool] = []
        self._lock = threading.Lock()

    @contextmanager
    def seat(self, stopping: threading.Event) -> Iterator[DecoderPool]:
        """A pool for one call alone, so that ending its decoder ends no other's; one that was stopped is not kept."""
        with self._lock:
            pool = self._free.pop() if self._free else None
        if pool is None:
            pool = DecoderPool(1, self.inst.policy, caged=self.inst.settings.sandbox).__enter__()
        try:
            yield pool
        finally:
            if stopping.is_set():
                pool.close()
            else:
                with self._lock:
                    self._free.append(pool)

    def close(self) -> None:
        """End the decoders and close the installation."""
        with self._lock:
            free, self._free = self._free, []
        for pool in free:
            pool.close()
        self._held.close()


_OPENING = threading.Lock()


def bench() -> Bench:
    """The bench of this process, made when first asked for, from its own environment."""
    with _OPENING:
        return _bench()


@cache
def _bench() -> Bench:
    made = Bench(load_settings())
    atexit.register(made.close)
    return made


def same_as(inst: Installation) -> str:
    """A digest that is the same where ledger and all that can change a byte are: nothing secret goes into it."""
    with inst.ledger.read() as conn:
        ledger = conn.execute(select(signing_keys.c.key_id).order_by(signing_keys.c.first_seq).limit(1)).scalar()
    engines = [f"{name} {version_of(load_engine(name))}" for name in sorted(ENGINES)]
    return hashlib.sha256("\n".join([str(ledger), *engines]).encode()).hexdigest()


@contextmanager
def _watched(is_unwanted: Callable[[], bool], stopping: threading.Event, pool: DecoderPool) -> Iterator[None]:
    """Until the block ends, look whether the call is still wanted; else end its decoder, and so the call."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(TURN_SECONDS):
            if is_unwanted():
                stopping.set()
                pool.close()
                return

    thread = threading.Thread(target=watch, name="wanted", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _is_unwanted(worker: Worker, key: Any) -> bool:
    """Whether the run was cancelled or is gone (both take the task from the worker), or the worker is closing."""
    task = worker.state.tasks.get(key)
    return task is None or task.state == "cancelled" or worker.status not in (Status.running, Status.paused)


def _security(settings: Settings) -> Security | None:
    """TLS as the settings say; the libraries' own configuration applies where they say nothing."""
    if not settings.scheduler.startswith("tls://"):
        return None
    named = {
        "tls_ca_file": settings.scheduler_tls_ca,
        "tls_client_cert": settings.scheduler_tls_cert,
        "tls_client_key": settings.scheduler_tls_key,
    }
    missing = [name for name, path in named.items() if not path.is_file()]
    if missing:
        raise ConfigurationError(
            "A tls:// scheduler needs an authority, a certificate and its key, and one of them is not there.",
            "Set ASSET_PIPELINE_SCHEDULER_TLS_CA, _CERT and _KEY to PEM files.",
        )
    return Security(require_encryption=True, **{name: str(path) for name, path in named.items()})


def _unreachable() -> StorageError:
    return StorageError(
        "The Dask scheduler cannot be reached.", "Check that it is up, and ASSET_PIPELINE_SCHEDULER, and run again."
    )
