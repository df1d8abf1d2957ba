"""The house rules that a reader would otherwise have to remember: who may import whom, and how large a module is."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "asset_pipeline"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS: tuple[tuple[str, ...], ...] = (
    ("cli",),
    ("definitions",),
    ("defs",),
    ("intake",),
    ("work",),
    ("extraction",),
    ("validation",),
    ("history",),
    ("retention",),
    ("archive",),
    ("installation",),
    ("ledger",),
    ("evidence",),
    ("storage",),
    ("account", "model", "policy", "policy_yaml", "settings", "errors", "reasons", "logs", "failpoints"),
)
RANK = {room: rank for rank, layer in enumerate(LAYERS) for room in layer}


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Absolute names that a module imports anywhere in it, function bodies and type checking included."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield node.lineno, module
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _room(dotted: str) -> str | None:
    """Room of a dotted name of ours; None for other packages and for names of the package itself."""
    head, *rest = dotted.split(".")
    return rest[0] if head == "asset_pipeline" and rest and rest[0] in RANK else None


def test_every_module_has_its_place_in_the_house() -> None:
    rooms = {path.relative_to(PACKAGE).parts[0].removesuffix(".py") for path in MODULES} - {"__init__"}
    assert rooms <= set(RANK)


def test_imports_point_down_the_house() -> None:
    wrong = []
    for path in MODULES:
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        for line, dotted in _imports(path):
            target = _room(dotted)
            if room in RANK and target is not None and target != room and RANK[target] < RANK[room]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {dotted}")
    assert not wrong


def test_only_the_defs_room_and_the_door_know_dagster() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line} imports {dotted}"
        for path in MODULES
        if not path.is_relative_to(PACKAGE / "defs") and path != PACKAGE / "definitions.py"
        for line, dotted in _imports(path)
        if dotted.split(".")[0].startswith("dagster")
    ]
    assert not wrong


def test_no_module_is_longer_than_450_lines() -> None:
    assert not [path.name for path in MODULES if len(path.read_text("utf-8").splitlines()) > 450]


def test_every_module_says_what_it_is_for() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if path.read_text("utf-8").strip() and not ast.get_docstring(ast.parse(path.read_text("utf-8")))
    ]
    assert not silent


def test_no_module_is_named_for_nothing() -> None:
    assert not [path for path in MODULES if path.stem in {"utils", "util", "helpers", "helper", "manager", "misc"}]


@pytest.mark.parametrize("statement", ["import asset_pipeline", "import asset_pipeline.cli.app"])
def test_importing_loads_no_heavy_library(statement: str) -> None:
    heavy = "{'dagster', 'pikepdf', 'pypdf', 'pypdfium2', 'PIL', 'pandas', 'sqlalchemy', 'boto3', 'pydantic'}"
    script = f"import sys; {statement}; print(sorted({heavy} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
