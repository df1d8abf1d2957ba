"""Whose fault it is: a ledger that another process keeps locked is nobody's document's."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from asset_pipeline.errors import StorageError
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import engines
from asset_pipeline.work.away import is_away
from asset_pipeline_tests.small_documents import fresh_settings


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_ledger_that_was_locked_for_too_long_costs_no_document_a_try_though_it_answers_again(
    tmp_path: Path, database: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "BUSY_SECONDS", 1)
    more = {"ledger": request.getfixturevalue("postgres_ledger_url")} if database == "postgres" else {}
    touch = text("UPDATE event_counter SET seq = seq")
    with open_installation(fresh_settings(tmp_path, **more)) as inst:
        with open_installation(inst.settings) as other, other.ledger.begin() as holding:
            holding.execute(touch)
            with pytest.raises(StorageError, match="stayed locked") as caught, inst.ledger.begin() as tx:
                tx.execute(touch)
        inst.settings.work_folder.mkdir()
        assert is_away(inst, caught.value)
        other_failure = StorageError("One object cannot be written.", "Look at it.")
        assert not is_away(inst, other_failure), "all answer, so that one is about its object"
        assert is_away(inst, StorageError("Busy.", "Wait.", hint=timedelta(seconds=1)))
