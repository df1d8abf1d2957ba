"""The one figure of a run: how many documents, and how they ended."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "fuzz" and report.when == "call":
                terminalreporter.write_line(f"fuzz: {value}")
