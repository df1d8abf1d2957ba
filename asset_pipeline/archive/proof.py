"""Proves what an installation recorded, from its own ledger and stores: the whole log against every checkpoint kept.

Checkpoints are taken from wherever one may lie (ledger, archive store, second store): whoever cut the ledger's log
short would have to cut them all. Bags are verified by ``bag``, alone; what is checked belongs in ``evidence.verify``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from asset_pipeline.errors import StorageError
from asset_pipeline.evidence.findings import Fault
from asset_pipeline.evidence.trust import Trust
from asset_pipeline.evidence.verify import Verdict, verify
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.chain import Log, last_seq, notes
from asset_pipeline.ledger.checkpoints import stored_notes


@dataclass(slots=True)
class Proof:
    """What was found, how many checkpoints lay where, and which places could not be read."""

    verdict: Verdict
    notes: dict[str, int] = field(default_factory=dict)
    away: list[str] = field(default_factory=list)


def prove_ledger(inst: Installation, trust: Trust, *, processes: int | None = None) -> Proof:
    """Verify the ledger's whole log. A store that is away is named, not waited for."""
    found, away = {}, []
    for store in inst.checkpoints.stores:
        name = "archive" if store is inst.archive else "second store"
        try:
            found[name] = list(stored_notes(store))
        except StorageError:
            away.append(name)
    with inst.ledger.read() as conn:
        found["ledger"] = notes(conn)
        log, last = Log(conn, trust.first_seq), last_seq(conn)
        every = [note for some in found.values() for note in some]
        verdict = verify(log, trust, every, processes=processes)
    verdict.findings += log.findings
    if last > verdict.last and not any(row.fault is Fault.CUT_TAIL for row in verdict.findings):
        what = f"the ledger gave out {last} numbers, and the log ends at {verdict.last}"
        verdict.add(Fault.CUT_TAIL, verdict.last + 1, what)
    verdict.findings.sort(key=lambda row: (row.seq is None, row.seq or 0))
    return Proof(verdict, {name: len(some) for name, some in found.items()}, away)
