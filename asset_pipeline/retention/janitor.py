"""Removes what ended processes left behind: working directories, half-written files of stores, copies of ``gate``.

Events that they left uncovered get their checkpoint. Safe at any time, beside any work, and again: only a directory
that is older than 900 seconds and that nobody holds (see ``held``) goes, and of a store only temporary files that
nobody has written to for an hour. What is gone already is success. The inbox is never touched: what lies there is
somebody else's. Material whose retention is over belongs beside this, not in here.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path

from asset_pipeline.errors import StorageError
from asset_pipeline.installation import Installation
from asset_pipeline.ledger.events import record_event
from asset_pipeline.ledger.holds import keeps_everything
from asset_pipeline.retention.held import NAME, taking
from asset_pipeline.retention.rehearsals import sweep_rehearsals
from asset_pipeline.storage.store import Swept

WORKING_AGE = timedelta(seconds=900)
"""Age at which a working directory that nobody holds goes (REQUIREMENTS R7.1)."""

WRITING_AGE = timedelta(hours=1)
"""Far longer than any file takes to be written."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one pass did. ``in_use`` directories are old too, but somebody works there; ``stuck`` cannot be removed."""

    directories: int = 0
    directory_bytes: int = 0
    files: int = 0
    file_bytes: int = 0
    in_use: int = 0
    stuck: int = 0
    rehearsals: int = 0


def sweep(inst: Installation, now: datetime) -> Sweep:
    """Sweep working folder and stores, cover the log; an event tells what was removed, if anything was.

    A legal hold on everything keeps even these. Raises StorageError when a store is away; what could be swept was
    swept, and is told.
    """
    inst.checkpoints.catch_up()
    with inst.ledger.read() as conn:
        if keeps_everything(conn):
            return Sweep()
    done = _sweep_working_folder(inst.settings.work_folder, now - WORKING_AGE)
    left, away = Swept(), None
    for store in (inst.sources, inst.archive, inst.quarantine):
        try:
            found = store.sweep_temporary(now - WRITING_AGE)
        except StorageError as error:
            away = error
        else:
            left = Swept(left.files + found.files, left.bytes + found.bytes)
    try:
        rehearsals = sweep_rehearsals(inst, now)
    except StorageError as error:
        away, rehearsals = error, 0
    done = replace(done, files=left.files, file_bytes=left.bytes, rehearsals=rehearsals)
    if done.directories or done.files or done.rehearsals:
        with inst.ledger.begin() as tx:
            record_event(tx, "leftovers_removed", payload=asdict(done), now=now)
    if away is not None:
        raise away
    return done


def left_behind(inst: Installation, now: datetime) -> tuple[int, int]:
    """Old working directories, those in use included: how many, and their bytes."""
    places = _old_places(inst.settings.work_folder, now - WORKING_AGE)
    return len(places), sum(map(_bytes_in, places))


def _sweep_working_folder(folder: Path, before: datetime) -> Sweep:
    directories = size = in_use = stuck = 0
    for place in _old_places(folder, before):
        with taking(place) as free:
            if not free:
                in_use += 1
                continue
            held = _bytes_in(place)
            shutil.rmtree(place, ignore_errors=True)
            if place.exists():
                stuck += 1
            else:
                directories, size = directories + 1, size + held
    return Sweep(directories, size, in_use=in_use, stuck=stuck)


def _old_places(folder: Path, before: datetime) -> list[Path]:
    """Working directories that were last changed earlier than ``before``."""
    try:
        with os.scandir(folder) as found:
            ours = [child for child in found if NAME.fullmatch(child.name) and child.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        what = f"The working folder cannot be read ({error.strerror})."
        raise StorageError(what, "Check the folder that ASSET_PIPELINE_WORK names.") from None
    return [Path(child.path) for child in ours if _changed(child) < before.timestamp()]


def _changed(child: os.DirEntry[str]) -> float:
    """When the directory was last changed, in seconds; the end of time for one that is gone."""
    try:
        return child.stat(follow_symlinks=False).st_mtime
    except FileNotFoundError:
        return float("inf")


def _bytes_in(place: Path) -> int:
    size = 0
    for parent, _, names in os.walk(place):
        for name in names:
            try:
                size += Path(parent, name).stat(follow_symlinks=False).st_size
            except FileNotFoundError:
                continue
    return size
