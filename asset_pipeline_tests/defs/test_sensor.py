"""The sensor: news asks for its month once, and nothing in the inbox can make a tick fail."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import StorageError
from asset_pipeline.installation import open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import MONTH, drop_document

Tick = Callable[..., dg.SensorResult]


@pytest.fixture
def tick(settings: Settings, instance: dg.DagsterInstance) -> Tick:
    def look(cursor: str | None = None, **changes: object) -> dg.SensorResult:
        now = changes.pop("now", datetime(2026, 6, 10, 12, tzinfo=UTC))
        pipeline = Pipeline(settings.model_copy(update=changes), clock=lambda: now)
        defs = build_defs(pipeline=pipeline)
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, repository_def=defs.get_repository_def(), resources={"pipeline": pipeline}
        )
        return defs.resolve_sensor_def("new_uploads")(context)

    return look


def _asked(result: dg.SensorResult) -> list[str | None]:
    return [request.partition_key for request in result.run_requests or []]


def test_each_month_with_news_is_asked_for_and_the_same_news_by_the_same_key(settings: Settings, tick: Tick) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    drop_document(settings, "b.pdf", [2], month="2026-05")
    drop_document(settings, "c.pdf", [3], month="2026-06")
    first, second = tick(), tick()
    assert _asked(first) == ["2026-05", "2026-06"]
    assert [request.run_key for request in first.run_requests] == [request.run_key for request in second.run_requests]
    drop_document(settings, "d.pdf", [4], month="2026-06")
    third = tick()
    assert third.run_requests[0].run_key == first.run_requests[0].run_key
    assert third.run_requests[1].run_key != first.run_requests[1].run_key


def test_a_month_with_a_few_new_files_goes_before_one_with_a_bulk_import(settings: Settings, tick: Tick) -> None:
    for number in range(60):
        drop_document(settings, f"{number}.pdf", [], month="2026-05")
    drop_document(settings, "memo.pdf", [], month="2026-06")
    bulk, few = tick().run_requests
    assert int(few.tags["dagster/priority"]) > int(bulk.tags.get("dagster/priority", 0))


def test_uploads_beyond_what_their_collection_may_have_queued_are_not_asked_for_until_there_is_room(
    settings: Settings, tick: Tick
) -> None:
    drop_document(settings, "a.pdf", [1])
    with open_installation(settings) as inst:
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)
    drop_document(settings, "b.pdf", [2])
    result = tick(queued_bytes=1)
    assert _asked(result) == []
    assert "1 files wait until less of their collection is queued" in result.skip_reason.skip_message
    assert _asked(tick()) == [MONTH]


def test_nothing_new_is_a_skip_with_a_reason(tick: Tick) -> None:
    result = tick()
    assert _asked(result) == []
    assert result.skip_reason.skip_message == "Nothing new in the inbox."


def test_files_in_impossible_places_are_counted_by_reason_and_spoil_nothing(settings: Settings, tick: Tick) -> None:
    for month in ("2026-13", "1999-01", "2999-01", "may"):
        drop_document(settings, "secret-name.pdf", [1], month=month)
    alone = tick()
    assert _asked(alone) == []
    assert "month_out_of_range 3" in alone.skip_reason.skip_message
    assert "secret-name" not in alone.skip_reason.skip_message + alone.cursor
    assert json.loads(alone.cursor)["rejected"] == {"key_not_understood": 1, "month_out_of_range": 3}
    drop_document(settings, "good.pdf", [2], month="2026-05")
    assert _asked(tick(alone.cursor)) == ["2026-05"]


def test_a_month_that_dagster_does_not_know_is_not_asked_for(settings: Settings, tick: Tick) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    assert _asked(tick()) == ["2026-05"]
    later_first_month = tick(first_month="2026-06")
    assert _asked(later_first_month) == []
    assert "month_out_of_range 1" in later_first_month.skip_reason.skip_message


def test_a_file_that_is_still_being_written_waits_for_the_next_tick(settings: Settings, tick: Tick) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    noon = datetime(2026, 6, 10, 12, tzinfo=UTC)
    first = tick(settle_seconds=10.0, now=noon)
    assert _asked(first) == []
    assert "1 files have to stay unchanged" in first.skip_reason.skip_message
    assert _asked(tick(first.cursor, settle_seconds=10.0, now=noon + timedelta(seconds=30))) == ["2026-05"]


def test_a_spoilt_cursor_does_no_harm(settings: Settings, tick: Tick) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    for cursor in ("not json", "[]", '{"rejected": 3}'):
        assert _asked(tick(cursor)) == ["2026-05"]


def test_the_cursor_does_not_grow_with_the_inbox(settings: Settings, tick: Tick) -> None:
    sizes = []
    for count in (1, 40):
        for number in range(count):
            drop_document(settings, f"{number}.pdf", [number], month="2026-99")
        sizes.append(len(tick().cursor))
    assert sizes[1] - sizes[0] < 10


def test_the_rules_are_observed_once_until_they_change(
    settings: Settings, tick: Tick, instance: dg.DagsterInstance
) -> None:
    def observe(result: dg.SensorResult) -> int:
        for event in result.asset_events:
            instance.report_runless_asset_event(event)
        return len(result.asset_events)

    assert [observe(tick()), observe(tick())] == [1, 0]
    settings.policy_file.write_text("retention: {archive_days: 1}\n")
    assert observe(tick()) == 0, "what is kept how long changes no result"
    settings.policy_file.write_text("limits: {pixels: 1000}\n")
    assert observe(tick()) == 1


def test_an_inbox_that_is_away_fails_the_tick_in_one_clear_line(settings: Settings, tick: Tick) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    tick()
    shutil.rmtree(settings.store_address("inbox"))
    with pytest.raises(StorageError, match="inbox") as caught:
        tick()
    assert caught.value.__cause__ is None


def test_an_installation_without_an_inbox_yet_is_told_how_to_begin(settings: Settings, tick: Tick) -> None:
    Path(settings.store_address("inbox")).rmdir()
    result = tick()
    assert _asked(result) == []
    assert "Make the folder inbox" in result.skip_reason.skip_message
    with pytest.raises(StorageError, match="inbox"):
        tick(inbox=str(settings.home / "elsewhere"))
