"""The sensor that tells people: what it finds, that it tells it once, and that a channel which is away loses none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    ManagedGrpcPythonEnvCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_shared.error import SerializableErrorInfo
from pydantic import SecretStr

from asset_pipeline.defs.alerts import UNSET
from asset_pipeline.defs.build import build_defs
from asset_pipeline.defs.instance import materialize_months
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.errors import ConfigurationError
from asset_pipeline.installation import open_installation
from asset_pipeline.ledger import jobs
from asset_pipeline.reasons import Reason
from asset_pipeline.settings import Settings
from asset_pipeline_tests.defs.receivers import Hook, Post, running
from asset_pipeline_tests.ledger import making
from asset_pipeline_tests.small_documents import MONTH, drop_document

Look = Callable[..., dg.SensorResult]


@pytest.fixture
def hook() -> Iterator[Hook]:
    with running(server := Hook()):
        yield server


@pytest.fixture
def look(settings: Settings, instance: dg.DagsterInstance, hook: Hook) -> Look:
    """One tick, going on from where the last one was."""
    reached: list[str | None] = [None]

    def tick(now: datetime | None = None, **changes: object) -> dg.SensorResult:
        changed = settings.model_copy(update={"alert_webhook": SecretStr(hook.address)} | changes)
        pipeline = Pipeline(changed, clock=lambda: now or datetime.now(UTC))
        defs = build_defs(pipeline=pipeline)
        context = dg.build_sensor_context(
            instance=instance,
            cursor=reached[0],
            repository_def=defs.get_repository_def(),
            resources={"pipeline": pipeline},
        )
        result = defs.resolve_sensor_def("alerts")(context)
        reached[0] = result.cursor or reached[0]
        return result

    return tick


def _told(hook: Hook) -> list[tuple[str, str | None]]:
    return [(alert["kind"], alert["month"]) for body in hook.bodies for alert in body["alerts"]]


def _spoil_archive(settings: Settings) -> None:
    """A file where the archive's folder should be."""
    Path(settings.store_address("archive")).touch()


def test_nothing_to_tell_is_told_to_nobody(look: Look, hook: Hook) -> None:
    assert look().skip_reason.skip_message == "Nothing new."
    assert hook.asked == 0


def test_without_an_address_the_sensor_says_how_to_set_one(look: Look) -> None:
    assert look(alert_webhook=SecretStr("")).skip_reason.skip_message == UNSET


def test_a_wrong_address_fails_the_tick_with_the_name_of_the_setting(look: Look) -> None:
    with pytest.raises((ConfigurationError, dg.Failure), match="ALERT_WEBHOOK"):
        look(alert_webhook=SecretStr("nonsense"))


def test_a_failed_check_is_told_once_and_again_only_when_it_found_something_else(
    settings: Settings, instance: dg.DagsterInstance, look: Look, hook: Hook
) -> None:
    drop_document(settings, "secret-name.pdf", [1], broken_picture=True)
    drop_document(settings, "locked.pdf", [2], encrypted=True)
    materialize_months(settings, [MONTH], instance=instance)
    look()
    assert _told(hook) == [("failed_check", MONTH)] * 2
    texts = "".join(alert["text"] for alert in hook.bodies[0]["alerts"])
    assert "nothing_quarantined" in texts
    assert "every_document_read" in texts
    assert "secret-name" not in str(hook.bodies)
    materialize_months(settings, [MONTH], instance=instance)
    assert look().skip_reason.skip_message == "Nothing new."
    drop_document(settings, "other.pdf", [3], encrypted=True)
    materialize_months(settings, [MONTH], instance=instance)
    look()
    assert len(hook.bodies) == 2
    assert "2 of 3 documents" in hook.bodies[1]["alerts"][0]["text"]


def test_a_failed_run_is_told_with_its_month_and_id(
    settings: Settings, instance: dg.DagsterInstance, look: Look, hook: Hook
) -> None:
    drop_document(settings, "a.pdf", [1])
    _spoil_archive(settings)
    with pytest.raises(Exception, match=r".+"):
        materialize_months(settings, [MONTH], instance=instance)
    look()
    look()
    assert _told(hook) == [("failed_run", MONTH)]
    assert instance.get_runs()[0].run_id in hook.bodies[0]["text"]


def test_a_webhook_that_is_away_fails_nothing_and_gets_it_with_a_later_tick(
    settings: Settings, instance: dg.DagsterInstance, look: Look, hook: Hook
) -> None:
    drop_document(settings, "locked.pdf", [2], encrypted=True)
    assert materialize_months(settings, [MONTH], instance=instance)[0].success
    hook.status = 503
    for _ in range(2):
        assert look().skip_reason.skip_message == "1 alerts wait: the webhook answered 503."
    assert hook.asked == 2
    hook.status = 204
    assert look().skip_reason.skip_message == "1 alerts went out by webhook."
    assert look().skip_reason.skip_message == "Nothing new."
    assert _told(hook) == [("failed_check", MONTH)]


