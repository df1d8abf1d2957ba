"""What must hold after a campaign, whoever died when: nothing lost, nothing published twice, only poison dead."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from sqlalchemy import func, select

from asset_pipeline.archive.fsck import prove
from asset_pipeline.archive.proof import prove_ledger
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.schema import (
    attempts,
    audit_events,
    jobs,
    manifests,
    placements,
    receipts,
    units,
    uploads,
)
from asset_pipeline_tests.crash.campaign import Plan
from asset_pipeline_tests.crash.worker import NOTED, POISON_PAGES, files_of, settings_of


def judge(plan: Plan) -> tuple[dict[str, int], list[str]]:
    """Figures of the ledger, and what is wrong."""
    with open_installation(settings_of(plan)) as inst:
        return _judge(inst, plan)


def _judge(inst: Installation, plan: Plan) -> tuple[dict[str, int], list[str]]:
    """Forgotten units were worked once more: what they deliver is acknowledged, and no receipt is new."""
    documents, poison, forgotten = plan.documents, plan.poison, plan.forgotten
    wrong: list[str] = []

    def expect(what: str, found: object, wanted: object) -> None:
        if found != wanted:
            wrong.append(f"{what}: {found}, not {wanted}")

    with inst.ledger.read() as conn:
        job_rows = conn.execute(select(jobs.c.job_id, jobs.c.state, jobs.c.reason, jobs.c.pages)).all()
        expect("uploads", _counted(conn, uploads.c.state), {"admitted": documents, "duplicate": documents})
        dead = [row for row in job_rows if row.state != "succeeded"]
        expect("jobs", len(job_rows), documents)
        expect(
            "ends without a result",
            Counter((row.state, row.reason, row.pages) for row in dead),
            # Nobody lived to tell the pages of one that is poisonous to open.
            +Counter(
                {
                    ("dead_lettered", "worker_lost", POISON_PAGES): poison,
                    ("dead_lettered", "worker_lost", None): plan.poison_to_open,
                }
            ),
        )
        pages = sum(row.pages for row in job_rows if row.state == "succeeded")
        expect("placements", _rows(conn, placements), pages)
        expect("receipts", _rows(conn, receipts), pages)
        unit_rows = {row.unit_id: row for row in conn.execute(select(units))}
        expect("states of units", set(_counted(conn, units.c.state)) - {"done", "failed"}, set())
        published = [
            json.loads(payload)
            for payload in conn.execute(
                select(audit_events.c.payload).where(audit_events.c.type == "unit_published")
            ).scalars()
        ]
        again = Counter(event["unit_id"] for event in published)
        expect("units published twice", sum(count > 1 for count in again.values()), forgotten)
        expect("receipts added", sum(event["receipts_added"] for event in published), pages)
        expect("units published", len(again), len(job_rows) - len(dead))
        published = [event for event in published if again[event["unit_id"]] == 1]
        late = [event for event in published if event["fence"] != unit_rows[event["unit_id"]].fence]
        expect("publications under an old fence", len(late), 0)
        expect("attempts without an end", _rows(conn, attempts, attempts.c.ended_at.is_(None)), 0)
        expect("attempts that published", _rows(conn, attempts, attempts.c.outcome == "published"), len(again))
        ends = Counter(
            conn.execute(select(audit_events.c.job_id).where(audit_events.c.type == "job_succeeded")).scalars()
        )
        expect("jobs that succeeded twice", sum(count > 1 for count in ends.values()), forgotten)
        expect("manifests", _rows(conn, manifests), documents)
        expect("files written again", _replaced(plan), 0)
        facts = {
            "documents": len(job_rows),
            "pages": pages,
            "attempts": _rows(conn, attempts),
            "overtaken": _rows(conn, attempts, attempts.c.outcome == "fenced"),
            "retried": _rows(conn, attempts, attempts.c.outcome == "retried"),
            "returned": _rows(conn, attempts, attempts.c.returned_at.is_not(None)),
            "events": _rows(conn, audit_events),
        }
    proof = prove(inst)
    expect("findings of fsck", Counter(row.fault.value for row in proof.findings), Counter())
    chain = prove_ledger(inst, inst.trust(), processes=1)
    expect("findings in the log", len(chain.verdict.findings), 0)
    return facts | {"unnamed": len(proof.unnamed)}, wrong


def _counted(conn, column) -> dict[str, int]:
    return dict(conn.execute(select(column, func.count()).group_by(column)).tuples().all())


def _rows(conn, table, *where) -> int:
    return int(conn.execute(select(func.count()).select_from(table).where(*where)).scalar_one())


def _replaced(plan: Plan) -> int:
    """Files that were there while a late worker slept, and are others now."""
    noted = Path(plan.folder, NOTED)
    now = files_of(plan) if noted.exists() else {}
    lines = noted.read_text().splitlines() if noted.exists() else []
    return len({name for line in lines for name, inode in json.loads(line).items() if now.get(name, inode) != inode})
