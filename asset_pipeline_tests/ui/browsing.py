"""The installed Chromium for the tests of this room, and what a page must never do while they use it.

Without a Chromium the tests are skipped and say how to get one; where ``BROWSER_TESTS=required`` is set (as the check
script does) that is a failure instead. `make screenshots` has the same tests save what they see, for the documentation.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
MISSING = "There is no Chromium. Install it (Debian: apt-get install -y chromium) to run the browser tests."


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        (pytest.fail if os.environ.get("BROWSER_TESTS") == "required" else pytest.skip)(MISSING)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield launched
        launched.close()


def keep_picture(page: Page, name: str) -> None:
    """Save what the page looks like in the folder ``SCREENSHOTS``; does nothing where none is named."""
    if folder := os.environ.get("SCREENSHOTS"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=Path(folder, f"{name}.png"))


@dataclass(slots=True)
class Watch:
    """What a page asked for and complained of."""

    addresses: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    answered: list[Request] = field(default_factory=list)

    def bytes(self) -> int:
        """Bytes of all answers so far, without their headers."""
        return sum(request.sizes()["responseBodySize"] for request in self.answered)


def watch(page: Page) -> Watch:
    """Note every request of ``page``, its errors, what its console says, and dialogs that it opens."""
    seen = Watch()
    page.on("request", lambda request: seen.addresses.append(request.url))
    page.on("requestfinished", lambda request: seen.answered.append(request))
    page.on("requestfailed", lambda request: seen.complaints.append(f"failed: {request.url}"))
    page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    return seen