def test_each_channel_is_told_and_one_that_is_away_holds_up_no_other(
    settings: Settings, instance: dg.DagsterInstance, look: Look, hook: Hook
) -> None:
    drop_document(settings, "locked.pdf", [2], encrypted=True)
    materialize_months(settings, [MONTH], instance=instance)
    hook.status = 500
    with running(post := Post()):
        mail = {
            "alert_mail_server": SecretStr(f"smtp://127.0.0.1:{post.port}"),
            "alert_mail_from": "archive@example.org",
            "alert_mail_to": "ops@example.org",
        }
        look(**mail)
        look(**mail)
        assert len(post.messages) == 1
    assert hook.asked == 2


def test_documents_that_were_given_up_are_told_by_job_and_reason(settings: Settings, look: Look, hook: Hook) -> None:
    with open_installation(settings) as inst:
        job_id = making.start(inst.ledger, "secret-name.pdf")
        with inst.ledger.begin() as tx:
            jobs.dead_letter_job(tx, job_id, Reason.DECODER_CRASHED, making.NOW)
    look(making.NOW + timedelta(hours=1))
    look(making.NOW + timedelta(hours=2))
    assert _told(hook) == [("dead_letter", making.MONTH)]
    assert job_id in hook.bodies[0]["text"]
    assert "decoder_crashed" in hook.bodies[0]["text"]
    assert "secret-name" not in str(hook.bodies)


def test_a_backlog_is_told_once_a_day_while_it_lasts(settings: Settings, look: Look, hook: Hook) -> None:
    with open_installation(settings) as inst:
        making.queue(inst.ledger, "a.pdf")
    look(making.NOW + timedelta(minutes=59))
    assert hook.asked == 0
    for hours in (2, 3, 26):
        look(making.NOW + timedelta(hours=hours))
    assert _told(hook) == [("backlog", None)] * 2
    assert "the oldest for 2.0 hours" in hook.bodies[0]["text"]


def test_bytes_past_their_deadline_and_a_full_working_folder_are_told(
    settings: Settings, look: Look, hook: Hook
) -> None:
    settings.policy_file.write_text("objectives: {temporary_bytes: 100, queue_seconds: 1.0e+9}\n")
    with open_installation(settings) as inst:
        making.queue(inst.ledger, "a.pdf")
    place = settings.work_folder / "aa"
    place.mkdir(parents=True)
    (place / "document").write_bytes(b"x" * 101)
    look(making.NOW + timedelta(days=3651))
    assert sorted(_told(hook)) == [("overdue", None), ("temporary_volume", None)]


def test_a_sensor_that_fails_twice_in_a_row_is_told_until_it_works_again(
    instance: dg.DagsterInstance, look: Look, hook: Hook
) -> None:
    origin = RemoteInstigatorOrigin(
        RemoteRepositoryOrigin(
            ManagedGrpcPythonEnvCodeLocationOrigin(
                LoadableTargetOrigin(module_name="asset_pipeline.definitions"), "here"
            ),
            "__repository__",
        ),
        "new_uploads",
    )
    state = InstigatorState(
        origin, InstigatorType.SENSOR, InstigatorStatus.RUNNING, SensorInstigatorData(min_interval=30)
    )
    instance.add_instigator_state(state)
    moment = iter(range(1, 100))

    def tick(status: TickStatus) -> None:
        instance.create_tick(
            TickData(
                instigator_origin_id=state.instigator_origin_id,
                instigator_name="new_uploads",
                instigator_type=InstigatorType.SENSOR,
                status=status,
                timestamp=float(next(moment)),
                selector_id=state.selector_id,
                run_ids=[],
                error=SerializableErrorInfo("Away.\n", [], None) if status is TickStatus.FAILURE else None,
            )
        )
        look()

    for status in (TickStatus.SUCCESS, TickStatus.FAILURE):
        tick(status)
    assert hook.asked == 0
    tick(TickStatus.FAILURE)
    tick(TickStatus.FAILURE)
    assert _told(hook) == [("failing_sensor", None)]
    assert "new_uploads" in hook.bodies[0]["text"]
    for status in (TickStatus.SKIPPED, TickStatus.FAILURE, TickStatus.FAILURE):
        tick(status)
    assert _told(hook) == [("failing_sensor", None)] * 2


def test_a_spoilt_cursor_does_no_harm(settings: Settings, instance: dg.DagsterInstance, hook: Hook) -> None:
    pipeline = Pipeline(settings.model_copy(update={"alert_webhook": SecretStr(hook.address)}))
    defs = build_defs(pipeline=pipeline)
    for cursor in ("nonsense", "[]", '{"runs": null}'):
        context = dg.build_sensor_context(
            instance=instance, cursor=cursor, repository_def=defs.get_repository_def(), resources={"pipeline": pipeline}
        )
        assert defs.resolve_sensor_def("alerts")(context).cursor
