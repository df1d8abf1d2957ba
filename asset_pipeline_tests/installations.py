"""A real installation in a folder, with documents dropped, admitted and planned on request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.intake.admission import admit_month
from asset_pipeline.settings import Settings
from asset_pipeline_tests.small_documents import MONTH, drop_document, fresh_settings


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return fresh_settings(tmp_path)


@pytest.fixture
def inst(settings: Settings) -> Iterator[Installation]:
    with open_installation(settings) as opened:
        yield opened


@pytest.fixture
def submit(inst: Installation) -> Callable[..., None]:
    """Drop a document and admit it."""

    def run(name: str, colours: list[int], **how: bool) -> None:
        drop_document(inst.settings, name, colours, **how)
        admit_month(inst, MONTH, lambda: datetime.now(UTC), wait=True)

    return run
