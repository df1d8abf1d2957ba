"""The lock files: one version each, with hashes, from no particular place, under licences we can ship."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One locked version. A name has several where Pythons differ, told apart by their markers."""

    name: str
    version: str
    marker: Marker | None
    hashes: tuple[str, ...]

    @property
    def here(self) -> bool:
        return self.marker is None or self.marker.evaluate()


def _entries(lock: str) -> list[Entry]:
    found = []
    for line in (ROOT / lock).read_text("utf-8").replace("\\\n", " ").splitlines():
        if line.strip() and not line.startswith("#"):
            requirement = Requirement(re.split(r"\s--hash=", line)[0].strip())
            (pin,) = requirement.specifier
            assert pin.operator == "==", line
            hashes = tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})(?=\s|$)", line))
            found.append(Entry(canonicalize_name(requirement.name), pin.version, requirement.marker, hashes))
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_has_one_version_here_and_hashes(lock: str) -> None:
    entries = _entries(lock)
    assert not [entry for entry in entries if not entry.hashes]
    assert [name for name, times in Counter(entry.name for entry in entries if entry.here).items() if times > 1] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_registry_and_no_place(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    assert not re.findall(r"https?:|file:|ftp:|git\+|--(?:extra-)?index-url|--find-links|--trusted-host| @ |\s/", text)


def test_development_uses_the_versions_of_production() -> None:
    production, development = ({(entry.name, entry.version) for entry in _entries(lock)} for lock in LOCKS)
    assert production <= development


def test_the_locks_hold_what_the_project_asks_for() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = {
        "requirements.lock": [*PROJECT["dependencies"], "setuptools>=77"],
        "requirements-dev.lock": [*PROJECT["dependencies"], *extras["dev"], "setuptools>=77"],
    }
    for lock, requirements in wanted.items():
        entries = _entries(lock)
        for asked in map(Requirement, requirements):
            versions = [entry.version for entry in entries if entry.name == canonicalize_name(asked.name)]
            behind = f"{lock} is behind pyproject.toml: {asked}; run make lock"
            assert versions, behind
            assert all(asked.specifier.contains(version) for version in versions), behind


def test_the_dagster_family_is_of_one_release() -> None:
    pins = {entry.name: entry.version for entry in _entries("requirements.lock")}
    core = pins["dagster"].split(".")
    assert pins["dagster-webserver"] == pins["dagster-graphql"] == pins["dagster"]
    assert pins["dagster-postgres"].split(".") == ["0", str(int(core[1]) + 16), core[2]]


def test_nothing_shipped_is_under_the_gpl_or_agpl() -> None:
    licences = {entry.name: _licences(entry.name) for entry in _entries("requirements.lock") if entry.here}
    assert not {name: found for name, found in licences.items() if any(map(_is_viral, found))}


def _licences(name: str) -> list[str]:
    try:
        facts = metadata(name)
    except PackageNotFoundError:
        return []  # for another system or Python
    expression = facts.get("License-Expression")
    if expression:
        return [part for part in re.split(r"\bAND\b", expression) if part.strip()]
    named = [line for line in facts.get_all("Classifier") or [] if line.startswith("License ::")]
    short = facts.get("License") or ""
    return named or ([short] if len(short) < 120 else [])


def _is_viral(licence: str) -> bool:
    """Whether each alternative of ``licence`` is the GPL or AGPL; the LGPL is not."""
    return all(
        re.search(r"\bA?GPL|Affero|GNU General Public", choice) is not None for choice in re.split(r"\bOR\b", licence)
    )
