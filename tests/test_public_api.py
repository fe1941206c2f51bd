"""Systems use the public API of the library and nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PUBLIC = (
    "keywright",
    "keywright.cli",
    "keywright.errors",
    "keywright.operations",
    "keywright.testing",
    "keywright.tools",
    "keywright.tools.http",
)
ALSO_FOR_THE_DEMO = ("keywright.explorer",)
SYSTEMS = [*sorted(path.parent for path in ROOT.glob("systems/*/src")), ROOT / "demo"]


def _imports(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (file, module, name) for every import of the library."""
    for path in sorted((folder / "src").rglob("*.py")):
        where = str(path.relative_to(ROOT))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    if alias.name.partition(".")[0] == "keywright":
                        yield where, alias.name, ""
            elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "keywright":
                for alias in node.names:
                    yield where, node.module or "", alias.name


@pytest.mark.parametrize("folder", SYSTEMS, ids=lambda folder: folder.name)
def test_a_system_imports_public_names_only(folder: Path) -> None:
    allowed = PUBLIC + (ALSO_FOR_THE_DEMO if folder.name == "demo" else ())
    private = []
    for where, module, name in _imports(folder):
        if f"{module}.{name}" in allowed:
            continue  # from keywright import operations
        if module not in allowed or (name and name not in import_module(module).__all__):
            private.append(f"{where}: {module} {name}")
    assert private == []


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_exists_and_is_listed_in_order(module: str) -> None:
    found = import_module(module)
    for name in found.__all__:
        assert hasattr(found, name), name
    assert len(set(found.__all__)) == len(found.__all__)


def test_the_page_on_releases_promises_these_modules() -> None:
    page = (ROOT / "docs" / "release.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith("| names in `__all__` of"))
    assert set(re.findall(r"`(keywright[\w.]*)`", row.split("|")[1])) == set(PUBLIC)
