"""`gate`: the four checks before the monthly archive is rolled out, against the stores and the ledger of the settings.

Works in a copy that is removed afterwards (``rehearsal``), so it may be run at any time beside real work. What is
checked belongs in ``gate_checks``.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asset_pipeline.cli import console
from asset_pipeline.cli.console import Format, Sheet
from asset_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from asset_pipeline.cli.gate_checks import GateCheck
    from asset_pipeline.installation import Installation

COLUMNS = ("check", "passed", "seconds", "meaning", "detail")


def gate(
    format_: Annotated[Format, typer.Option("--format", help="How to answer.")] = Format.TABLE,
) -> None:
    """Try what goes wrong in a month, in a copy that is removed afterwards. Exit status 1 when a check fails.

    A document handed in twice, a store whose answer is lost, malformed bytes, and the directory of a worker that died.
    """
    from asset_pipeline.cli.gate_checks import CHECKS
    from asset_pipeline.cli.rehearsal import rehearsal
    from asset_pipeline.intake.keys import open_months
    from asset_pipeline.settings import load_settings

    now = datetime.now(UTC)
    with console.progress_bar() as move, rehearsal(load_settings(), now) as inst:
        rows = []
        for number, check in enumerate(CHECKS):
            move(check.name, number, len(CHECKS))
            rows.append(_examine(check, inst, _months_before(open_months(inst.settings, now).last, number)))
    passed = all(row["passed"] for row in rows)
    console.show(format_, [Sheet("Gate", COLUMNS, rows)], {"passed": passed, "checks": rows})
    if not passed:
        raise typer.Exit(1)


def _examine(check: GateCheck, inst: Installation, month: str) -> dict[str, Any]:
    from asset_pipeline.cli.gate_checks import NotHeld

    began = time.monotonic()
    try:
        passed, detail = True, check.run(inst, month)
    except NotHeld as found:
        passed, detail = False, f"{found}."
    except PipelineError as error:
        passed, detail = False, str(error)
    seconds = round(time.monotonic() - began, 1)
    return {"check": check.name, "passed": passed, "seconds": seconds, "meaning": check.meaning, "detail": detail}


def _months_before(month: str, count: int) -> str:
    """The month ``count`` months before ``month``."""
    months = int(month[:4]) * 12 + int(month[5:]) - 1 - count
    return f"{months // 12:04d}-{months % 12 + 1:02d}"
