"""Alerts leave the house: JSON to a web server, a message to a mail server, and clear words when neither takes it."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from asset_pipeline.defs.delivery import LINES, NotDelivered, channels
from asset_pipeline.errors import ConfigurationError
from asset_pipeline.ledger.alerts import Alert
from asset_pipeline.settings import Settings
from asset_pipeline_tests.defs.receivers import Hook, Post, running

RUN = Alert("run:1", "failed_run", "A run of 2026-05 failed: run 1.", "2026-05")
QUEUE = Alert("backlog:2026-05-03", "backlog", "7 documents are queued, the oldest for 2.0 hours.")


@pytest.fixture
def hook() -> Iterator[Hook]:
    with running(server := Hook()):
        yield server


@pytest.fixture
def post() -> Iterator[Post]:
    with running(server := Post()):
        yield server


def _webhook(address: str) -> Settings:
    return Settings(alert_webhook=SecretStr(address))


def _mail(address: str, **changes: str) -> Settings:
    people = {"alert_mail_from": "archive@example.org", "alert_mail_to": "ops@example.org, desk@example.org"}
    return Settings(alert_mail_server=SecretStr(address), **people | changes)


def test_a_webhook_is_told_in_words_and_in_fields(hook: Hook) -> None:
    (way,) = channels(_webhook(hook.address))
    way.deliver([RUN, QUEUE])
    (body,) = hook.bodies
    assert body["text"].splitlines()[0] == "Asset pipeline: 2 alerts"
    assert body["alerts"] == [
        {"kind": "failed_run", "month": "2026-05", "text": RUN.text},
        {"kind": "backlog", "month": None, "text": QUEUE.text},
    ]


@pytest.mark.parametrize("status", [400, 404, 500, 503])
def test_a_webhook_that_does_not_take_it_is_told_without_its_address(hook: Hook, status: int) -> None:
    hook.status = status
    (way,) = channels(_webhook(hook.address))
    with pytest.raises(NotDelivered) as caught:
        way.deliver([RUN])
    assert str(caught.value) == f"the webhook answered {status}"


def test_a_webhook_that_is_away_is_told_without_its_address() -> None:
    (way,) = channels(_webhook("http://127.0.0.1:1/secret-token"))
    with pytest.raises(NotDelivered) as caught:
        way.deliver([RUN])
    assert "away" in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "127" not in str(caught.value)


def test_a_redirect_is_not_followed(hook: Hook) -> None:
    with running(other := Hook()):
        hook.status, hook.location = 307, other.address
        (way,) = channels(_webhook(hook.address))
        with pytest.raises(NotDelivered, match="307"):
            way.deliver([RUN])
        assert other.asked == 0


def test_mail_goes_to_all_receivers_with_a_login_where_one_is_named(post: Post) -> None:
    (way,) = channels(_mail(f"smtp://robot:pass%40word@127.0.0.1:{post.port}"))
    way.deliver([RUN])
    (message,) = post.messages
    assert message["Subject"] == f"Asset pipeline: {RUN.text}"
    assert message["To"] == "ops@example.org, desk@example.org"
    assert message.get_content().splitlines() == [f"- {RUN.text}"]
    assert base64.b64decode(post.logins[0]) == b"\0robot\0pass@word"
    assert len(post.receivers) == 2


def test_a_flood_is_cut_and_counted(post: Post) -> None:
    (way,) = channels(_mail(f"smtp://127.0.0.1:{post.port}"))
    way.deliver([RUN] * (LINES + 7))
    assert post.messages[0].get_content().splitlines()[-1] == "- and 7 more"
    assert len(post.messages[0].get_content().splitlines()) == LINES + 1


def test_a_mail_server_that_refuses_or_is_away_is_told_without_its_address(post: Post) -> None:
    post.refuses = True
    for address in (f"smtp://robot:hush@127.0.0.1:{post.port}", "smtp://robot:hush@127.0.0.1:1"):
        (way,) = channels(_mail(address))
        with pytest.raises(NotDelivered) as caught:
            way.deliver([RUN])
        assert "hush" not in str(caught.value)


def test_a_server_without_tls_is_not_trusted_where_tls_is_asked_for(post: Post) -> None:
    (way,) = channels(_mail(f"smtp+starttls://127.0.0.1:{post.port}"))
    with pytest.raises(NotDelivered):
        way.deliver([RUN])
    assert post.messages == []


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        (_webhook("ftp://host/secret"), "ALERT_WEBHOOK"),
        (_webhook("https://"), "ALERT_WEBHOOK"),
        (_mail("host:25"), "ALERT_MAIL_SERVER"),
        (_mail("smtp://host:secret"), "ALERT_MAIL_SERVER"),
        (_mail("smtp://host", alert_mail_to=""), "ALERT_MAIL_TO"),
        (_mail("smtp://host", alert_mail_from=""), "ALERT_MAIL_FROM"),
    ],
)
def test_an_incomplete_channel_is_told_as_a_setting(settings: Settings, variable: str) -> None:
    with pytest.raises(ConfigurationError, match=variable) as caught:
        channels(settings)
    assert "secret" not in str(caught.value)


def test_addresses_are_not_shown_with_the_settings() -> None:
    told = repr(_webhook("https://host/secret")) + repr(_mail("smtp://robot:secret@host"))
    assert "secret" not in told


def test_without_an_address_nobody_is_told() -> None:
    assert channels(Settings()) == []
