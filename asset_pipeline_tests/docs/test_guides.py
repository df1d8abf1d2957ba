"""The guides tell the truth: their commands exist, a part of them is run, their links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import typer

from asset_pipeline.cli.app import app
from asset_pipeline.reasons import Reason

ROOT = Path(__file__).parents[2]
GUIDES = sorted(
    [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "deploy/README.md", ROOT / "CONTRIBUTING.md"]
)
MONTH = "2026-10"
# Named in the guides: one with a picture held back, one with two.
DOCUMENTS = ("annual-reports/2026-10/coastline-atlas.pdf", "press-desk/2026-10/agency-wire-photos.pdf")

_FENCE = re.compile(r"^```(?P<kind>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`((?:\.venv/bin/)?asset-pipeline [^`]+)`")
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def _blocks(guide: Path, kinds: tuple[str, ...]) -> list[str]:
    found = _FENCE.finditer(guide.read_text("utf-8"))
    return [match["body"] for match in found if match["kind"].strip() in kinds]


def _commands(guide: Path) -> Iterator[str]:
    for body in _blocks(guide, ("sh", "sh run")):
        for line in body.replace("\\\n", " ").splitlines():
            if line.startswith(("asset-pipeline", ".venv/bin/asset-pipeline")):
                yield line
    yield from _INLINE.findall(_FENCE.sub("", guide.read_text("utf-8")))


def _words(line: str) -> list[str]:
    words = shlex.split(line, comments=True)[1:]
    end = next((place for place, word in enumerate(words) if word in (">", "|", "&&")), len(words))
    return words[:end]


def _commands_of(command: Any) -> dict[str, Any]:
    return dict(getattr(command, "commands", {}))


def _fault(words: list[str]) -> str:
    """Why the command line would not take ``words``; "" when it would."""
    command = typer.main.get_command(app)
    while (inner := _commands_of(command)) and words and not words[0].startswith("-"):
        names = [name for name in words.pop(0).split("|") if name != "…"]
        if unknown := [name for name in names if name not in inner]:
            return f"no command {unknown}"
        if len(names) != 1:
            return ""
        command = inner[names[0]]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "-h"}
    unknown = [word for word in words if word.startswith("-") and word.split("=")[0] not in known]
    return f"no option {unknown}" if unknown else ""


def test_every_command_in_a_guide_exists_with_its_options() -> None:
    commands = [(guide, line) for guide in GUIDES for line in _commands(guide)]
    assert len(commands) > 60
    assert [f"{guide.name}: {line}: {fault}" for guide, line in commands if (fault := _fault(_words(line)))] == []


@pytest.mark.parametrize(
    "line", ["asset-pipeline archive", "asset-pipeline jobs list --colour red", "asset-pipeline jobs list|mend"]
)
def test_a_command_that_does_not_exist_is_noticed(line: str) -> None:
    assert _fault(_words(line))


def _leaves(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if inner := _commands_of(command):
        for name, part in inner.items():
            yield from _leaves(part, (*path, name))
    else:
        yield path


def test_every_command_stands_in_some_guide() -> None:
    leaves = list(_leaves(typer.main.get_command(app)))
    lines = [_words(line) for guide in GUIDES for line in _commands(guide)]
    shown = {leaf for leaf in leaves for words in lines if tuple(words[: len(leaf)]) == leaf}
    assert len(leaves) > 20
    assert [" ".join(leaf) for leaf in leaves if leaf not in shown] == []


def _anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ +(.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(guide: Path) -> None:
    for link in _LINK.findall(_FENCE.sub("", guide.read_text("utf-8"))):
        if not link.startswith(("http://", "https://", "mailto:")):
            place, _, anchor = unquote(link).partition("#")
            target = (guide.parent / place).resolve() if place else guide
            assert target.exists(), link
            assert not anchor or anchor in _anchors(target), link


def test_every_guide_is_reached_from_the_front_page() -> None:
    reached, new = set(), [ROOT / "README.md"]
    while new:
        page = new.pop()
        reached.add(page)
        links = _LINK.findall(page.read_text("utf-8")) if page.suffix == ".md" else []
        linked = {(page.parent / link.partition("#")[0]).resolve() for link in links}
        new += [found for found in linked if found.is_file() and found not in reached]
    guides = {path for path in (ROOT / "docs").iterdir() if path.suffix in (".md", ".ipynb")}
    assert ROOT / "docs/README.md" in reached
    assert {path.name for path in guides - reached} == set()


def test_the_reasons_that_the_guide_for_media_teams_explains_are_reasons() -> None:
    section = (
        (ROOT / "docs/media-teams.md").read_text("utf-8").partition("## A quarantined picture")[2].partition("\n## ")[0]
    )
    named = {
        word for row in re.findall(r"^\|(.*?)\|", section, re.MULTILINE) for word in re.findall(r"`([a-z_]+)`", row)
    }
    assert len(named) > 5
    assert named <= {reason.value for reason in Reason}


def test_the_commands_that_are_marked_run_on_documents_of_the_demo(tmp_path: Path) -> None:
    for name in DOCUMENTS:
        place = tmp_path / ".asset_pipeline/inbox" / name
        place.parent.mkdir(parents=True)
        shutil.copy(ROOT / "fixtures/inbox" / name, place)
    marked = {guide.name: _marked(guide) for guide in GUIDES}
    marked = {name: lines for name, lines in marked.items() if lines}
    assert len(marked) >= 4
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ASSET_PIPELINE_", "DAGSTER"))}
    lines = [f"asset-pipeline run {MONTH}", *(line for guide in marked.values() for line in guide)]
    ended = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("run_commands.py"))],
        cwd=tmp_path,
        env=kept | {"PYTHONPATH": str(ROOT), "ASSET_PIPELINE_SETTLE_SECONDS": "0"},
        input="\n".join(lines),
        capture_output=True,
        text=True,
        timeout=240,
    )
    told = json.loads(ended.stdout)
    assert len(told) == len(lines)
    assert [(line, status, err) for line, status, err in told if status] == []
    assert (tmp_path / "october.zip").exists()
    assert (tmp_path / "october-bag/bagit.txt").exists()


def _marked(guide: Path) -> list[str]:
    lines = [line for body in _blocks(guide, ("sh run",)) for line in body.splitlines() if line]
    assert all(line.startswith("asset-pipeline ") for line in lines), guide
    return lines
