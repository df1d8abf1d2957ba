"""The two schedules: which months they ask for, at the edges of months and after failures."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import select, update

from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import PipelineError
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger.requeue import requeue_job
from asset_pipeline.ledger.schema import jobs
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import drop_document

Asked = Callable[..., list[str | None]]


@pytest.fixture
def asked(settings: Settings, instance: dg.DagsterInstance) -> Asked:
    def tick(schedule: str, moment: datetime, **changes: object) -> list[str | None]:
        pipeline = Pipeline(settings.model_copy(update=changes), clock=lambda: moment)
        defs = build_defs(pipeline=pipeline)
        context = dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=moment,
            repository_def=defs.get_repository_def(),
            resources={"pipeline": pipeline},
        )
        result = defs.resolve_schedule_def(schedule).evaluate_tick(context)
        return [request.partition_key for request in result.run_requests]

    return tick


NIGHT = datetime(2026, 6, 10, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "zone", "month"),
    [
        (datetime(2026, 6, 1, 3, tzinfo=UTC), "UTC", "2026-05"),
        (datetime(2026, 1, 1, 3, tzinfo=UTC), "UTC", "2025-12"),
        (datetime(2024, 3, 1, 3, tzinfo=UTC), "UTC", "2024-02"),
        # 03:00 of 1 June in Auckland is still May in UTC.
        (datetime(2026, 5, 31, 15, tzinfo=UTC), "Pacific/Auckland", "2026-05"),
        (datetime(2026, 6, 1, 10, tzinfo=UTC), "America/Los_Angeles", "2026-05"),
    ],
)
def test_the_month_that_has_ended_is_closed(asked: Asked, moment: datetime, zone: str, month: str) -> None:
    assert asked("close_of_month", moment, timezone=zone) == [month]


def test_no_month_before_the_first_one_is_closed(asked: Asked) -> None:
    assert asked("close_of_month", datetime(2026, 6, 1, 3, tzinfo=UTC), first_month="2026-06") == []


def test_a_night_without_anything_left_behind_asks_for_nothing(asked: Asked) -> None:
    assert asked("nightly_catch_up", NIGHT) == []


def test_months_that_were_never_archived_are_caught_up_newest_first(settings: Settings, asked: Asked) -> None:
    for month in ("2026-03", "2026-06", "2025-12"):
        drop_document(settings, "a.pdf", [1], month=month)
    drop_document(settings, "a.pdf", [1], month="2026-13")
    assert asked("nightly_catch_up", NIGHT) == ["2026-06", "2026-03", "2025-12"]


def test_a_month_that_is_merely_out_of_date_stays_as_it_is(
    settings: Settings, instance: dg.DagsterInstance, asked: Asked
) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    materialize_months(settings, ["2026-05"], instance=instance)
    assert asked("nightly_catch_up", NIGHT) == []
    settings.policy_file.write_text("limits: {pixels: 1000}\n")
    assert asked("nightly_catch_up", NIGHT) == []


def test_a_month_with_something_new_is_caught_up(
    settings: Settings, instance: dg.DagsterInstance, asked: Asked
) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    materialize_months(settings, ["2026-05"], instance=instance)
    drop_document(settings, "late.pdf", [2], month="2026-05")
    assert asked("nightly_catch_up", NIGHT) == ["2026-05"]


def test_a_month_with_a_requeued_document_is_caught_up(
    settings: Settings, instance: dg.DagsterInstance, asked: Asked
) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    materialize_months(settings, ["2026-05"], instance=instance)
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        (job_id,) = tx.execute(select(jobs.c.job_id)).scalars()
        tx.execute(update(jobs).values(state="dead_lettered", reason="decoder_crashed"))
    assert asked("nightly_catch_up", NIGHT) == []
    with open_installation(settings) as inst, inst.ledger.begin() as tx:
        assert requeue_job(tx, job_id, NIGHT)
    assert asked("nightly_catch_up", NIGHT) == ["2026-05"]


def test_a_month_whose_last_run_failed_is_caught_up(
    settings: Settings, instance: dg.DagsterInstance, asked: Asked
) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    materialize_months(settings, ["2026-05"], instance=instance)
    archive = Path(settings.store_address("archive"))
    archive.rename(archive.with_name("elsewhere"))
    archive.write_text("in the way")
    with pytest.raises(PipelineError):
        materialize_months(settings, ["2026-05"], instance=instance)
    assert asked("nightly_catch_up", NIGHT) == ["2026-05"]


def test_a_month_that_is_being_run_is_not_asked_for_again(
    settings: Settings, instance: dg.DagsterInstance, asked: Asked
) -> None:
    drop_document(settings, "a.pdf", [1], month="2026-05")
    during: list[list[str | None]] = []
    materialize_months(
        settings,
        ["2026-05"],
        instance=instance,
        progress=lambda *_: during.append(asked("nightly_catch_up", NIGHT)),
    )
    assert during
    assert not any(during)


def test_one_night_asks_for_a_bounded_number_of_months(settings: Settings, asked: Asked) -> None:
    for number in range(30):
        drop_document(settings, "a.pdf", [1], month=f"{2024 + number // 12}-{number % 12 + 1:02}")
    months = asked("nightly_catch_up", NIGHT)
    assert (len(months), months[0]) == (24, "2026-06")
