"""`retention …` as an operator uses it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from asset_pipeline_tests.small_documents import picture_pdf


def _told(command: Callable, *arguments: str) -> dict:
    ended = command("retention", *arguments, "--format", "json")
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def test_a_plan_of_the_policy_in_force_is_sound_and_a_hold_is_set_shown_and_lifted(
    command: Callable, place: Path
) -> None:
    (place / ".asset_pipeline" / "policy.yaml").write_text("retention: {working_days: 2, archive_days: 30}\n")
    document = place / ".asset_pipeline" / "inbox" / "city" / "2026-05" / "one.pdf"
    document.parent.mkdir(parents=True)
    picture_pdf(document, [10])
    assert command("run", "2026-05").status == 0
    planned = _told(command, "plan")
    assert (planned["due"], planned["files"], planned["held"]) == ([], 0, 0)
    assert planned["policy"]["archive_days"] == 30

    hold_id = command("retention", "hold", "collection", "city", "--why", "litigation").out.strip()
    (held,) = _told(command, "status")["holds"]
    assert (held["hold_id"], held["scope"], held["subject"], held["why"]) == (
        hold_id,
        "collection",
        "city",
        "litigation",
    )
    assert held["set_by"]
    assert command("fsck", "--sweep").err.count("hold") == 1
    assert command("retention", "lift", hold_id, "--why", "settled").status == 0
    assert command("retention", "lift", hold_id, "--why", "settled").status == 2
    told = _told(command, "status")
    assert (told["holds"], told["bytes_past_deadline"]) == ([], 0)
    assert [(row["month"], row["reports"]) for row in told["kept"]] == [("2026-05", 1)]
    as_table = command("retention", "status", "--lifted").out
    assert len(re.findall(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\s", as_table)) == 4, "kept until, set and lifted"
    assert "+00:00" not in as_table
    assert _told(command, "apply")["deleted"] == []


def test_a_hold_that_covers_nothing_that_can_be_is_a_usage_error(command: Callable) -> None:
    for arguments in (
        ("report", "nothing", "--why", "litigation"),
        ("all", "city", "--why", "litigation"),
        ("month", "--why", "litigation"),
        ("month", "soon", "--why", "litigation"),
        ("planet", "earth", "--why", "litigation"),
        ("all",),
    ):
        assert command("retention", "hold", *arguments).status == 2, arguments
