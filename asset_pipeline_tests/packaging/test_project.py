"""What stands around the package: files, targets of make, and that the documents say what is so."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from asset_pipeline.cli.app import app
from asset_pipeline.settings import Settings

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "fixtures/README.md")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):.*##", MAKEFILE, re.MULTILINE))


def _text(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


def _make(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["make", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_files_a_newcomer_looks_for_are_there() -> None:
    names = "README.md CONTRIBUTING.md CHANGELOG.md LICENSE Makefile .gitignore .pre-commit-config.yaml .ci/run"
    assert not [name for name in names.split() if not (ROOT / name).is_file()]


def test_the_licence_is_apache_2_in_full() -> None:
    licence = _text("LICENSE")
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_in_documents_exist(document: str) -> None:
    named = set(re.findall(r"(?:`|^)make ([a-z-]+)", _text(document), re.MULTILINE))
    assert named
    assert named <= TARGETS


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md"])
def test_commands_in_documents_exist(document: str) -> None:
    for line in re.findall(r"asset-pipeline ((?:-?-?[a-z0-9.-]+ ?)+)", _text(document)):
        command = get_command(app)
        for word in line.split():
            if word.startswith("--"):
                assert word in {name for option in command.params for name in option.opts}, line
            elif hasattr(command, "commands"):
                assert word in command.commands, line
                command = command.commands[word]


@pytest.mark.parametrize("document", [*DOCUMENTS, "CHANGELOG.md"])
def test_links_in_documents_lead_to_files(document: str) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)", _text(document))
    assert not [link for link in links if not (ROOT / document).parent.joinpath(link).exists()]


def test_settings_in_the_readme_exist() -> None:
    named = set(re.findall(r"ASSET_PIPELINE_([A-Z0-9_]+)", _text("README.md"))) - {"CORPUS"}
    assert {name.lower() for name in named} <= set(Settings.model_fields)


def test_make_alone_lists_every_target() -> None:
    answer = _make()
    assert answer.returncode == 0
    assert {f"make {name}" for name in TARGETS} <= set(re.findall(r"make [a-z-]+", answer.stdout))
    assert {"demo", "test", "ui", "lint", "lock", "clean", "fixtures"} <= TARGETS


def test_this_python_is_one_that_make_accepts() -> None:
    assert _make("python", f"PYTHON={sys.executable}").returncode == 0


@pytest.mark.parametrize("version", ["3.10.14", "3.14.1"])
def test_another_python_is_refused_in_a_sentence(version: str, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "Python {version}" || exit 1\n')
    other.chmod(0o755)
    answer = _make("python", f"PYTHON={other}")
    assert answer.returncode != 0
    assert f"Python {version} will not do: Python 3.11, 3.12 or 3.13 is needed" in answer.stderr


def test_no_python_at_all_is_said_in_a_sentence() -> None:
    answer = _make("python", "PYTHON=no-such-python")
    assert "There is no no-such-python. Install Python 3.11, 3.12 or 3.13" in answer.stderr


def test_make_and_the_package_agree_on_the_versions_of_python() -> None:
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    assert project["requires-python"] == ">=3.11,<3.14"
    assert "(3, 11) <= sys.version_info[:2] <= (3, 13)" in MAKEFILE


def test_a_second_make_installs_nothing_until_the_lock_changes(tmp_path: Path) -> None:
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    for stamp in (".made", ".locked", ".locked-dev", ".project"):
        (tmp_path / ".venv" / stamp).touch()
    again = _make("--dry-run", "-C", str(tmp_path), "demo", "test").stdout
    assert not [word for word in ("-m pip", "-m venv") if word in again]
    later = (tmp_path / ".venv" / ".locked").stat().st_mtime + 10
    os.utime(tmp_path / "requirements.lock", (later, later))
    assert "--require-hashes -r requirements.lock" in _make("--dry-run", "-C", str(tmp_path), "demo").stdout


def test_hooks_are_the_projects_own_tools() -> None:
    configuration = yaml.safe_load(_text(".pre-commit-config.yaml"))
    assert [repo["repo"] for repo in configuration["repos"]] == ["local"]
    assert all(hook["entry"].startswith(".venv/bin/") for repo in configuration["repos"] for hook in repo["hooks"])


def test_the_check_script_runs_demo_lint_and_tests_and_stops_at_the_first_failure() -> None:
    script = _text(".ci/run")
    assert "set -euo pipefail" in script
    assert re.findall(r"\bmake ([a-z-]+)", script.split("mktemp", 1)[1]) == ["demo", "lint", "test"]
    assert subprocess.run(["bash", "-n", str(ROOT / ".ci/run")], check=False).returncode == 0
