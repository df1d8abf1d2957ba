"""What the cage costs a document: read in a decoder process, and in this very process, in turns.

    python benchmarks/cage.py [DOCUMENT …]      default: the made-up reports of fixtures/inbox below 400 KB

In turns, because what else the machine does must hit both alike. Wall time is the median of pairs; on a busy machine
only the processor's time, of this process, the zygote and its decoders, says something. Both forms inspect and
then extract, as the pipeline does: two decoder processes a document. What is told of all is the median over documents:
one that takes a second of work says nothing about what a process costs.
"""

from __future__ import annotations

import hashlib
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from asset_pipeline.extraction.engine import Request
from asset_pipeline.extraction.sandbox import DecoderPool
from asset_pipeline.policy import Policy

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "inbox"
ROUNDS = 9
TARGET_MS = 40.0
CAGED, BARE = "caged", "bare"


def main(arguments: list[str]) -> None:
    small = [path for path in sorted(FIXTURES.rglob("*.pdf")) if path.stat().st_size < 400_000]
    documents = [Path(name) for name in arguments] or small
    policy = Policy()
    extra: dict[str, list[float]] = {"wall": [], "processor": []}
    wall, processor = dict.fromkeys((CAGED, BARE), 0.0), dict.fromkeys((CAGED, BARE), 0.0)
    with DecoderPool(1, policy) as caged, DecoderPool(1, policy, caged=False) as bare:
        print(f"cage: {caged.cage}; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for document in documents:
            pairs, own = [], dict.fromkeys((CAGED, BARE), 0.0)
            for turn in range(ROUNDS + 1):
                took = {}
                for name, pool in ((CAGED, caged), (BARE, bare)):
                    before = _processor_ms()
                    took[name] = _read(pool, document, policy)
                    if turn:  # the first round warms what is read from disk
                        own[name] += (_processor_ms() - before) / ROUNDS
                        wall[name] += took[name]
                if turn:
                    pairs.append(took[CAGED] - took[BARE])
            for name in processor:
                processor[name] += own[name]
            extra["wall"].append(statistics.median(pairs))
            extra["processor"].append(own[CAGED] - own[BARE])
            told = f"{extra['wall'][-1]:7.1f} ms more by the clock {extra['processor'][-1]:7.1f} ms of processor"
            print(f"{document.name:34} {told} (bare {own[BARE]:.1f} ms)")
    for name, spent, reads in (("wall", wall, ROUNDS * len(documents)), ("processor", processor, len(documents))):
        print(f"{name:10} {spent[CAGED] / reads:7.1f} ms caged {spent[BARE] / reads:7.1f} ms bare", end="")
        print(f"  ratio {spent[CAGED] / spent[BARE]:.2f}; median over documents", end="")
        print(f" {statistics.median(extra[name]):.1f} ms more; the target is {TARGET_MS:.0f} ms")


def _processor_ms() -> float:
    """Of this process, its children and their children that have ended."""
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                fields = Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
                ticks += sum(int(field) for field in fields[11:15])
    return time.process_time() * 1000 + ticks * 1000 / os.sysconf("SC_CLK_TCK")


def _read(pool: DecoderPool, document: Path, policy: Policy) -> float:
    """Milliseconds for one document, its answer checked and its pictures on disk."""
    content = document.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        request = Request(
            document=document.absolute(),
            out=Path(folder),
            policy=policy,
            source_sha256=hashlib.sha256(content).hexdigest(),
            source_bytes=len(content),
        )
        began = time.perf_counter()
        pool.inspect("pdf", request)
        pool.extract("pdf", request)
        return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main(sys.argv[1:])
