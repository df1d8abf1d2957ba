"""Alerts that are to be told, and whether they were: each occasion once a channel, however many processes look.

An alert is recorded first and delivered afterwards, so that a channel which is away gets it later. Delivery is claimed;
a claim whose process died may be taken again: after a crash an alert can come twice, but never not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, or_, select, update

from asset_pipeline.ledger.schema import alerts
from asset_pipeline.ledger.statements import insert_new, portions

CLAIM = timedelta(minutes=10)
"""After this long a claim that was never marked as sent is taken to be abandoned."""


@dataclass(frozen=True, slots=True)
class Alert:
    """``key`` names the occasion (at most 192 characters); ``text`` tells it in one line, no data of a document."""

    key: str
    kind: str
    text: str
    month: str | None = None


def record_alerts(tx: Connection, found: Sequence[Alert], channels: Sequence[str], now: datetime) -> None:
    """Record what is not known yet, for each channel."""
    rows = [
        {"alert_key": alert.key, "channel": channel, "recorded_at": now}
        | {name: getattr(alert, name) for name in ("kind", "month", "text")}
        for alert in sorted(found, key=lambda alert: alert.key)
        for channel in channels
    ]
    for some in portions(rows):
        insert_new(tx, alerts, list(some))


def claim_alerts(tx: Connection, channel: str, limit: int, now: datetime) -> list[Alert]:
    """Take the oldest alerts that nobody has delivered or is delivering through ``channel``."""
    free = or_(alerts.c.claimed_at.is_(None), alerts.c.claimed_at <= now - CLAIM)
    query = (
        select(alerts.c.alert_key, alerts.c.kind, alerts.c.text, alerts.c.month)
        .where(alerts.c.channel == channel, alerts.c.sent_at.is_(None), free)
        .order_by(alerts.c.recorded_at, alerts.c.alert_key)
        .limit(limit)
        .with_for_update(skip_locked=True)
    )
    taken = [Alert(*row) for row in tx.execute(query)]
    _change(tx, channel, taken, claimed_at=now)
    return taken


def mark_sent(tx: Connection, channel: str, delivered: Sequence[Alert], now: datetime) -> None:
    """Record that these were delivered."""
    _change(tx, channel, delivered, sent_at=now)


def give_back(tx: Connection, channel: str, undelivered: Sequence[Alert]) -> None:
    """Let the next look deliver these."""
    _change(tx, channel, undelivered, claimed_at=None)


def rearm(tx: Connection, prefix: str) -> None:
    """Forget that occasions whose key starts with ``prefix`` were told: they are over, and may come again."""
    tx.execute(
        delete(alerts).where(alerts.c.alert_key.startswith(prefix, autoescape=True), alerts.c.sent_at.is_not(None))
    )


def forget_alerts(tx: Connection, before: datetime) -> None:
    """Drop what was delivered before ``before``."""
    tx.execute(delete(alerts).where(alerts.c.sent_at < before))


def _change(tx: Connection, channel: str, those: Sequence[Alert], **values: datetime | None) -> None:
    for some in portions([alert.key for alert in those]):
        ours = alerts.c.channel == channel, alerts.c.alert_key.in_(some)
        tx.execute(update(alerts).where(*ours).values(**values))
