"""A pass that is killed at any of its steps leaves nothing that went untold, and the next pass ends what it began."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

import pytest

from asset_pipeline.archive.audit import compare_month
from asset_pipeline.archive.fsck import prove
from asset_pipeline.archive.proof import prove_ledger
from asset_pipeline.installation import Installation, open_installation
from asset_pipeline.ledger.database import Ledger
from asset_pipeline.retention.apply import apply
from asset_pipeline.retention.clocks import bytes_past_deadline
from asset_pipeline.settings import Settings
from asset_pipeline.storage.folder import FolderStore
from asset_pipeline_tests.retention.aging import DAYS, POLICY, day, digests, events, files, no_previews, put, read
from asset_pipeline_tests.small_documents import fresh_settings

MONTH = "2026-05"


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of three reports, of which two are due; to be copied."""
    folder = tmp_path_factory.mktemp("month")
    settings = fresh_settings(folder, workers=1, sandbox=False)
    settings.policy_file.write_text(POLICY)
    with open_installation(settings) as inst:
        for name, colours in (("a.pdf", [10, 20]), ("b.pdf", [20, 30])):
            put(inst, name, colours)
        read(inst, day(0))
        put(inst, "c.pdf", [30, 40])
        read(inst, day(10))
    return folder


def _settings(folder: Path) -> Settings:
    return Settings(home=folder / "home", settle_seconds=0, workers=1, sandbox=False)


def _die_at(step: int, settings: Settings) -> None:
    """Run a pass that is killed before its ``step``-th commit, after it, or at a deletion of bytes, as they come."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)

    begin, delete = Ledger.begin, FolderStore.delete

    def beginning(self: Ledger):
        @contextmanager
        def wrapped():
            with begin(self) as tx:
                yield tx
                count()
            count()

        return wrapped()

    def deleting(self: FolderStore, key: str) -> None:
        if not key.startswith(".incoming-"):
            count()
        delete(self, key)

    Ledger.begin, FolderStore.delete = beginning, deleting  # type: ignore[method-assign,assignment]
    with open_installation(settings) as inst:
        apply(inst, day(DAYS + 1), no_previews)


def _in_another_process(what: Callable[..., None], *arguments: object) -> int:
    process = multiprocessing.get_context("fork").Process(target=what, args=arguments)
    process.start()
    process.join(60)
    assert process.exitcode is not None
    return process.exitcode


def test_a_pass_that_is_killed_at_any_step_leaves_no_untold_deletion_and_the_next_one_ends_it(
    month: Path, tmp_path: Path
) -> None:
    settings = _settings(month)
    with open_installation(settings) as inst:
        whole = files(inst)
    step, killed = 0, 0
    while True:
        step += 1
        shutil.copytree(month, tmp_path / str(step))
        settings = _settings(tmp_path / str(step))
        code = _in_another_process(_die_at, step, settings)
        with open_installation(settings) as inst:
            _check_nothing_went_untold(inst, whole)
            apply(inst, day(DAYS + 1), no_previews)
            _check_all_is_gone_and_told(inst, whole)
        if code == 0:
            break
        assert code == -signal.SIGKILL
        killed += 1
        shutil.rmtree(tmp_path / str(step))
    assert killed >= 15, "commits, and deletions of bytes between them"


def _content(found: dict[str, set[str]]) -> set[str]:
    """Digests of sources and pictures."""
    return {key.rpartition("/")[2] for name in ("sources", "archive") for key in found[name] if "objects/" in key}


def _check_nothing_went_untold(inst: Installation, whole: dict[str, set[str]]) -> None:
    missing = _content(whole) - _content(files(inst))
    assert missing <= set(digests(events(inst, "deletion_intended")))
    if len(files(inst)["archive"]) < len(whole["archive"]):
        assert events(inst, "deletion_intended")


def _check_all_is_gone_and_told(inst: Installation, whole: dict[str, set[str]]) -> None:
    missing = _content(whole) - _content(files(inst))
    assert bytes_past_deadline(inst, day(DAYS + 1)) == 0
    assert len(missing) == 4, "two sources, and the two pictures that c.pdf does not show"
    told = digests(event for event in events(inst, "deleted") if event["kind"] in ("picture", "source"))
    assert told == sorted(missing), "each once"
    assert prove(inst).findings == []
    assert compare_month(inst, MONTH) == []
    assert prove_ledger(inst, inst.trust(), processes=1).verdict.findings == []
