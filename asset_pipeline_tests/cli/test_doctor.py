"""`doctor` says that a sound installation is sound, and what is wrong with another."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest


def test_a_sound_installation_passes(command: Callable) -> None:
    ended = command("doctor", "--format", "json")
    body = json.loads(ended.out)
    assert [row for row in body["checks"] if not row["ok"]] == []
    assert body["ok"]
    assert ended.status == 0
    assert {"dagster family", "database", "archive", "sandbox", "policy"} <= {row["check"] for row in body["checks"]}


def test_what_is_wrong_is_named_with_a_remedy_and_the_rest_is_still_looked_at(command: Callable, place: Path) -> None:
    (place / ".asset_pipeline" / "policy.yaml").write_text("limits: {pages: -1}\n")
    (place / ".asset_pipeline" / "archive").write_text("in the way")
    ended = command("doctor", "--format", "json", ASSET_PIPELINE_TIMEZONE="Nowhere/Land")
    assert ended.status == 1
    bad = {row["check"]: row for row in json.loads(ended.out)["checks"] if not row["ok"]}
    assert {"policy", "archive", "months"} <= set(bad)
    assert all(row["remedy"] for row in bad.values())
    assert "database" not in bad


@pytest.mark.parametrize(("engine", "told"), [("ooxml", "Choose pdf or pypdf"), ("magic", "Choose one of")])
def test_an_engine_that_reads_no_pdf_is_named(command: Callable, engine: str, told: str) -> None:
    ended = command("doctor", "--format", "json", ASSET_PIPELINE_ENGINE=engine)
    assert ended.status == 1
    bad = {row["check"]: row["remedy"] for row in json.loads(ended.out)["checks"] if not row["ok"]}
    assert set(bad) == {"engine", "sandbox"}
    assert all(told in remedy for remedy in bad.values())
