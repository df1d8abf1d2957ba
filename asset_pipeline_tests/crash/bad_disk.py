"""Runs a campaign on a disk that fills up, or with an archive that becomes read-only, and mends it when that was met.

A script, started within a mount namespace of its own (``within``): what it mounts is seen by the campaign alone and is
gone with it. That needs root or a system that lets users have namespaces.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from asset_pipeline_tests.crash.campaign import AWAY_SEEN, SUBMITTED

TIMES = 3
ROOM = 64 * 1024
"""Bytes that are left on the full disk: less than the work needs, however early it becomes full."""


def within(kind: str, folder: Path) -> list[str]:
    """The command that starts a campaign in ``folder`` on such a disk; ``kind`` is a key of ``DISKS``."""
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    return [*namespace, sys.executable, "-m", __name__, kind, str(folder)]


def _mount(*arguments: str) -> bool:
    return subprocess.run(["mount", *arguments], stderr=subprocess.DEVNULL).returncode == 0


class FullDisk:
    """Everything of the installation, its database and working directories too, is on one small disk."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        assert _mount("-t", "tmpfs", "-o", "size=256m", "tmpfs", self._home)

    def spoil(self) -> bool:
        found = os.statvfs(self._home)
        used = (found.f_blocks - found.f_bfree) * found.f_frsize
        return _mount("-o", f"remount,size={used + ROOM}", self._home)

    def mend(self) -> bool:
        return _mount("-o", "remount,size=256m", self._home)


class ReadOnlyArchive:
    """The archive is a mount of its own; it cannot be made read-only in the moment in which it is written."""

    def __init__(self, home: Path) -> None:
        archive = home / "archive"
        archive.mkdir()
        self._archive = str(archive)
        assert _mount("--bind", self._archive, self._archive)

    def spoil(self) -> bool:
        return _mount("-o", "remount,bind,ro", self._archive)

    def mend(self) -> bool:
        return _mount("-o", "remount,bind,rw", self._archive)


DISKS: dict[str, type[FullDisk] | type[ReadOnlyArchive]] = {"full": FullDisk, "read-only": ReadOnlyArchive}


def main(kind: str, folder: Path, command: list[str]) -> int:
    """Run ``command`` and spoil its disk, each time until a worker met it; the command's exit status.

    The first time comes before any work, so it is always met; the others come when pictures are being archived.
    """
    home = folder / "home"
    home.mkdir(parents=True)
    disk = DISKS[kind](home)
    campaign = subprocess.Popen(command)

    def wait(condition: Callable[[], bool]) -> None:
        while campaign.poll() is None and not condition():
            time.sleep(0.005)

    def archived() -> int:
        return sum(1 for _ in home.glob("archive/objects/*/*"))

    def more_than(before: int) -> bool:
        return archived() > before

    wait((folder / SUBMITTED).exists)
    for number in range(TIMES):
        if number:
            wait(partial(more_than, archived()))
        (folder / AWAY_SEEN).unlink(missing_ok=True)
        wait(disk.spoil)
        wait((folder / AWAY_SEEN).exists)
        wait(disk.mend)
    return campaign.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
