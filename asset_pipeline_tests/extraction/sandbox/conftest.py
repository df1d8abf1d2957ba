"""Pools of real decoder processes with engines that misbehave."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.extraction.sandbox.line import ZygoteLine
from asset_pipeline.extraction.sandbox.protocol import Hello
from asset_pipeline.policy import Limits, Policy

ENGINES = {
    name: f"hostile_engines:{name}"
    for name in (
        *("Honest", "Sleeps", "LeavesChild", "LeavesSession", "Allocates", "AllocatesAtOnce", "DiesOfHunger", "Aborts"),
        *("Spins", "IgnoresSignals", "Raises", "WritesTooMuch", "Surroundings", "LinksToKey", "HardLink", "NamedPipe"),
        *(
            "OtherBytes",
            "OtherDocument",
            "OtherPage",
            "DeepAnswer",
            "TwiceTheKey",
            "NoAnswer",
            "HugeAnswer",
            "PagesWithoutEnd",
        ),
        *("AnswerIsLink", "ClosesEverything", "RemovesFolder", "FolderIsLink", "EndlessNumber", "OtherCounts"),
        *("Withholds", "WithholdsLink", "WithholdsOfNothing", "WithholdsMuch"),
        *("NumberBeyondDatabases", "NameOfAnotherPage", "PictureWithoutFile", "UnknownField", "TextOfTheDocument"),
    )
} | {"Tries": "trying_engines:Tries"}

MakePool = Callable[..., DecoderPool]


@pytest.fixture
def make_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakePool]:
    """A pool with the misbehaving engines; ``limits`` are those of its policy, ``filters`` what its kernel has."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    pools = []

    def make(workers: int = 2, filters: list[str] | None = None, **limits: float) -> DecoderPool:
        policy = Policy(limits=Limits.model_validate(limits))
        line = None if filters is None else ZygoteLine(Hello(engines=ENGINES, warm=[], filters=filters))
        pool = DecoderPool(workers, policy, engines=ENGINES, warm=(), line=line)
        pools.append(pool)
        return pool

    yield make
    for pool in pools:
        pool.close()


@pytest.fixture
def make_request(tmp_path: Path) -> Callable[..., Request]:
    """Requests over a small document, each with a folder of its own."""
    document = tmp_path / "source"
    document.write_bytes(b"%PDF-1.7 key material")

    def make(**changes: object) -> Request:
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        content = document.read_bytes()
        body = {
            "document": document, "out": out, "policy": Policy(),
            "source_sha256": hashlib.sha256(content).hexdigest(), "source_bytes": len(content),
        }  # fmt: skip
        return Request(**(body | changes))

    return make
