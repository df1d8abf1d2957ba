"""A fresh document for each test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pikepdf
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def pdf() -> Iterator[pikepdf.Pdf]:
    with pikepdf.new() as made:
        yield made
