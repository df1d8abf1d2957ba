"""The standing comparison of manifests, ledger and archive store finds what someone took or changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from asset_pipeline.archive.audit import compare_month
from asset_pipeline.archive.manifest import publish_manifests
from asset_pipeline.installation import Installation
from asset_pipeline.work.month import work_month
from asset_pipeline_tests.small_documents import MONTH


@pytest.fixture
def archive(inst: Installation, submit: Callable) -> Path:
    submit("a.pdf", [10, 20])
    submit("locked.pdf", [10], encrypted=True)
    work_month(inst, MONTH)
    publish_manifests(inst, MONTH, datetime.now(UTC))
    return Path(inst.settings.store_address("archive"))


def test_an_untouched_month_has_no_mismatch(inst: Installation, archive: Path) -> None:
    assert compare_month(inst, MONTH) == []


def test_a_picture_that_is_gone_is_found(inst: Installation, archive: Path) -> None:
    next(archive.glob("objects/*/*")).unlink()
    (mismatch,) = compare_month(inst, MONTH)
    assert (mismatch.what, mismatch.count) == ("The archive lacks pictures of the report.", 1)


def test_a_picture_that_was_cut_is_found(inst: Installation, archive: Path) -> None:
    cut = next(archive.glob("objects/*/*"))
    cut.write_bytes(cut.read_bytes()[:-1])
    (mismatch,) = compare_month(inst, MONTH)
    assert (mismatch.what, mismatch.count) == ("Pictures in the archive are not as long as they were written.", 1)


def test_a_manifest_that_is_gone_is_found(inst: Installation, archive: Path) -> None:
    path = next(archive.glob("manifests/*/*.json"))
    path.unlink()
    (mismatch,) = compare_month(inst, MONTH)
    assert (mismatch.report_id, mismatch.what) == (path.stem, "The manifest is gone from the archive.")


def test_an_altered_manifest_is_found(inst: Installation, archive: Path) -> None:
    path = next(archive.glob("manifests/*/*.json"))
    path.write_bytes(path.read_bytes() + b" ")
    (mismatch,) = compare_month(inst, MONTH)
    assert mismatch.what == "The manifest in the archive is not the one that was written."


def test_a_settled_report_without_manifest_is_found(inst: Installation, submit: Callable, archive: Path) -> None:
    submit("late.pdf", [30])
    assert compare_month(inst, MONTH) == []
    work_month(inst, MONTH)
    (mismatch,) = compare_month(inst, MONTH)
    assert mismatch.what == "The report has no manifest."


def test_what_was_just_published_is_compared_with_the_archive_all_the_same(inst: Installation, archive: Path) -> None:
    published = publish_manifests(inst, MONTH, datetime.now(UTC))
    assert compare_month(inst, MONTH, published) == []
    next(archive.glob("objects/*/*")).unlink()
    next(archive.glob("manifests/*/*.json")).unlink()
    found = {mismatch.what for mismatch in compare_month(inst, MONTH, published)}
    assert found == {"The archive lacks pictures of the report.", "The manifest is gone from the archive."}


def test_a_manifest_that_was_published_before_the_ledger_changed_is_found(
    inst: Installation, submit: Callable, archive: Path
) -> None:
    published = publish_manifests(inst, MONTH, datetime.now(UTC))
    submit("a.pdf", [30])
    work_month(inst, MONTH)
    (mismatch,) = compare_month(inst, MONTH, published)
    assert mismatch.what == "The newest manifest does not say what the ledger says."
