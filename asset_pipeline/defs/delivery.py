"""Carries alerts out of the house: a webhook that takes JSON, and e-mail. Knows nothing of where alerts come from.

Failures are told without the address, which may hold a credential. A webhook that redirects is refused: it could lead
a credential elsewhere. The JSON has ``text`` for chat programs and ``alerts`` for other programs.
"""

from __future__ import annotations

import json
import smtplib
import ssl
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from http.client import HTTPException, HTTPMessage
from typing import IO, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from asset_pipeline.errors import ConfigurationError
from asset_pipeline.ledger.alerts import Alert
from asset_pipeline.settings import Settings

SECONDS = 10
"""How long a channel may take to answer; a look at everything must end within Dagster's minute."""

LINES = 50
"""Alerts that are spelled out in one message; the others are counted."""


class NotDelivered(Exception):
    """The channel did not take the message. The text names no address."""


class Channel(Protocol):
    """A way to tell people."""

    @property
    def name(self) -> str:
        """What the ledger calls it."""
        ...

    def deliver(self, alerts: Sequence[Alert]) -> None:
        """Tell of these in one message. Raises NotDelivered."""
        ...


def channels(settings: Settings) -> list[Channel]:
    """The ways that the settings name. Raises ConfigurationError for one that is incomplete."""
    found: list[Channel] = []
    if address := settings.alert_webhook.get_secret_value():
        if not _is_complete(address, ("http", "https")):
            raise ConfigurationError("ASSET_PIPELINE_ALERT_WEBHOOK is not a web address.", "Write https://host/path.")
        found.append(Webhook(address))
    if address := settings.alert_mail_server.get_secret_value():
        receivers = [part.strip() for part in settings.alert_mail_to.split(",") if part.strip()]
        if not _is_complete(address, tuple(_PORTS)):
            what = "ASSET_PIPELINE_ALERT_MAIL_SERVER is not understood."
            raise ConfigurationError(what, "Write smtps://user:password@host:465 or smtp+starttls://host:587.")
        if not receivers or not settings.alert_mail_from:
            what = "Alerts by mail need a sender and a receiver."
            raise ConfigurationError(what, "Set ASSET_PIPELINE_ALERT_MAIL_FROM and ASSET_PIPELINE_ALERT_MAIL_TO.")
        found.append(Mail(urlsplit(address), settings.alert_mail_from, receivers))
    return found


def _is_complete(address: str, schemes: Sequence[str]) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def headline(alerts: Sequence[Alert]) -> str:
    """The first line of a message."""
    return f"Asset pipeline: {alerts[0].text}" if len(alerts) == 1 else f"Asset pipeline: {len(alerts)} alerts"


def body(alerts: Sequence[Alert]) -> str:
    """One line an alert, cut at ``LINES``."""
    lines = [f"- {alert.text}" for alert in alerts[:LINES]]
    more = len(alerts) - LINES
    return "\n".join([*lines, f"- and {more} more"] if more > 0 else lines)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Posts JSON to ``address``; any answer of 200 to 299 is success."""

    address: str
    name: str = "webhook"

    def deliver(self, alerts: Sequence[Alert]) -> None:
        """See ``Channel``."""
        told = [{"kind": alert.kind, "month": alert.month, "text": alert.text} for alert in alerts]
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked in channels()
            self.address,
            data=json.dumps({"text": f"{headline(alerts)}\n{body(alerts)}", "alerts": told}).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "asset-pipeline"},
        )
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS) as answer:
                answer.read(1024)
        except urllib.error.HTTPError as error:
            raise NotDelivered(f"the webhook answered {error.code}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise NotDelivered(f"the webhook is away ({type(error).__name__})") from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self,
        req: urllib.request.Request,  # noqa: ARG002 - the base class's signature
        fp: IO[bytes],  # noqa: ARG002
        code: int,  # noqa: ARG002
        msg: str,  # noqa: ARG002
        headers: HTTPMessage,  # noqa: ARG002
        newurl: str,  # noqa: ARG002
    ) -> None:
        return None


_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True, slots=True)
class Mail:
    """Sends one plain-text message to all ``receivers``."""

    server: SplitResult
    sender: str
    receivers: Sequence[str]
    name: str = "mail"

    def deliver(self, alerts: Sequence[Alert]) -> None:
        """See ``Channel``."""
        message = EmailMessage()
        message["Subject"], message["From"], message["To"] = headline(alerts), self.sender, ", ".join(self.receivers)
        message.set_content(f"{body(alerts)}\n")
        try:
            with self._connect() as connection:
                if self.server.username:
                    password = unquote(self.server.password or "")
                    connection.login(unquote(self.server.username), password)
                connection.send_message(message)
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(f"the mail server did not take it ({type(error).__name__})") from None

    def _connect(self) -> smtplib.SMTP:
        host, port = str(self.server.hostname), self.server.port or _PORTS[self.server.scheme]
        if self.server.scheme == "smtps":
            return smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=ssl.create_default_context())
        connection = smtplib.SMTP(host, port, timeout=SECONDS)
        if self.server.scheme == "smtp+starttls":
            try:
                connection.starttls(context=ssl.create_default_context())
            except BaseException:
                connection.close()
                raise
        return connection
