"""How fast events are appended and verified, beside a bare loop of Ed25519 over messages as long as theirs.

    python benchmarks/evidence.py [--events 100000] [--database postgresql://…]

Appends in batches of 100, one transaction each, into an empty ledger (default: SQLite in a temporary folder), then
verifies the whole log from the ledger and from exported lines, with one process and with two. Ratios say how far from
what the signatures alone cost; seconds depend on the machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from asset_pipeline.evidence.chain import Event
from asset_pipeline.evidence.keys import is_signed
from asset_pipeline.evidence.verify import verify
from asset_pipeline.ledger.chain import Log, notes
from asset_pipeline.ledger.checkpoints import Checkpointer
from asset_pipeline.ledger.database import Ledger, open_ledger
from asset_pipeline.ledger.events import record_events
from asset_pipeline.ledger.signing import Recorder, current_key, recorded_trust
from asset_pipeline.storage.folder import FolderStore

BATCH = 100


def main() -> None:
    asked = argparse.ArgumentParser(description="Benchmark of evidence.")
    asked.add_argument("--events", type=int, default=100_000)
    asked.add_argument("--database", help="an empty one")
    given = asked.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        recorder = Recorder(place / "keys", policy_digest="ab" * 32)
        ledger = open_ledger(given.database or f"sqlite:///{place}/ledger.db", recorder=recorder)
        sealer = Checkpointer(ledger, recorder, [FolderStore(place / "archive", name="archive")])
        ledger.when_recorded = sealer.recorded
        appended = timed(lambda: append(ledger, given.events))
        sealer.close()
        with ledger.read() as conn:
            envelopes, trust, known = list(Log(conn)), recorded_trust(conn, None), notes(conn)
            signer = recorder.signer(str(current_key(conn)))
        lines = [envelope.dumps() for envelope in envelopes]
        messages = [envelope.pae() for envelope in envelopes]
        signatures = [envelope.signatures[0].value for envelope in envelopes]
        signing = timed(lambda: [signer.sign(message) for message in messages])
        checking = timed(
            lambda: [
                is_signed(signer.public_key, signature, message)
                for signature, message in zip(signatures, messages, strict=True)
            ]
        )
        size = sum(map(len, messages)) // len(messages)
        print(f"{given.events} events of {size} bytes, {len(known)} checkpoints")
        tell("append, batches of 100", given.events, appended, signing)
        for processes in (1, 2):
            exported = timed(lambda processes=processes: sound(verify(lines, trust, known, processes=processes)))
            tell(f"verify an export, {processes} processes", given.events, exported, checking)

            def from_ledger(processes: int = processes) -> None:
                with ledger.read() as conn:
                    sound(verify(Log(conn), trust, known, processes=processes))

            tell(f"verify the ledger, {processes} processes", given.events, timed(from_ledger), checking)
        tell("bare Ed25519, sign", given.events, signing, signing)
        tell("bare Ed25519, verify", given.events, checking, checking)
        ledger.close()


def append(ledger: Ledger, count: int) -> None:
    now = datetime.now(UTC)
    for first in range(0, count, BATCH):
        with ledger.begin() as tx:
            record_events(tx, [made(number, now) for number in range(first, min(first + BATCH, count))])


def made(number: int, now: datetime) -> Event:
    """An event like those of an attempt."""
    facts = {
        "unit_id": f"{number:026d}-00000",
        "fence": 1,
        "source_hash": f"{number:064x}",
        "extractor_version": "pdf/3+qpdf-12.4.2+pdfium-8149+pillow-13.0.0+pikepdf-10.18.0+policy-6581d1dfefecabac",
        "outcome": "retried",
        "reason": "storage_unavailable",
    }
    return Event("attempt_ended", now, "2026-09", f"{number:026d}", facts)


def sound(verdict: object) -> None:
    assert not verdict.findings, verdict.findings[:3]  # type: ignore[attr-defined]


class Took(NamedTuple):
    """Seconds by the clock, and of this process's own work: the same on a busy machine."""

    wall: float
    own: float


def timed(work: Callable[[], object]) -> Took:
    wall, own = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - own)


def tell(what: str, events: int, took: Took, bare: Took) -> None:
    ratio = f"{took.own / bare.own:5.2f} x bare Ed25519 in own seconds" if "2 processes" not in what else ""
    print(f"{what:32} {events / took.wall:8.0f}/s {took.wall:7.1f} s, own {took.own:7.1f} s   {ratio}")


if __name__ == "__main__":
    main()
