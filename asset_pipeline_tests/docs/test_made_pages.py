"""The pages of docs/ that repeat the code say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pages_made_from_the_code_are_up_to_date() -> None:
    checked = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, f"{checked.stdout}: run python docs/make.py"
