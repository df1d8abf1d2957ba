"""Where the corpus of real documents is, and the one figure over all of it.

The files are not part of the project: ``ASSET_PIPELINE_CORPUS`` names their folder, else a checkout
beside this one is looked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("ASSET_PIPELINE_CORPUS", Path(__file__).parents[3] / "shared" / "corpus"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "document" in metafunc.fixturenames:
        documents = sorted((CORPUS / "pdf").glob("*.pdf")) if (CORPUS / "expected.json").is_file() else []
        absent = pytest.param(None, marks=pytest.mark.skip(reason=f"there is no corpus in {CORPUS}"), id="absent")
        metafunc.parametrize("document", [pytest.param(path, id=path.name) for path in documents] or [absent])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Sum what the tests found, whichever worker ran them."""
    sums = [0, 0, 0]
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "corpus" and report.when == "call":
                sums = [total + more for total, more in zip(sums, value, strict=True)]
    found, allowed, wanted = sums
    if wanted:
        line = f"corpus: {found} of {wanted} agreed pictures = {100 * found / wanted:.1f} %"
        terminalreporter.write_line(f"{line}, {allowed} more rightly quarantined")
