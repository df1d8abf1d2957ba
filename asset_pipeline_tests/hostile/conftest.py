"""The set of hostile files, made once a run, and what was found over all of it.

Their maker is not part of the project: ``ASSET_PIPELINE_HOSTILE`` names the folder of ``make_hostile.py``, else
a checkout beside this one is looked for.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asset_pipeline_tests.hostile.wrapping import wrap_in_docx, wrap_in_pdf
from asset_pipeline_tests.installations import inst, settings  # noqa: F401 - fixtures

MAKER = Path(os.environ.get("ASSET_PIPELINE_HOSTILE", Path(__file__).parents[3] / "shared" / "hostile"))


@pytest.fixture(scope="session")
def hostile_set(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Every file as it is made, and every bare raster wrapped in a PDF and in a docx."""
    if not (MAKER / "make_hostile.py").is_file():
        pytest.skip(f"there is no make_hostile.py in {MAKER}")
    # Workers of one run share the folder above their own.
    place = tmp_path_factory.getbasetemp().parent / "hostile-files"
    place.mkdir(exist_ok=True)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "MANIFEST.json").exists():
            maker = [sys.executable, str(MAKER / "make_hostile.py"), str(place), "--with-pikepdf"]
            subprocess.run(maker, check=True, capture_output=True)
            for raster in [path for path in place.iterdir() if path.suffix not in (".pdf", ".json", "")]:
                if not raster.name.startswith("."):
                    wrap_in_pdf(raster, raster.with_name(f"{raster.name}.pdf"))
                    wrap_in_docx(raster, raster.with_name(f"{raster.name}.docx"))
    return sorted(path for path in place.iterdir() if path.name not in (".lock", "MANIFEST.json"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, value in report.user_properties:
            if name == "hostile" and report.when == "call":
                terminalreporter.write_line(f"hostile: {value}")
