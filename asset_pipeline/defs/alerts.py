"""Tells people when something needs them, once: every minute what is new is recorded in the ledger and delivered.

One sensor instead of run-failure sensors, because a failed check fires none of those and a document that was given up
fails no run. Recording comes first, so a webhook that is away loses nothing and fails nothing: what it did not take
is delivered with a later tick. When the daemon or the ledger is away this is silent; watch those from outside, for
instance by scraping `asset-pipeline metrics --format prometheus`.
"""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import dagster as dg

from asset_pipeline.defs import findings
from asset_pipeline.defs.border import told_to_dagster
from asset_pipeline.defs.delivery import Channel, NotDelivered, channels
from asset_pipeline.defs.resources import Pipeline
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.alerts import claim_alerts, forget_alerts, give_back, mark_sent, rearm, record_alerts

SECONDS = 60
AT_ONCE = 500
"""Alerts of one message."""

KEPT = timedelta(days=90)
"""How long it is known that an alert was told; longer than anything is looked back at."""

UNSET = (
    "Nobody is told: set ASSET_PIPELINE_ALERT_WEBHOOK, or ASSET_PIPELINE_ALERT_MAIL_SERVER with _FROM and _TO, "
    "to be told of failures."
)


def build_alerts() -> dg.SensorDefinition:
    """The sensor."""

    @dg.sensor(
        name="alerts",
        minimum_interval_seconds=SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Tells people by webhook and e-mail, once each: failed runs, failed checks, documents that were "
        "given up, work that waits too long, bytes past their deadline, a full working folder, sensors and schedules "
        "that fail. It asks for no run.",
    )
    def alerts(context: dg.SensorEvaluationContext, pipeline: dg.ResourceParam[Pipeline]) -> dg.SensorResult:
        with told_to_dagster(pipeline), pipeline.open() as inst:
            ways = channels(inst.settings)
            if not ways:
                return dg.SensorResult(skip_reason=UNSET)
            now = pipeline.clock()
            until = _record(inst, context.instance, [way.name for way in ways], _reached(context.cursor, now), now)
            told = list(_deliver(inst, ways, now))
        return dg.SensorResult(skip_reason=" ".join(told) or "Nothing new.", cursor=json.dumps({"runs": until}))

    return alerts


def _record(inst: Installation, instance: dg.DagsterInstance, names: list[str], after: float, now: datetime) -> float:
    runs = findings.of_runs(instance, after)
    found = [*runs.alerts, *findings.of_work(inst, now), *findings.of_ticks(instance)]
    with inst.ledger.begin() as tx:
        for prefix in runs.passed:
            rearm(tx, prefix)
        record_alerts(tx, found, names, now)
        forget_alerts(tx, now - KEPT)
    return runs.until


def _deliver(inst: Installation, ways: list[Channel], now: datetime) -> Iterator[str]:
    for way in ways:
        with inst.ledger.begin() as tx:
            waiting = claim_alerts(tx, way.name, AT_ONCE, now)
        if not waiting:
            continue
        try:
            way.deliver(waiting)
        except NotDelivered as error:
            with inst.ledger.begin() as tx:
                give_back(tx, way.name, waiting)
            yield f"{len(waiting)} alerts wait: {error}."
        else:
            with inst.ledger.begin() as tx:
                mark_sent(tx, way.name, waiting, now)
            yield f"{len(waiting)} alerts went out by {way.name}."


def _reached(cursor: str | None, now: datetime) -> float:
    """Up to when runs were looked at; a cursor that makes no sense counts as none."""
    try:
        return float(json.loads(cursor or "{}")["runs"])
    except (ValueError, TypeError, KeyError):
        return (now - findings.FIRST_LOOK).timestamp()
